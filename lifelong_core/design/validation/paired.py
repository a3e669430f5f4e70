"""Differences between two models on the same samples, with intervals from the same resampled data sets.

The same draws serve both models, so what makes a sample hard for both cancels: the interval of a difference is usually
much narrower than those of the two values tell. It holds for these two fixed models, not for their ways of training.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from lifelong_core.arrays import Floats
from lifelong_core.design.recommendation.document import RecommendedMetric
from lifelong_core.design.recommendation.parameters import as_matrix
from lifelong_core.design.validation.outputs import ModelOutputs, Samples
from lifelong_core.design.validation.validate import ResampledValidation, ValidationSettings, validate_one
from lifelong_core.design.validation.values.evaluation import Recipe
from lifelong_core.design.validation.values.intervals import value_bounds
from lifelong_core.design.validation.values.metric_value import EstimatedValue, Number, Orientation
from lifelong_core.design.validation.values.metric_values import EvaluatedMetric, evaluate_metric
from lifelong_core.design.validation.values.parts import PartValue, as_fields, finite
from lifelong_core.errors import InvalidInputError
from lifelong_core.metrics import METRICS
from lifelong_core.metrics.resampling.intervals import Bootstrap, LeftOut

Direction: TypeAlias = Literal["better", "worse", "open"]
"""Of the new model: `open` where the interval of the difference holds 0, or there is none."""


class MetricDifference(EstimatedValue):
    """The value of the new model less that of the current one, with the interval of this paired difference."""

    metric: str = Field(description="The acronym, as in METRICS.")
    orientation: Orientation = Field(description="Which values of the metric are better.")
    new: Number = Field(description="Value of the new model.")
    current: Number = Field(description="Value of the current model.")
    direction: Direction = Field(description="What the interval tells of the new model.")


class SubgroupDifference(MetricDifference):
    """A difference in one subgroup."""

    attribute: str
    key: str
    samples: int


@dataclass(frozen=True, eq=False)
class PairedValidation:
    """Two models on the same samples and the same resampled data sets."""

    setting: ValidationSettings
    new: ResampledValidation
    current: ResampledValidation

    @classmethod
    def of(
        cls, setting: ValidationSettings, new: tuple[str, ModelOutputs], current: tuple[str, ModelOutputs]
    ) -> Self:
        """Validate two models, given with their names.

        Raises:
            InvalidInputError: an output does not fit, or both have the same name.
        """
        if new[0] == current[0]:
            raise InvalidInputError(f"both models are {new[0][:80]!r}.", field="models")
        if (new[1].cut_off_data is None) != (current[1].cut_off_data is None):
            raise InvalidInputError("give cut-off data for both models or for none.", field="cut_off_data")
        first, second = (validate_one(setting, outputs, name=name) for name, outputs in (new, current))
        return cls(setting, first, second)

    def differences(self) -> tuple[MetricDifference, ...]:
        """Of the recommended metrics, in their order: the summary of a metric comes first, then its classes."""
        return tuple(
            one
            for label, new in self.new.evaluated.items()
            for one in _of_metric(new, self.current.evaluated[label], self.setting.level)
        )

    def subgroup_differences(self) -> tuple[SubgroupDifference, ...]:
        """Of what sums each recommended metric up, by subgroup."""
        made: list[SubgroupDifference] = []
        for new, current in zip(self.new.subgroups, self.current.subgroups, strict=True):
            by_label = zip(self.new.evaluated.values(), new.summaries, current.summaries, strict=True)
            for metric, one, other in by_label:
                found = _difference(metric.values[0].metric, one, other, self.setting.level)
                result = new.result
                of = {"attribute": result.attribute, "key": result.key, "samples": result.samples}
                made.append(SubgroupDifference.model_validate({**found.model_dump(), **of}))
        return tuple(made)

    def of_metrics(self, metrics: Sequence[tuple[str, RecommendedMetric]]) -> tuple[MetricDifference, ...]:
        """Of further metrics, given with their labels: what sums each up.

        Raises:
            InvalidInputError: a metric needs what there is not.
        """
        recipes = (
            Recipe.of(label, metric, weights=None, split=None, seed=self.setting.seed)
            for label, metric in metrics
        )
        return tuple(self._of_recipe(recipe, self.new.samples, self.current.samples) for recipe in recipes)

    def expected_cost(
        self,
        costs: Floats,
        prevalence: ArrayLike | None,
        *,
        new: ArrayLike | None = None,
        current: ArrayLike | None = None,
    ) -> MetricDifference:
        """Expected cost at a class prevalence.

        Args:
            costs: shape (C, D).
            prevalence: shape (C,); None: that of the samples.
            new: decisions of the new model, shape (N,), as its head decides at that prevalence; None: those given.
            current: likewise of the current one.

        Raises:
            InvalidInputError: a shape or a value does not fit.
        """
        parameters: dict[str, Any] = {"costs": as_matrix(costs)}
        if prevalence is not None:
            parameters["prevalence"] = tuple(np.asarray(prevalence, dtype=np.float64).tolist())
        metric = RecommendedMetric(metric="EC", per_class=False, parameters=parameters)
        recipe = Recipe.of("EC", metric, weights=None, split=None, seed=self.setting.seed)
        decided = (self._decided(self.new, new), self._decided(self.current, current))
        return self._of_recipe(recipe, *decided)

    def _decided(self, model: ResampledValidation, decisions: ArrayLike | None) -> Samples:
        if decisions is None:
            return model.samples
        classes = len(self.setting.class_names)
        outputs = ModelOutputs(decisions=decisions)
        return Samples.of(self.setting.labels, outputs, classes=classes, groups=self.setting.groups)

    def _of_recipe(self, recipe: Recipe, new: Samples, current: Samples) -> MetricDifference:
        one, other = (
            evaluate_metric(
                recipe, samples, self.setting.resamples, level=self.setting.level, subprocesses=()
            ).parts[0]
            for samples in (new, current)
        )
        return _difference(recipe.acronym, one, other, self.setting.level)


def _of_metric(new: EvaluatedMetric, current: EvaluatedMetric, level: float) -> Iterator[MetricDifference]:
    for value, one, other in zip(new.values, new.parts, current.parts, strict=True):
        yield _difference(value.metric, one, other, level)


def _difference(metric: str, new: PartValue, current: PartValue, level: float) -> MetricDifference:
    resampled = subtract(new.resampled, current.resampled)
    low, high = new.limits
    width = high - low
    bounds = value_bounds(resampled, level=level, limits=(-width, width), cases=min(new.cases, current.cases))
    estimate = float(resampled.estimate)
    numbers = {"estimate": estimate, "low": bounds.low, "high": bounds.high}
    orientation = METRICS[metric].orientation
    reasons = [side.fields["reason"] for side in (new, current) if side.fields["reason"] is not None]
    is_known = not math.isnan(estimate)
    return MetricDifference.model_validate(
        {
            "metric": metric,
            **{name: new.fields[name] for name in ("label", "class_index", "value_of")},
            **as_fields(numbers),
            "reason": None if is_known else (reasons or ["both values are infinite"])[0],
            "method": bounds.method,
            "replicates": bounds.replicates,
            "notes": bounds.notes,
            "orientation": orientation,
            "new": finite(float(new.resampled.estimate)),
            "current": finite(float(current.resampled.estimate)),
            "direction": direction_of(bounds.low, bounds.high, orientation),
        }
    )


def subtract(first: Bootstrap, second: Bootstrap) -> Bootstrap:
    """The difference of two statistics of the same data, draw by draw."""
    with np.errstate(invalid="ignore"):  # infinite values have no difference
        return Bootstrap(
            first.estimate - second.estimate,
            first.replicates - second.replicates,
            tuple(
                LeftOut(one.values - other.values, one.multiplicity)
                for one, other in zip(first.left_out, second.left_out, strict=True)
            ),
        )


def direction_of(low: float, high: float, orientation: Orientation) -> Direction:
    """What the interval of a difference tells of the new model.

    Examples:
        >>> direction_of(0.01, 0.2, "up"), direction_of(0.01, 0.2, "down"), direction_of(-0.1, 0.2, "up")
        ('better', 'worse', 'open')
    """
    if math.isnan(low) or math.isnan(high) or low <= 0 <= high:
        return "open"
    return "better" if (low > 0) == (orientation == "up") else "worse"
