"""Answers about the report of a calibration set."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from lifelong_core.entities.heads import CalibrationSetAnswer

Comparison = Annotated["HeadFigures | None", Field(description="null: there is nothing to compare with.")]


Outcome = Literal["published", "forced", "refused"]


class Figure(TypedDict):
    """A value with the ends of its 95 % confidence interval."""

    value: float
    low: float
    high: float


class HeadFigures(TypedDict):
    """Metrics of a head on labelled cases, or the difference of two heads on the same cases."""

    accuracy: Figure
    expected_cost: Figure
    calibration_error: Figure
    brier_score: Figure


class CalibrationFinding(TypedDict):
    """A defect of a calibration set."""

    code: str
    severity: Literal["refusal", "warning"]
    text: str
    hint: str | None


class CalibrationReportAnswer(TypedDict):
    """Quality of the head of a calibration set (docs/calibration.md); figures are for the class mix of the set."""

    schema_version: int
    verdict: Literal["accepted", "refused"]
    samples: int
    class_names: list[str]
    counts: list[int]
    groups: int | None
    crossfitted: bool
    new: HeadFigures
    old: Comparison
    change: Comparison
    previous: Comparison
    skill: Figure
    majority_accuracy: float
    constant_cost: float
    constant_decision: str
    findings: list[CalibrationFinding]


class CalibrationTrialAnswer(TypedDict):
    """The report of a dry run of a calibration set; `old_head_version` is the version of the present default head."""

    model: str
    dry_run: bool
    outcome: Annotated[
        Outcome,
        Field(
            description="What the same call does without `dry_run`; forced: published although the report refuses."
        ),
    ]
    old_head_version: int | None
    decision_rule_text: Annotated[
        str, Field(description="The decision rule of the head as a phrase, with its cut-off.")
    ]
    expected_criterion_text: Annotated[
        str | None,
        Field(
            description="What the rule's metric will be at the assumed prevalence; null: the rule searches no cut-off."
        ),
    ]
    report: CalibrationReportAnswer


@dataclass(frozen=True, eq=False, kw_only=True)
class NewCalibrationSetAnswer(CalibrationSetAnswer):
    """An added calibration set, the head fitted on it, its report, and whether it is served."""

    model: str
    head_version: int
    old_head_version: int | None
    decision_rule_text: str
    """the decision rule of the head as a phrase, with its cut-off"""
    expected_criterion_text: str | None
    """what the rule's metric will be at the assumed prevalence; null: the rule searches no cut-off"""
    report: CalibrationReportAnswer
    serving: str
    """what serves the model now, in words"""
