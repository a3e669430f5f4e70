"""Confusion matrix, curves and subgroup metrics as plain values."""

from pydantic import Field

from lifelong_core.design.recommendation.parameters import Matrix
from lifelong_core.design.validation.values.metric_value import EstimatedValue, MetricValue, Number
from lifelong_core.values.documents import Frozen


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
