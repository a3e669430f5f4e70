"""Two models on the same samples: differences of their metrics from the same resampled data sets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.design.method.conditions import as_matrix
from lifelong_core.design.recommendation.document import RecommendedMetric
from lifelong_core.design.validation.differences import (
    MetricDifference,
    ResampledDifference,
    SubgroupDifference,
    judge_together,
)
from lifelong_core.design.validation.validate import ResampledValidation, validate_one
from lifelong_core.design.validation.validation_settings import ValidationSettings
from lifelong_core.design.validation.values.evaluation import Recipe
from lifelong_core.design.validation.values.metric_values import EvaluatedMetric, evaluate_metric
from lifelong_core.design.validation.values.parts import PartValue
from lifelong_core.design.validation.values.samples import ModelOutputs, Samples
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError


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

    @property
    def is_same(self) -> bool:
        """Whether both models have the same outputs for every sample."""
        return _are_same(self.new.samples, self.current.samples)

    def differences(self) -> tuple[ResampledDifference, ...]:
        """Differences of the recommended metrics in their order: the summary of a metric first, then its classes."""
        return tuple(
            difference
            for label, new in self.new.evaluated.items()
            for difference in self._of_metric(new, self.current.evaluated[label])
        )

    def subgroup_differences(self) -> tuple[SubgroupDifference, ...]:
        """Differences of the summary of each recommended metric by subgroup; all differences are judged together."""
        made: list[ResampledDifference] = []
        places: list[dict[str, Any]] = []
        for new, current in zip(self.new.subgroups, self.current.subgroups, strict=True):
            by_label = zip(self.new.evaluated.values(), new.summaries, current.summaries, strict=True)
            for metric, new_part, current_part in by_label:
                made.append(self._of_value(metric.values[0].metric, new_part, current_part))
                result = new.result
                places.append({"attribute": result.attribute, "key": result.key, "samples": result.samples})
        judged = judge_together(made, level=self.setting.level)
        return tuple(
            SubgroupDifference.model_validate({**difference.model_dump(), **place})
            for difference, place in zip(judged, places, strict=True)
        )

    def of_metrics(self, metrics: Sequence[tuple[str, RecommendedMetric]]) -> tuple[MetricDifference, ...]:
        """Of further metrics, given with their labels: what sums each up; all of them are judged together.

        Raises:
            InvalidInputError: a metric needs what there is not.
        """
        recipes = (
            Recipe.of(label, metric, weights=None, split=None, seed=self.setting.seed)
            for label, metric in metrics
        )
        differences = [self._of_recipe(recipe, self.new.samples, self.current.samples) for recipe in recipes]
        return tuple(judge_together(differences, level=self.setting.level))

    def expected_cost(
        self,
        costs: Floats,
        prevalence: ArrayLike | None,
        *,
        new: ArrayLike | None = None,
        current: ArrayLike | None = None,
    ) -> ResampledDifference:
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
        """The samples of a model with other decisions."""
        if decisions is None:
            return model.samples
        classes = len(self.setting.class_names)
        checked = Samples.of(
            self.setting.labels,
            ModelOutputs(decisions=decisions),
            classes=classes,
            groups=self.setting.groups,
        )
        return replace(checked, probabilities=model.samples.probabilities)

    def _of_metric(self, new: EvaluatedMetric, current: EvaluatedMetric) -> Iterator[ResampledDifference]:
        for value, new_part, current_part in zip(new.values, new.parts, current.parts, strict=True):
            yield self._of_value(value.metric, new_part, current_part)

    def _of_value(self, metric: str, new: PartValue, current: PartValue) -> ResampledDifference:
        return ResampledDifference.of(metric, new, current, level=self.setting.level, is_same=self.is_same)

    def _of_recipe(self, recipe: Recipe, new: Samples, current: Samples) -> ResampledDifference:
        new_part, current_part = (
            evaluate_metric(
                recipe, samples, self.setting.resamples, level=self.setting.level, subprocesses=()
            ).parts[0]
            for samples in (new, current)
        )
        return ResampledDifference.of(
            recipe.acronym, new_part, current_part, level=self.setting.level, is_same=_are_same(new, current)
        )


def _are_same(one: Samples, other: Samples) -> bool:
    """Whether probabilities and decisions are equal for every sample; False without probabilities.

    Equal decisions alone are no evidence: two models of high accuracy decide alike on few samples.
    """
    if one.probabilities is None or other.probabilities is None:
        return False
    return np.array_equal(one.probabilities, other.probabilities) and np.array_equal(
        one.decisions, other.decisions
    )
