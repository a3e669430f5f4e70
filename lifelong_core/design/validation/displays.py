"""What is shown beside the numbers: confusion matrix, curves and subgroups as plain values."""

from pydantic import Field

from lifelong_core.design.documents import Frozen
from lifelong_core.design.recommendation.parameters import Matrix
from lifelong_core.design.validation.values.metric_value import EstimatedValue, MetricValue, Number


class ConfusionTable(Frozen):
    """How often each class was decided as each."""

    counts: tuple[tuple[int, ...], ...] = Field(
        description="Shape (C, D): rows true classes, columns decisions, the last to abstain where D = C + 1."
    )
    shares: tuple[tuple[Number, ...], ...] = Field(
        description="Counts over the row's sum; None where a class has no sample."
    )
    invalid: tuple[int, ...] = Field(
        description="Samples of each class without a valid output, counted nowhere else."
    )


class RocPoints(Frozen):
    """ROC curve of a class against the rest, thinned to a few hundred points."""

    class_index: int
    thresholds: tuple[Number, ...] = Field(description="Descending; the first is infinite, and so None.")
    false_positive_rate: tuple[float, ...]
    true_positive_rate: tuple[float, ...]
    area: float = Field(description="Under the whole curve.")


class PrecisionRecallPoints(Frozen):
    """Precision-recall curve of a class against the rest, thinned to a few hundred points."""

    class_index: int
    thresholds: tuple[float, ...] = Field(description="Descending.")
    recall: tuple[float, ...]
    precision: tuple[float, ...]
    average_precision: float = Field(description="Of the whole curve.")
    prevalence: float = Field(description="Share of the class: the precision of a score that says nothing.")


class ReliabilityBins(Frozen):
    """Predicted probabilities and observed frequencies in bins: a reliability diagram."""

    class_index: int | None = Field(
        description="Whose probability; None: that of each sample's likeliest class."
    )
    edges: tuple[float, ...] = Field(description="B + 1 edges.")
    counts: tuple[int, ...] = Field(description="Samples in each bin.")
    confidence: tuple[Number, ...] = Field(description="Mean probability in each bin; None in an empty one.")
    frequency: tuple[Number, ...] = Field(description="Share that was as predicted; None in an empty bin.")


class DecisionCurvePoints(Frozen):
    """Net benefit by risk threshold, of the model and of treating everybody; treating nobody has 0."""

    class_index: int = Field(description="The class that is to be found.")
    thresholds: tuple[float, ...]
    net_benefit: tuple[float, ...]
    treat_all: tuple[float, ...]


class AdjustedCost(Frozen):
    """Expected cost where the classes are as frequent as stated, with the images per class as in the data."""

    prevalence: tuple[float, ...] = Field(description="The stated target prevalences.")
    costs: Matrix
    adjusted: MetricValue = Field(
        description="EC at the target prevalences; its `naive` is the cheapest constant decision."
    )
    observed: MetricValue = Field(description="EC at the class shares of the data.")


class SubgroupMetric(EstimatedValue):
    """A metric of one subgroup, with the interval of its samples in the same resampled data sets."""


class SubgroupResult(Frozen):
    """The metrics of the samples that have one thing in common."""

    attribute: str = Field(description="What they are told apart by, e.g. the scanner.")
    key: str = Field(description="What they have in common.")
    samples: int
    cases: int = Field(description="Independent ones: groups, such as patients, or else samples.")
    class_samples: tuple[int, ...]
    values: tuple[SubgroupMetric, ...]
    warnings: tuple[str, ...] = Field(description="Why the values may be far off.")
