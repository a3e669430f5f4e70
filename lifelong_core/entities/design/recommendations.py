"""Recommendations attached to tasks, the heads that an attachment publishes or keeps, and those that still differ."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError

from lifelong_core.entities.entity import (
    Entity,
    Matrix,
    Moment,
    damage_error,
    read_kept,
    schema_of,
    text_digest,
)
from lifelong_core.entities.heads import HeadRecord
from lifelong_core.entities.registry import Model, Rule
from lifelong_core.values.errors import UnavailableError
from lifelong_core.values.validation_errors import as_input_error

# Parsing a document imports the design loop and all metrics, which takes too long for the start of a serving process.
if TYPE_CHECKING:
    from lifelong_core.design import Recommendation
    from lifelong_core.design.validation.acceptance import AcceptanceThreshold

KeptCause: TypeAlias = Literal["fits", "pinned", "damaged"]
"""Reason for not refitting a head: it already fits, it is pinned, or its class mix is unknown because it is damaged."""
Difference: TypeAlias = Literal["costs", "decision_rule", "prevalence"]
ThresholdDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of("lifelong_core.design.validation.acceptance:AcceptanceThreshold")
]
RecommendationDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of("lifelong_core.design.recommendation.views:RecommendationAnswer")
]
"""a recommendation as text; its `document` is the complete recommendation, to be stored and attached to a task"""


@dataclass(frozen=True, kw_only=True)
class AttachedFields(Entity):
    """A recommendation of a task without its document; the newest one is in force."""

    task: str
    version: int
    """counts from 1 within the task"""
    digest: str
    """SHA-256 (hex) over recommendation and thresholds"""
    created_at: Moment
    created_by: str


@dataclass(frozen=True, kw_only=True)
class AttachedSummary(AttachedFields):
    """A recommendation of a task with the labels of its metrics."""

    labels: list[str]
    damaged: str | None
    """why the recommendation cannot be read; it has no labels then"""


@dataclass(frozen=True, kw_only=True)
class AttachedAnswer(AttachedSummary):
    """A recommendation of a task, with the thresholds of its metrics."""

    thresholds: list[ThresholdDocument]
    recommendation: RecommendationDocument


@dataclass(frozen=True, kw_only=True)
class AttachedRecommendation(AttachedFields):
    """Metrics and thresholds of a task: a row of `recommendations`."""

    document: str = field(repr=False)
    """the recommendation as JSON text, unchanged"""
    thresholds_document: str = field(repr=False)
    """the thresholds as JSON text, unchanged"""

    @cached_property
    def recommendation(self) -> "Recommendation":
        """The recommendation.

        Raises:
            UnavailableError: it differs from the attached document.
        """
        from lifelong_core.design import Recommendation

        self._check()
        return read_kept(Recommendation.from_json, self.document, name=self.name)

    @cached_property
    def thresholds(self) -> "tuple[AcceptanceThreshold, ...]":
        """Thresholds of acceptance; empty: none were stated.

        Raises:
            UnavailableError: they differ from the attached document.
        """
        self._check()
        return read_kept(_thresholds_in, self.thresholds_document, name=self.name)

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"recommendation {self.version} of {self.task}"

    def summary(self) -> AttachedSummary:
        """The recommendation for a list, which stays readable if one recommendation is damaged."""
        from lifelong_core.design.recommendation.document import label_metrics

        try:
            _ = self.thresholds
            labels, damage = [label for label, _ in label_metrics(self.recommendation)], None
        except UnavailableError as error:
            labels, damage = [], error.message
        return AttachedSummary.of(self, labels=labels, damaged=damage)

    def answer(self, class_names: Sequence[str]) -> AttachedAnswer:
        """The recommendation as text, with the names of the classes and its thresholds.

        Raises:
            UnavailableError: it differs from the attached document.
        """
        from lifelong_core.design.recommendation.views import view_recommendation

        return AttachedAnswer.of(
            self.summary(),
            thresholds=[threshold.model_dump(mode="json") for threshold in self.thresholds],
            recommendation=view_recommendation(self.recommendation, class_names).to_document(),
        )

    def _check(self) -> None:
        if text_digest(self.document, self.thresholds_document) != self.digest:
            raise damage_error(self.name, "the digest of its document differs from the attached one.")


@dataclass(frozen=True, kw_only=True)
class PublishedHeadAnswer(Entity):
    """A head that became active with a recommendation."""

    environment: str | None
    """null: the model's default head"""
    version: int


@dataclass(frozen=True, kw_only=True)
class PublishedHead(PublishedHeadAnswer):
    """A head that was published with a recommendation."""

    record: HeadRecord


@dataclass(frozen=True, kw_only=True)
class KeptHead(Entity):
    """A head that stays in force when a recommendation is attached, and why."""

    environment: str | None
    """null: the model's default head"""
    version: int | None
    cause: KeptCause
    reason: str
    """`cause` in a sentence"""


@dataclass(frozen=True, kw_only=True)
class RefitAnswer(Entity):
    """Heads of the task's promoted model that became active with a recommendation, and heads that stayed."""

    model: str | None = None
    """null: no refit was requested"""
    head_version: int | None = None
    """of the default head in force"""
    published: tuple[PublishedHeadAnswer, ...] = ()
    """the default head first"""
    kept: tuple[KeptHead, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Refit:
    """Result of attaching a recommendation and refitting the heads of the task's promoted model."""

    attached: AttachedRecommendation
    model: Model
    published: tuple[PublishedHead, ...]
    """the default head first"""
    kept: tuple[KeptHead, ...]

    @property
    def default_version(self) -> int | None:
        """Version of the default head in force."""
        versions = {head.environment: head.version for head in self.kept}
        return (versions | {head.environment: head.version for head in self.published})[None]


@dataclass(frozen=True, kw_only=True)
class DifferingHeadAnswer(Entity):
    """A head in force that decides by other costs or another rule than its task, or is for another class mix than the
    one that the recommendation states.
    """

    model: str
    environment: str | None
    """null: the model's default head"""
    version: int
    differs_in: tuple[Difference, ...]
    sentence: str
    """the same in words"""


@dataclass(frozen=True, kw_only=True)
class DifferingHead(DifferingHeadAnswer):
    """A head in force that differs from its task, and its place."""

    is_promoted: bool
    """whether its model is the promoted one of the task"""
    is_pinned: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class AttachmentEffects(Entity):
    """Costs and decision rule of a task after a recommendation was attached, and the heads that differ from them."""

    costs: Matrix
    decision_rule: Rule
    decision_rule_text: str
    """the decision rule as a phrase"""
    not_executed: str | None
    """why the task keeps its rule although the answers state one; null: it took that rule over, or they state none"""
    differing_heads: tuple[DifferingHeadAnswer, ...]
    hint: str | None
    """how to fit these heads again; null: none differs"""


@dataclass(frozen=True, eq=False, kw_only=True)
class NewlyAttached(AttachedAnswer, RefitAnswer, AttachmentEffects):
    """A recommendation, costs and decision rule of its task, the heads that became active with it, and the others."""


def _thresholds_in(text: str) -> "tuple[AcceptanceThreshold, ...]":
    from lifelong_core.design.validation.acceptance import AcceptanceThreshold

    try:
        return TypeAdapter(tuple[AcceptanceThreshold, ...]).validate_json(text)
    except ValidationError as error:
        raise as_input_error(error, AcceptanceThreshold) from error
