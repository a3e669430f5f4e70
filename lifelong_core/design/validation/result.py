"""The result of a validation as a document that can be stored, sent and printed."""

from typing import Literal, TypeAlias

from pydantic import Field

from lifelong_core.design.method.conditions import Matrix
from lifelong_core.design.recommendation.document import Recommendation
from lifelong_core.design.validation.acceptance import AcceptanceOutcome, all_passed
from lifelong_core.design.validation.decisions.targets import JudgedDecisions
from lifelong_core.design.validation.uncertainty.document import UncertaintyAwareScores
from lifelong_core.design.validation.values.calibration import CalibrationAgreement
from lifelong_core.design.validation.values.metric_value import (
    CustomValue,
    EstimatedValue,
    MetricValue,
    Number,
)
from lifelong_core.values.documents import Frozen, FrozenDocument
from lifelong_core.values.errors import InvalidInputError

SCHEMA_VERSION = 3


Aggregation: TypeAlias = Literal["pooled", "by_group"]


class ConfusionTable(Frozen):
    """Counts of each true class by decision."""

    counts: tuple[tuple[int, ...], ...] = Field(
        description="Shape (C, D): rows true classes, columns decisions, the last to abstain where D = C + 1."
    )
    shares: tuple[tuple[Number, ...], ...] = Field(
        description="Counts over the row's sum; None where a class has no sample."
    )
    invalid: tuple[int, ...] = Field(
        description="Samples of each class without a valid output; `counts` excludes them."
    )


class RocPoints(Frozen):
    """ROC curve of a class against the rest, thinned to a few hundred points."""

    class_index: int
    thresholds: tuple[Number, ...] = Field(description="Descending; the first is infinite, and so None.")
    false_positive_rate: tuple[float, ...]
    true_positive_rate: tuple[float, ...]
    area: float = Field(description="Area under the whole curve.")


class PrecisionRecallPoints(Frozen):
    """Precision-recall curve of a class against the rest, thinned to a few hundred points."""

    class_index: int
    thresholds: tuple[float, ...] = Field(description="Descending.")
    recall: tuple[float, ...]
    precision: tuple[float, ...]
    average_precision: float = Field(description="Average precision of the whole curve.")
    prevalence: float = Field(description="Share of the class: the precision of an uninformative score.")


class ReliabilityBins(Frozen):
    """Predicted probabilities and observed frequencies in bins: a reliability diagram."""

    class_index: int | None = Field(
        description="Class of the probabilities; None: the likeliest class of each sample."
    )
    edges: tuple[float, ...] = Field(description="B + 1 edges.")
    counts: tuple[int, ...] = Field(description="Samples in each bin.")
    confidence: tuple[Number, ...] = Field(description="Mean probability in each bin; None in an empty one.")
    frequency: tuple[Number, ...] = Field(description="Observed share in each bin; None in an empty one.")


class DecisionCurvePoints(Frozen):
    """Net benefit by risk threshold, of the model and of treating all; treating none has 0."""

    class_index: int = Field(description="The target class.")
    thresholds: tuple[float, ...]
    net_benefit: tuple[float, ...]
    treat_all: tuple[float, ...]
    prevalence: Number = Field(
        default=None,
        description="Stated share of the class in use, for which the curve holds; None: that of the data.",
    )


class AdjustedCost(Frozen):
    """Expected cost at the stated class shares, with the errors of each class as in the data."""

    prevalence: tuple[float, ...] = Field(description="The stated target prevalences.")
    costs: Matrix
    adjusted: MetricValue = Field(
        description="EC at the target prevalences; its `naive` is the cheapest constant decision."
    )
    observed: MetricValue = Field(description="EC at the class shares of the data.")


class SubgroupMetric(EstimatedValue):
    """A metric of one subgroup, with an interval from the same resampled data sets."""


class SubgroupResult(Frozen):
    """The metrics of one subgroup: samples with the same value of an attribute."""

    attribute: str = Field(description="Attribute of the subgroup, e.g. the scanner.")
    key: str = Field(description="Value of the attribute.")
    samples: int
    cases: int = Field(description="Number of independent cases: groups, such as patients, else samples.")
    class_samples: tuple[int, ...]
    values: tuple[SubgroupMetric, ...]
    warnings: tuple[str, ...] = Field(description="Reasons why the values may be far off.")


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
    decisions: JudgedDecisions = Field(description="Which decisions the metrics judge.")
    calibration_agreement: tuple[CalibrationAgreement, ...] = Field(
        default=(),
        description="Calibration slope and O:E ratio of each class, where calibration is assessed (FP2.7).",
    )
    custom: tuple[CustomValue, ...] = Field(
        default=(), description="Metrics of the user; neither ranked nor judged by thresholds."
    )

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
