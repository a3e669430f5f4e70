"""The result of a validation as a document that can be stored, sent and printed."""

from typing import Any, Literal, TypeAlias, cast

from pydantic import Field, model_validator

from lifelong_core.design.recommendation.document import Recommendation
from lifelong_core.design.validation.acceptance import AcceptanceOutcome, all_passed
from lifelong_core.design.validation.decisions.document import JudgedDecisions
from lifelong_core.design.validation.displays import (
    AdjustedCost,
    ConfusionTable,
    DecisionCurvePoints,
    PrecisionRecallPoints,
    ReliabilityBins,
    RocPoints,
    SubgroupResult,
)
from lifelong_core.design.validation.uncertainty.document import UncertaintyAwareScores
from lifelong_core.design.validation.values.calibration_agreement import CalibrationAgreement
from lifelong_core.design.validation.values.custom_value import CustomValue
from lifelong_core.design.validation.values.metric_value import MetricValue, Number
from lifelong_core.values.documents import FrozenDocument
from lifelong_core.values.errors import InvalidInputError

SCHEMA_VERSION = 3


Aggregation: TypeAlias = Literal["pooled", "by_group"]


class ValidationResult(FrozenDocument):
    """The recommended metrics of one model on one labelled set, with confusion matrix and curves."""

    schema_version: Literal[3] = SCHEMA_VERSION
    name: str = Field(description="Name of the model.")
    recommendation: Recommendation
    class_names: tuple[str, ...]
    samples: int
    invalid_samples: int = Field(
        description="Samples without a valid output, which count as the worst value."
    )
    cases: int = Field(description="Number of independent cases: groups, such as patients, else samples.")
    groups: bool = Field(description="Whether whole groups were resampled.")
    aggregation: Aggregation = Field(
        default="pooled",
        description="`by_group`: metrics of each group, and their mean over the groups; else of all samples.",
    )
    level: float = Field(description="Nominal coverage of the intervals.")
    replicates: int = Field(description="Number of resampled data sets.")
    seed: int
    prevalence: tuple[float, ...] = Field(description="Share of each class in the data.")
    target_prevalences: tuple[float, ...] | None = Field(description="Stated class shares of use.")
    values: tuple[MetricValue, ...] = Field(
        description="In the order of the recommendation; the summary of a metric comes first, then its classes."
    )
    confusion: ConfusionTable
    roc_curves: tuple[RocPoints, ...] = Field(
        description="One for each class that occurs, if another class occurs too."
    )
    precision_recall_curves: tuple[PrecisionRecallPoints, ...] = Field(
        description="One for each class that occurs."
    )
    reliability: tuple[ReliabilityBins, ...] = Field(
        description="First that of the likeliest class, then each class; none without valid probabilities."
    )
    decision_curves: tuple[DecisionCurvePoints, ...]
    adjusted_expected_cost: AdjustedCost | None = Field(description="None without stated target prevalences.")
    subgroups: tuple[SubgroupResult, ...]
    warnings: tuple[str, ...] = Field(description="Limits of the numbers, in sentences.")
    acceptance: tuple[AcceptanceOutcome, ...] = Field(description="In the order of the thresholds.")
    uncertainty_aware: UncertaintyAwareScores | None = Field(
        default=None,
        description="Scores that weigh samples by their uncertainty; None: no uncertainties were given.",
    )
    decisions: JudgedDecisions | None = Field(
        default=None,
        description="Which decisions the metrics judge; None: a result of version 2, of given decisions, else of the"
        " likeliest class.",
    )

    calibration_agreement: tuple[CalibrationAgreement, ...] = Field(
        default=(),
        description="Calibration slope and O:E ratio of each class, where calibration is assessed (FP2.7).",
    )
    custom: tuple[CustomValue, ...] = Field(
        default=(), description="Metrics of the user; neither ranked nor judged by thresholds."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_older_version(cls, document: Any) -> Any:
        """Read version 1, without uncertainty-aware scores, and 2, without decisions and calibrated references."""
        if not isinstance(document, dict):
            return document
        given = cast("dict[str, Any]", document)
        newer = {1: {"uncertainty_aware", "decisions"}, 2: {"decisions"}}.get(given.get("schema_version", 0))
        if newer is None or newer & given.keys():
            return given
        return {**given, "schema_version": SCHEMA_VERSION}

    @property
    def accepted(self) -> bool | None:
        """Whether all thresholds are reached; None if that is undecided, or there are none."""
        return all_passed(self.acceptance)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the recommended metrics, in their order."""
        return tuple(dict.fromkeys(value.label for value in self.values))

    def value(self, label: str, class_index: int | None = None) -> MetricValue:
        """The value of a metric: of one class, or (None) its summary.

        Raises:
            InvalidInputError: there is no such value.
        """
        own = [value for value in self.values if value.label == label]
        found = next((value for value in own if class_index in (None, value.class_index)), None)
        if found is None:
            raise InvalidInputError(
                f"there is no value {label[:80]!r}" + (f" of class {class_index}." if own else "."),
                field="class_index" if own else "label",
                hint=f"Metrics: {', '.join(self.labels)}.",
            )
        return found

    def estimate(self, label: str, class_index: int | None = None) -> Number:
        """The estimate of `value`."""
        return self.value(label, class_index).estimate
