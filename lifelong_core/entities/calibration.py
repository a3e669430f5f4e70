"""What is known of a calibration set before and after its head is published."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from typing_extensions import TypedDict

from lifelong_core.deploy.calibration_acceptance.class_mix_mean import Figure
from lifelong_core.deploy.calibration_acceptance.findings import Finding
from lifelong_core.deploy.calibration_acceptance.report import HeadFigures
from lifelong_core.entities.entity import Described, Entity
from lifelong_core.entities.heads import CalibrationSetAnswer

Outcome: TypeAlias = Literal["published", "forced", "refused"]


class CalibrationReportAnswer(TypedDict):
    """Quality of the head of a calibration set (docs/calibration.md); figures are for the class mix of the set.

    `old`, `change` and `previous` are null if there is nothing to compare with.
    """

    schema_version: int
    verdict: Literal["accepted", "refused"]
    samples: int
    class_names: list[str]
    counts: list[int]
    groups: int | None
    crossfitted: bool
    new: HeadFigures
    old: HeadFigures | None
    change: HeadFigures | None
    previous: HeadFigures | None
    skill: Figure
    majority_accuracy: float
    constant_cost: float
    constant_decision: str
    findings: list[Finding]


Report: TypeAlias = Annotated[dict[str, Any], Described(CalibrationReportAnswer)]


@dataclass(frozen=True, kw_only=True)
class JudgedCalibration(Entity):
    """The head of a calibration set, and its report."""

    model: str
    """name@version"""
    old_head_version: int | None
    """version of the default head before; null: there was none"""
    decision_rule_text: str
    """the decision rule of the head as a phrase, with its cut-off"""
    expected_criterion_text: str | None
    """what the rule's metric will be at the assumed prevalence; null: the rule searches no cut-off"""
    report: Report


@dataclass(frozen=True, kw_only=True)
class CalibrationTrialAnswer(JudgedCalibration):
    """The report of a dry run of a calibration set."""

    dry_run: bool
    outcome: Outcome
    """what the same call does without `dry_run`; forced: published although the report refuses"""


@dataclass(frozen=True, eq=False, kw_only=True)
class NewCalibrationSetAnswer(JudgedCalibration, CalibrationSetAnswer):
    """An added calibration set, the head fitted on it, its report, and whether it is served."""

    head_version: int
    serving: str
    """what serves the model now, in words"""
