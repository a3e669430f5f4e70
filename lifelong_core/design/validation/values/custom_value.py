"""Metrics of users in a validation, with intervals of the same resamples as the recommended metrics."""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from lifelong_core.design.validation.outputs import Samples
from lifelong_core.design.validation.values.intervals import value_bounds
from lifelong_core.design.validation.values.metric_value import Bound, EstimatedValue, Number, Orientation
from lifelong_core.design.validation.values.parts import finite
from lifelong_core.design.validation.values.resampled_metrics import SLOW_REPLICATES
from lifelong_core.design.validation.values.resamples import Resamples
from lifelong_core.metrics import CustomMetric
from lifelong_core.metrics.computation import UNDEFINED
from lifelong_core.values.arrays import Floats


class CustomValue(EstimatedValue):
    """A user's metric with its card; it is neither ranked nor judged by thresholds."""

    name: str = Field(description="Name of the metric.")
    meaning: str
    needs: tuple[Literal["labels", "decisions", "probabilities"], ...] = Field(
        description="What its function gets."
    )
    orientation: Orientation = Field(description="Which values are better.")
    range: tuple[Number, Number] = Field(description="Least and largest value; None: no end.")
    level: float = Field(description="Nominal coverage of the interval.")


def custom_value(
    metric: CustomMetric, samples: Samples, resamples: Resamples, *, level: float
) -> CustomValue:
    """The metric of the samples, with an interval from the first 200 resamples.

    Raises:
        InvalidInputError: the metric needs probabilities and there are none, or its function fails.
    """
    draws = resamples.first(SLOW_REPLICATES)

    def value(times: NDArray[np.uint8]) -> float:
        return _value(metric, samples.part(np.repeat(np.arange(samples.size), times)))

    def values(weights: NDArray[np.uint8]) -> Floats:
        return np.array([value(times) for times in weights])

    found = draws.split(draws.values(values))
    bounds = value_bounds(found, level=level, limits=metric.bounds, cases=samples.cases)
    numbers: dict[Bound, float] = {
        "estimate": float(found.estimate),
        "low": bounds.low,
        "high": bounds.high,
    }
    return CustomValue(
        label=metric.acronym,
        value_of="all_classes",
        estimate=finite(numbers["estimate"]),
        low=finite(bounds.low),
        high=finite(bounds.high),
        infinite={bound: 1 if number > 0 else -1 for bound, number in numbers.items() if math.isinf(number)},
        reason=UNDEFINED if math.isnan(numbers["estimate"]) else None,
        method=bounds.method,
        replicates=bounds.replicates,
        notes=bounds.notes,
        name=metric.name,
        meaning=metric.meaning,
        needs=metric.needs,
        orientation=metric.orientation,
        range=(finite(metric.bounds[0]), finite(metric.bounds[1])),
        level=level,
    )


def _value(metric: CustomMetric, part: Samples) -> float:
    valid = part.part(part.is_valid)
    return metric.value(
        labels=valid.labels,
        decisions=valid.decisions,
        probabilities=valid.probabilities,
        invalid=part.size - valid.size,
    )
