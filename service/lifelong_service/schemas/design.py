"""Answers about validations and promotion reports."""

from typing import Annotated, Any, TypeAlias

from typing_extensions import TypedDict

from lifelong_core.entities.entity import schema_of

ValidationDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of("lifelong_core.design.validation.result:ValidationResult")
]

PromotionReportDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of("lifelong_core.promotion.document:PromotionReport")
]


class PromotionReportSummary(TypedDict):
    """A promotion report of a model; `job` made it."""

    model: str
    against: str
    job: str
    created_at: str
    created_by: str
    advice: str
    headline: str


class PromotionReportList(TypedDict):
    """Promotion reports of a model, newest first."""

    reports: list[PromotionReportSummary]
