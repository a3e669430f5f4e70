"""Settings and scores of an uncertainty-aware validation, as documents."""

from itertools import pairwise
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from lifelong_core.design.validation.values.metric_value import Number, Orientation, ValueInterval
from lifelong_core.values.documents import Frozen, FrozenDocument
from lifelong_core.values.uncertainties import MOST_DAMPINGS, MOST_SIGMAS, UncertaintyKind

LARGEST_SIGMA = 10.0
"""Beyond, nothing changes: the weights are proportional to the distance from the threshold"""

LARGEST_DAMPING = 1e6

SIGMAS = (0.0, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)

DAMPINGS = (0.0, 0.5, 1.0, 2.0)
"""Those of the paper (fig. 8)"""


UncertaintyAwareMetric: TypeAlias = Literal["UA-accuracy", "UA-precision", "UA-recall", "UA-FPR", "UA-F1"]


class UncertaintyAwareCurve(Frozen):
    """One score over all sigmas, for one damping factor."""

    metric: UncertaintyAwareMetric
    orientation: Orientation = Field(description="Which values are better.")
    damping: float = Field(description="d: how strongly uncertainty reduces the weight of a sample.")
    estimates: tuple[Number, ...] = Field(
        description="One for each sigma; None: no sample that counts has a weight."
    )
    low: tuple[Number, ...] = Field(description="Lower ends of the intervals; None: no interval.")
    high: tuple[Number, ...] = Field(description="Upper ends of the intervals; None: no interval.")
    methods: tuple[ValueInterval, ...] = Field(description="How each interval is made.")
    effective_cases: tuple[float, ...] = Field(
        description="Number of equally weighted independent cases that would vary as much (Kish): the square of the"
        " sum of the weights over the sum of their squares, among the samples of the score."
    )
    notes: tuple[str, ...] = Field(default=(), description="Remarks, in sentences.")


class UncertaintyAwareChange(Frozen):
    """The change of one score from the least to the largest damping factor, or sigma, on the same samples."""

    metric: UncertaintyAwareMetric
    orientation: Orientation = Field(description="Which values of the score are better.")
    of: Literal["damping", "sigma"] = Field(description="What changes, from its least to its largest value.")
    estimate: Number = Field(description="Score at the largest value less score at the least one.")
    low: Number = Field(description="Lower end of the interval; None: no interval.")
    high: Number = Field(description="Upper end of the interval; None: no interval.")
    method: ValueInterval

    @property
    def is_better(self) -> bool | None:
        """Whether the score gets better, by the whole interval; None: undecided."""
        if self.low is None or self.high is None or self.low <= 0 <= self.high:
            return None
        return (self.low > 0) == (self.orientation == "up")


class UncertaintyAwareScores(Frozen):
    """Scores of a binary task with smaller weights near the threshold and for uncertain samples (Sperling et al.)."""

    positive_class: int
    threshold: float = Field(description="t: decided positively from this probability on.")
    kind: UncertaintyKind = Field(description="What the uncertainties are.")
    members: int | None = Field(
        description="Number of outputs of each sample whose spread is the uncertainty; None: it was given."
    )
    smallest: float = Field(description="Smallest uncertainty.")
    median: float = Field(description="Median of the uncertainties.")
    largest: float = Field(description="Largest uncertainty.")
    sigmas: tuple[float, ...] = Field(description="s: spreads of the threshold, ascending.")
    dampings: tuple[float, ...] = Field(description="d: damping factors, ascending.")
    curves: tuple[UncertaintyAwareCurve, ...] = Field(
        description="By metric, then by damping factor in their order."
    )
    changes: tuple[UncertaintyAwareChange, ...] = Field(
        default=(),
        description="By metric: with the damping factor at the least sigma, and with sigma at the least damping factor;"
        " none where there is only one value.",
    )
    warnings: tuple[str, ...] = Field(default=(), description="Limits of the scores, in sentences.")

    def curve(self, metric: str, damping: float) -> UncertaintyAwareCurve:
        """The curve of a metric for a damping factor.

        Raises:
            KeyError: there is none.
        """
        for found in self.curves:
            if (found.metric, found.damping) == (metric, damping):
                return found
        raise KeyError(metric, damping)

    @property
    def metrics(self) -> tuple[UncertaintyAwareMetric, ...]:
        """The metrics, in their order."""
        return tuple(dict.fromkeys(curve.metric for curve in self.curves))


def _ascending(values: tuple[float, ...]) -> tuple[float, ...]:
    if any(low >= high for low, high in pairwise(values)):
        raise ValueError("expected different numbers in ascending order")
    return values


class UncertaintySettings(FrozenDocument):
    """The grid on which uncertainty-aware scores are computed."""

    sigmas: Annotated[
        tuple[Annotated[float, Field(ge=0, le=LARGEST_SIGMA)], ...],
        Field(min_length=1, max_length=MOST_SIGMAS),
        AfterValidator(_ascending),
    ] = Field(default=SIGMAS, description="Spreads of the threshold, ascending.")
    dampings: Annotated[
        tuple[Annotated[float, Field(ge=0, le=LARGEST_DAMPING)], ...],
        Field(min_length=1, max_length=MOST_DAMPINGS),
        AfterValidator(_ascending),
    ] = Field(default=DAMPINGS, description="Damping factors of the uncertainties, ascending.")
    threshold: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.5, description="Probability of the positive class from which on the decision is positive."
    )
    kind: UncertaintyKind = Field(
        default="other", description="What the given uncertainties are; their largest possible value follows."
    )
