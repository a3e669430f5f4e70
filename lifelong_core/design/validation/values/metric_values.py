"""From a metric to its values: of all classes, of each class, and their mean; metrics of users."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lifelong_core.design.validation.values.by_group import pooled_note
from lifelong_core.design.validation.values.class_mix import ClassMix, refusal
from lifelong_core.design.validation.values.evaluation import Recipe, estimate_metric
from lifelong_core.design.validation.values.intervals import Resamples, value_bounds
from lifelong_core.design.validation.values.metric_value import (
    Bound,
    CustomValue,
    CutOff,
    MetricValue,
    finite,
)
from lifelong_core.design.validation.values.parts import PartValue, limits_of, part_values, select_part
from lifelong_core.design.validation.values.resampled_metrics import (
    KERNELS,
    SLOW_REPLICATES,
    at_cut_offs,
    values_in_use,
)
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics import METRICS, CustomMetric, compute_metrics, naive_decision
from lifelong_core.metrics.computation import UNDEFINED
from lifelong_core.metrics.counting.confusion import confusion_matrix
from lifelong_core.metrics.resampling.intervals import Bootstrap
from lifelong_core.values.arrays import Floats

ROUNDING = 1e-12
"""Smaller values of a classifier that ignores the image are rounding errors."""


@dataclass(frozen=True, eq=False)
class EvaluatedMetric:
    """The values of one recommended metric."""

    values: tuple[MetricValue, ...]
    """the summary of the metric comes first"""
    parts: tuple[PartValue, ...]
    """the same values with their resampled values"""

    @property
    def summary(self) -> Bootstrap:
        """The resampled first value, as models are compared by it."""
        return self.parts[0].compared


def evaluate_metric(
    recipe: Recipe,
    samples: Samples,
    resamples: Resamples,
    *,
    level: float,
    subprocesses: tuple[str, ...],
) -> EvaluatedMetric:
    """The values of a recommended metric with their intervals.

    Raises:
        InvalidInputError: the metric needs probabilities and there are none, or a parameter does not fit.
    """
    rows = recipe.rows(samples)
    own, draws = samples.part(rows), resamples.part(rows)
    found = estimate_metric(recipe, own)
    parts = part_values(recipe, own, draws, found, level=level)
    naive, cut_offs = _naive(recipe, own, draws), _cut_offs(recipe, own, draws)
    notes = _notes(recipe, own, found.standard_error)
    weights = None if recipe.weights is None else recipe.weights.tolist()
    in_use = recipe.prevalence if recipe.converted is None else recipe.converted.in_use
    shared: dict[str, Any] = {
        "metric": recipe.acronym,
        "parameters": recipe.metric.parameters,
        "subprocesses": subprocesses,
        "prevalence": None if in_use is None else np.asarray(in_use, dtype=np.float64).tolist(),
        "refusal": refusal(recipe.label, _judged_metrics(recipe), recipe.mix, is_of_use=in_use is not None),
        "standard_error": found.standard_error,
        "orientation": METRICS[recipe.acronym].orientation,
        "range": tuple(map(finite, limits_of(recipe))),
        "level": level,
    }
    made = [
        MetricValue.model_validate(
            {
                **shared,
                **value.fields,
                "class_weights": weights if value.part.value_of == "weighted_mean" else None,
                "naive": None if naive is None else _rounded(float(select_part(naive, value.part, recipe))),
                "cut_off": None if value.part.class_index is None else cut_offs.get(value.part.class_index),
                "notes": (*notes, *value.fields["notes"]),
            }
        )
        for value in parts
    ]
    return EvaluatedMetric(tuple(made), parts)


def _rounded(number: float) -> float | None:
    """The number, 0 where it is a rounding error; None if it is not finite."""
    return 0.0 if abs(number) < ROUNDING else finite(number)


def _judged_metrics(recipe: Recipe) -> tuple[str, ...]:
    """The metric, and the one whose target its cut-offs reach."""
    return (recipe.acronym, *(() if recipe.cut_offs is None else (recipe.cut_offs.target_metric,)))


def _naive(recipe: Recipe, own: Samples, draws: Resamples) -> Floats | None:
    """Value of a classifier that knows the class shares and ignores the image; nan where it is undefined."""
    if recipe.acronym in KERNELS or recipe.cut_offs is not None or recipe.is_refused or recipe.by_group:
        # With one prediction for all, kernels say nothing; a group has other class shares than all samples.
        return None
    counts = confusion_matrix(own.labels, own.labels, classes=own.classes)
    width = own.classes + own.can_abstain if recipe.costs is None else np.shape(recipe.costs)[1]
    counts = np.pad(counts, ((0, 0), (0, width - own.classes)))
    mix = recipe.converted
    in_use = recipe.prevalence if mix is None else mix.in_use
    decision = naive_decision(counts, recipe.costs, prevalence=in_use)
    if mix is not None and decision is not None:
        constant = replace(
            own,
            probabilities=None if own.probabilities is None else np.tile(mix.of_scores, (own.size, 1)),
            decisions=np.full(own.size, decision),
        )
        return values_in_use(recipe, mix, constant, draws.as_they_are)[0]
    shares = counts.sum(axis=1) / own.size
    given: dict[str, Any] = {**recipe.metric.parameters, "labels": own.labels, "classes": own.classes}
    given["decisions"] = np.full(own.size, decision)
    if own.probabilities is not None:
        given["probabilities"] = np.tile(shares, (own.size, 1))
    return np.asarray(compute_metrics([recipe.acronym], **given)[recipe.acronym], dtype=np.float64)


def _cut_offs(recipe: Recipe, own: Samples, draws: Resamples) -> Mapping[int, CutOff]:
    if recipe.cut_offs is None:
        return {}
    cut_offs = recipe.cut_offs
    reached = at_cut_offs(recipe, cut_offs, cut_offs.target_metric, own, draws.as_they_are)[0]
    return {
        k: CutOff(
            threshold=finite(float(threshold)),
            target_metric=cut_offs.target_metric,
            target_value=cut_offs.target_value,
            chosen_on="half_of_the_data" if cut_offs.split.is_half else "other_data",
            samples=own.size,
            reached=finite(float(reached[k])),
        )
        for k, threshold in enumerate(cut_offs.thresholds)
    }


def _notes(recipe: Recipe, own: Samples, standard_error: float | None) -> list[str]:
    notes: list[str] = []
    if recipe.converted is not None:
        notes.append(_conversion(recipe, recipe.converted))
    if recipe.cut_offs is not None and recipe.cut_offs.split.is_half:
        notes.append(
            "Without other data, the cut-offs were chosen on a random half of the cases; "
            f"the values are those of the other {own.size} samples."
        )
    if recipe.by_group and (why := pooled_note(recipe)) is not None:
        notes.append(why)
    if standard_error is not None:
        notes.append("Computed on a random part of the samples, which the interval allows for.")
    return notes


def _conversion(recipe: Recipe, mix: ClassMix) -> str:
    """How the value was computed at the class mix of use."""
    how = "At the stated class shares of use."
    if recipe.acronym != "NB":
        return how
    whose = "these data" if mix.is_assumed else "their calibration"
    return f"{how} The probabilities were corrected to them from the class shares of {whose}."


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
