"""Differences between the metrics of two models on the same samples, with intervals.

The same draws serve both models, so what makes a sample hard for both cancels: the interval of a difference is usually
much narrower than those of the two values tell. It holds for these two fixed models, not for their ways of training.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np
from pydantic import Field

from lifelong_core.design.validation.values.intervals import ValueBounds, difference_bounds
from lifelong_core.design.validation.values.metric_value import EstimatedValue, Number, Orientation, as_fields
from lifelong_core.design.validation.values.parts import PartValue
from lifelong_core.metrics import METRICS
from lifelong_core.metrics.resampling.intervals import Bootstrap, LeftOut
from lifelong_core.values.arrays import Floats

Side: TypeAlias = Literal["new", "current"]
Direction: TypeAlias = Literal["better", "worse", "open"]
"""Of the new model: `open` where the interval of the difference holds 0, or there is none."""

OF_EXCESS = "The difference is that of the excess over perfectly calibrated predictions."
SAME = "Both models give the same probabilities and decisions for every sample."


class MetricDifference(EstimatedValue):
    """The value of the new model less that of the current one, with the interval of this paired difference."""

    metric: str = Field(description="The acronym, as in METRICS.")
    orientation: Orientation = Field(description="Which values of the metric are better.")
    new: Number = Field(description="Value of the new model.")
    current: Number = Field(description="Value of the current model.")
    infinite_values: Mapping[Side, Literal[-1, 1]] = Field(
        default={}, description="Signs of infinite values of the models."
    )
    direction: Direction = Field(description="What the interval tells of the new model.")
    direction_among_all: Direction = Field(
        default="open",
        description="The same, allowing for all differences that were judged together with this one.",
    )

    def value(self, side: Side) -> float:
        """The value of one model; nan if undefined, or infinite."""
        number = getattr(self, side)
        return number if number is not None else math.inf * self.infinite_values.get(side, math.nan)


class SubgroupDifference(MetricDifference):
    """A difference in one subgroup."""

    attribute: str
    key: str
    samples: int


@dataclass(frozen=True, eq=False)
class ResampledDifference:
    """A difference with its resampled values."""

    document: MetricDifference
    resampled: Bootstrap
    """of shape ()"""
    limits: tuple[float, float]
    """the least and the largest difference that there can be"""
    cases: int
    """number of independent cases behind the value"""
    chance: tuple[float, float] | None = None
    """largest bias of a difference of excesses upwards and downwards: the excess subtracts more error by chance than
    an error above 0 contains"""

    @classmethod
    def of(cls, metric: str, new: PartValue, current: PartValue, *, level: float, is_same: bool) -> Self:
        """The difference of one value.

        Args:
            metric: the acronym.
            new: of the new model.
            current: the same value of the current one.
            level: nominal coverage of the interval.
            is_same: whether both models have the same outputs for every sample.
        """
        resampled = subtract(new.compared, current.compared)
        low, high = new.limits
        limits, cases = (low - high, high - low), min(new.cases, current.cases)
        chance = None
        if new.chance is not None and current.chance is not None:
            chance = (current.chance, new.chance)
        bounds = _bounds(resampled, level, limits, cases, chance, is_same=is_same)
        estimate = float(resampled.estimate)
        numbers = {"estimate": estimate, "low": bounds.low, "high": bounds.high}
        values = as_fields(
            {"new": float(new.resampled.estimate), "current": float(current.resampled.estimate)}
        )
        orientation: Orientation = "up" if METRICS[metric].orientation == "up" else "down"
        reasons = [side.fields["reason"] for side in (new, current) if side.fields["reason"] is not None]
        document = MetricDifference.model_validate(
            {
                "metric": metric,
                **{name: new.fields[name] for name in ("label", "class_index", "value_of")},
                **as_fields(numbers),
                "reason": (reasons or ["both values are infinite"])[0] if math.isnan(estimate) else None,
                "method": bounds.method,
                "replicates": bounds.replicates,
                "notes": bounds.notes if new.chance is None else (*bounds.notes, OF_EXCESS),
                "orientation": orientation,
                "new": values["new"],
                "current": values["current"],
                "infinite_values": values["infinite"],
                "direction": direction_of(bounds.low, bounds.high, orientation),
            }
        )
        return cls(document, resampled, limits, cases, chance)

    def at_level(self, level: float) -> Direction:
        """Direction of the new model according to an interval of another nominal coverage."""
        bounds = difference_bounds(
            self.resampled, level=level, limits=self.limits, cases=self.cases, chance=self.chance
        )
        return direction_of(bounds.low, bounds.high, self.document.orientation)

    @property
    def spread(self) -> float:
        """Standard error by the replicates; nan where some are infinite."""
        values = self.resampled.replicates[~np.isnan(self.resampled.replicates)]
        if values.size < 2 or not np.isfinite(values).all():
            return math.nan
        return float(values.std(ddof=1))


def judge_together(family: Sequence[ResampledDifference], *, level: float) -> list[MetricDifference]:
    """The differences with `direction_among_all`: that some of equal models differ has a probability of 1 - level.

    A difference counts if its own interval lies beyond 0 and it is larger, in standard errors, than the largest
    deviation of any of them from its mean in `level` of the resampled data sets (Westfall and Young, 1993: single-step
    max-T). As all share the draws, this allows for how they depend on each other. Where a difference does not vary
    over the draws, the level is divided by the number of differences (Bonferroni).

    Args:
        family: differences of the same samples, from the same draws.
        level: nominal probability that no difference of equal models counts.
    """
    spreads = [difference.spread for difference in family]
    varying = [difference for difference, spread in zip(family, spreads, strict=True) if spread > 0]
    critical = _critical(varying, level)
    share = 1 - (1 - level) / max(1, len(family))
    judged: list[MetricDifference] = []
    for difference, spread in zip(family, spreads, strict=True):
        document = difference.document
        if spread > 0:
            counts = abs(document.number("estimate")) > critical * spread
        else:
            counts = difference.at_level(share) == document.direction
        judged.append(
            document.model_copy(update={"direction_among_all": document.direction if counts else "open"})
        )
    return judged


def _critical(family: Sequence[ResampledDifference], level: float) -> float:
    """Quantile over the draws of the largest deviation among all differences, in standard errors."""
    if not family:
        return math.inf
    draws = min(len(difference.resampled.replicates) for difference in family)
    largest: Floats = np.zeros(draws)
    for difference in family:
        values = difference.resampled.replicates[:draws]
        deviations = np.abs(values - np.nanmean(difference.resampled.replicates)) / difference.spread
        largest = np.fmax(largest, deviations)
    return float(np.quantile(largest, level))


def _bounds(
    resampled: Bootstrap,
    level: float,
    limits: tuple[float, float],
    cases: int,
    chance: tuple[float, float] | None,
    *,
    is_same: bool,
) -> ValueBounds:
    if is_same and float(resampled.estimate) == 0 and not np.nan_to_num(resampled.replicates).any():
        return ValueBounds(0.0, 0.0, "unseen", len(resampled.replicates), (SAME,))
    return difference_bounds(resampled, level=level, limits=limits, cases=cases, chance=chance)


def subtract(first: Bootstrap, second: Bootstrap) -> Bootstrap:
    """The difference of two statistics of the same data, draw by draw."""
    with np.errstate(invalid="ignore"):  # infinite values have no difference
        return Bootstrap(
            first.estimate - second.estimate,
            first.replicates - second.replicates,
            tuple(
                LeftOut(left.values - right.values, left.multiplicity)
                for left, right in zip(first.left_out, second.left_out, strict=True)
            ),
        )


def direction_of(low: float, high: float, orientation: Orientation) -> Direction:
    """Direction of the new model according to the interval of a difference.

    Examples:
        >>> direction_of(0.01, 0.2, "up"), direction_of(0.01, 0.2, "down"), direction_of(-0.1, 0.2, "up")
        ('better', 'worse', 'open')
    """
    if math.isnan(low) or math.isnan(high) or low <= 0 <= high:
        return "open"
    return "better" if (low > 0) == (orientation == "up") else "worse"
