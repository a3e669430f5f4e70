"""Uncertainty-aware scores as plain values."""

from typing import Literal, TypeAlias

from pydantic import Field

from lifelong_core.design.validation.values.metric_value import Number, Orientation, ValueInterval
from lifelong_core.values.documents import Frozen
from lifelong_core.values.uncertainty_kinds import UncertaintyKind

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
