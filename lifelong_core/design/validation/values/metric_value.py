"""Values of metrics with their uncertainty, as parts of a result."""

import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import Field

from lifelong_core.design.method.conditions import ParameterValue
from lifelong_core.values.documents import Frozen

Number: TypeAlias = float | None
"""None: undefined, or infinite where `infinite` says so."""

Bound: TypeAlias = Literal["estimate", "low", "high"]

ValueOf: TypeAlias = Literal["all_classes", "one_class", "mean", "weighted_mean"]
"""`all_classes`: the metric is one number; `one_class`: of a class against the rest; else the mean of these."""

Orientation: TypeAlias = Literal["up", "down"]

ValueInterval: TypeAlias = Literal["bca", "basic", "debiased", "unseen"]
"""`bca`: bootstrap, bias-corrected and accelerated. `basic`: where the metric is more than a standard error larger or
smaller on resampled data; the quantiles of the replicates reflected at the estimate, widened to hold it. `debiased`:
of calibration errors; the spread of the replicates around the estimate, at the lower end less the error that calibrated
predictions have by chance. `unseen`: nothing varied in the resamples, such as no error at all; the ends are those of
the largest share of best and of worst outcomes that so many cases could have missed by chance."""


class CutOff(Frozen):
    """The cut-off at which a metric@target is computed, and its origin."""

    threshold: Number = Field(
        description="Least score that decides for the class; None: no cut-off was found, or no case is decided for it."
    )
    target_metric: str
    target_value: float
    chosen_on: Literal["other_data", "half_of_the_data"] = Field(
        description="`half_of_the_data`: a random half of the cases, and the metric is that of the other half."
    )
    samples: int = Field(description="Number of samples of the metric.")
    reached: Number = Field(description="Value of the target metric on these samples.")


class CalibrationReference(Frozen):
    """A calibration error of perfectly calibrated predictions: the same probabilities, with labels drawn from them."""

    mean: float
    high: float = Field(description="95 % quantile: a smaller error is no evidence of miscalibration.")
    excess: float = Field(description="Estimate less the mean, by which models are compared.")
    draws: int = Field(description="Number of sets of labels that were drawn from the probabilities.")


class EstimatedValue(Frozen):
    """A number with its interval.

    A number is None where it is undefined; `reason` says why the estimate is, `notes` why there is no interval. JSON
    knows no infinity: an infinite number is None too, and `infinite` gives its sign; `number` reads both.
    """

    label: str = Field(
        description="Metric with its parameters, TNR@(TPR=0.95); different for each recommended metric."
    )
    class_index: int | None = Field(default=None, description="None: of all classes.")
    value_of: ValueOf
    estimate: Number
    low: Number = Field(description="Lower end of the interval.")
    high: Number = Field(description="Upper end of the interval.")
    infinite: Mapping[Bound, Literal[-1, 1]] = Field(default={}, description="Signs of infinite numbers.")
    reason: str | None = Field(description="Why the estimate is undefined; None if it is defined.")
    method: ValueInterval
    replicates: int = Field(description="Resampled data sets in which the metric is defined.")
    notes: tuple[str, ...] = Field(default=(), description="Remarks, in sentences.")
    calibrated: CalibrationReference | None = Field(
        default=None,
        description="Error of perfectly calibrated predictions beside a calibration error; None: another metric.",
    )

    def number(self, bound: Bound) -> float:
        """The estimate or an end of its interval; nan if undefined, or infinite."""
        value = getattr(self, bound)
        return value if value is not None else math.inf * self.infinite.get(bound, math.nan)

    @property
    def has_interval(self) -> bool:
        """Whether the estimate has an interval."""
        return not (math.isnan(self.number("low")) or math.isnan(self.number("high")))


class MetricValue(EstimatedValue):
    """The value of one recommended metric, of one class or of all."""

    metric: str = Field(description="The acronym, as in METRICS.")
    parameters: Mapping[str, ParameterValue] = Field(default={}, description="As compute_metrics takes them.")
    subprocesses: tuple[str, ...] = Field(
        default=(), description="The steps that recommend it, S3 for instance."
    )
    class_weights: tuple[float, ...] | None = Field(default=None, description="Weights of a weighted mean.")
    prevalence: tuple[float, ...] | None = Field(
        default=None,
        description="Stated or assumed class shares of use, at which the value is computed; None: those of the data.",
    )
    refusal: str | None = Field(
        default=None,
        description="Why no acceptance threshold is judged by the value: it holds for another class mix than that of"
        " use; None: it may be.",
    )
    level: float = Field(description="Nominal coverage of the interval.")
    standard_error: Number = Field(
        default=None,
        description="Standard error of a value from a random part of the samples, around the value of all.",
    )
    orientation: Orientation = Field(description="Which values are better.")
    range: tuple[Number, Number] = Field(
        description="Worst to best or best to worst, ascending; None: no end."
    )
    naive: Number = Field(
        default=None,
        description="Value of a classifier that ignores the image, on the same samples; None: no such value.",
    )
    cut_off: CutOff | None = Field(default=None, description="Cut-off of a metric@target, for one class.")

    @property
    def worse_end(self) -> Bound:
        """The end of the interval on the bad side."""
        return "low" if self.orientation == "up" else "high"


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


def finite(number: float) -> Number:
    """The number, or None for infinite numbers and nan, which JSON lacks."""
    return number if math.isfinite(number) else None


def as_fields(numbers: Mapping[str, float]) -> dict[str, Any]:
    """Numbers, with the signs of infinite ones."""
    signs = {name: int(math.copysign(1, number)) for name, number in numbers.items() if math.isinf(number)}
    return {**{name: finite(number) for name, number in numbers.items()}, "infinite": signs}
