"""From a recommended metric to its values: of all classes, of each class, and their mean."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lifelong_core.arrays import Floats, Mask
from lifelong_core.design.validation.evaluating import Recipe, estimated, mean_over_classes
from lifelong_core.design.validation.metric_value import CutOff, MetricValue, Number, ValueOf
from lifelong_core.design.validation.outputs import Samples
from lifelong_core.design.validation.resampled_metrics import at_cut_offs, resampled
from lifelong_core.design.validation.resamples import Resamples, mapped
from lifelong_core.design.validation.value_intervals import value_bounds
from lifelong_core.metrics import METRICS, compute_metrics, naive_decision
from lifelong_core.metrics.confusion import confusion_matrix
from lifelong_core.metrics.intervals import Bootstrap
from lifelong_core.metrics.reasons import Reason

KERNELS = ("KCE", "ECE_KDE")
"""Metrics of which the naive classifier, with one prediction for all, has no value that says anything"""


@dataclass(frozen=True, eq=False)
class Valued:
    """The values of one recommended metric."""

    values: tuple[MetricValue, ...]
    """what sums the metric up comes first"""
    summary: Bootstrap
    """of the first"""


@dataclass(frozen=True, eq=False)
class Part:
    """One of the values of a metric."""

    value_of: ValueOf
    class_index: int | None = None


def parts_of(recipe: Recipe, classes: int) -> tuple[Part, ...]:
    """Which values a metric has; what sums it up comes first."""
    weighted = recipe.weights is not None
    if not METRICS[recipe.acronym].is_per_class:
        return (Part("weighted_mean" if weighted and recipe.acronym == "CWCE" else "all_classes"),)
    if recipe.metric.target_class is not None:
        return (Part("one_class", recipe.metric.target_class),)
    mean = Part("weighted_mean" if weighted else "mean")
    return (mean, *(Part("one_class", k) for k in range(classes)))


def taken(values: Floats, part: Part, recipe: Recipe) -> Floats:
    """The part's value of values (...) of all classes, or (..., C) of each."""
    if part.class_index is not None:
        return values[..., part.class_index]
    return mean_over_classes(values, recipe.weights) if METRICS[recipe.acronym].is_per_class else values


def reason_for(part: Part, values: Floats, reasons: Reason | None, weights: Floats | None) -> str | None:
    """Why the part's value of a metric is undefined."""
    if reasons is None or isinstance(reasons, str):
        return reasons
    if part.class_index is not None:
        return reasons.get(part.class_index)
    missing = [k for k in reasons if weights is None or weights[k] > 0]
    if missing:
        return f"undefined for class {missing[0]}: {reasons[missing[0]]}"
    return "values of opposite infinite sign" if np.isinf(values).any() else None


def valued(
    recipe: Recipe,
    samples: Samples,
    resamples: Resamples,
    *,
    level: float,
    subprocesses: tuple[str, ...],
) -> Valued:
    """The values of a recommended metric with their intervals.

    Raises:
        InvalidInputError: the metric needs probabilities and there are none, or a parameter does not fit.
    """
    own = samples.part(recipe.rows(samples))
    found = estimated(recipe, own)
    values = resampled(recipe, samples, resamples, found.values)
    naive = _naive(recipe, own)
    cut_offs = _cut_offs(recipe, own, resamples)
    limits, notes = limits_of(recipe), _notes(recipe, own, found.standard_error)
    shared: dict[str, Any] = {
        "metric": recipe.acronym,
        "label": recipe.label,
        "parameters": recipe.metric.parameters,
        "subprocesses": subprocesses,
        "standard_error": found.standard_error,
        "orientation": METRICS[recipe.acronym].orientation,
        "range": tuple(map(_finite, limits)),
        "level": level,
    }
    made: list[MetricValue] = []
    summaries: list[Bootstrap] = []
    for part in parts_of(recipe, samples.classes):
        chosen = mapped(values, lambda array, part=part: taken(array, part, recipe))
        bounds = value_bounds(chosen, level=level, limits=limits, cases=_cases(recipe, own, part.class_index))
        estimate = float(chosen.estimate)
        reason = reason_for(part, found.values, found.reasons, recipe.weights)
        own_values = {
            "class_index": part.class_index,
            "value_of": part.value_of,
            "class_weights": recipe.weights.tolist()
            if recipe.weights is not None and part.value_of == "weighted_mean"
            else None,
            "reason": reason if math.isnan(estimate) else None,
            "method": bounds.method,
            "replicates": bounds.replicates,
            "naive": None if naive is None else _finite(float(taken(naive, part, recipe))),
            "cut_off": None if part.class_index is None else cut_offs.get(part.class_index),
            "notes": (*notes, *bounds.notes),
        }
        ends = _as_fields({"estimate": estimate, "low": bounds.low, "high": bounds.high})
        made.append(MetricValue.model_validate(shared | own_values | ends))
        summaries.append(chosen)
    return Valued(tuple(made), summaries[0])


def limits_of(recipe: Recipe) -> tuple[float, float]:
    """The least and the largest value that a metric can have; infinite where there is no bound."""
    if recipe.acronym == "EC":
        costs = np.array([[0.0, 1.0]] if recipe.costs is None else recipe.costs)
        return float(costs.min()), float(costs.max())
    low, high = METRICS[recipe.acronym].bounds
    return float(low), float(high)


def _naive(recipe: Recipe, own: Samples) -> Floats | None:
    """Value of a classifier that knows the class shares and ignores the image; nan where it is undefined."""
    if recipe.acronym in KERNELS or recipe.cut_offs is not None:
        return None
    counts = confusion_matrix(own.labels, own.labels, classes=own.classes)
    width = own.classes + own.can_abstain if recipe.costs is None else np.shape(recipe.costs)[1]
    counts = np.pad(counts, ((0, 0), (0, width - own.classes)))
    decision = naive_decision(counts, recipe.costs, prevalence=recipe.prevalence)
    shares = counts.sum(axis=1) / own.size
    given: dict[str, Any] = {**recipe.metric.parameters, "labels": own.labels, "classes": own.classes}
    given["decisions"] = np.full(own.size, decision)
    if own.probabilities is not None:
        given["probabilities"] = np.tile(shares, (own.size, 1))
    return np.asarray(compute_metrics([recipe.acronym], **given)[recipe.acronym], dtype=np.float64)


def _cut_offs(recipe: Recipe, own: Samples, resamples: Resamples) -> Mapping[int, CutOff]:
    if recipe.cut_offs is None:
        return {}
    used = recipe.cut_offs
    as_they_are = Resamples(own.unit, resamples.times[:1], replicates=0)
    reached = at_cut_offs(recipe, used, used.target_metric, own, as_they_are)[0]
    return {
        k: CutOff(
            threshold=_finite(float(threshold)),
            target_metric=used.target_metric,
            target_value=used.target_value,
            chosen_on="half_of_the_data" if used.split.is_half else "other_data",
            samples=own.size,
            reached=_finite(float(reached[k])),
        )
        for k, threshold in enumerate(used.thresholds)
    }


def _cases(recipe: Recipe, own: Samples, k: int | None) -> int:
    """Independent cases that a value rests on: of those that it is a ratio of, the fewest."""

    def count(*masks: Mask) -> int:
        return min(np.unique(own.unit[mask]).size for mask in masks)

    if k is None:
        shares = recipe.weights if recipe.prevalence is None else np.array(recipe.prevalence)
        if METRICS[recipe.acronym].is_per_class or recipe.acronym == "BA" or recipe.prevalence is not None:
            counted = range(own.classes) if shares is None else np.flatnonzero(shares)
            return count(*(own.labels == label for label in counted))
        return count(np.ones(own.size, np.bool_))
    is_class = own.labels == k
    match recipe.acronym:
        case "TPR" | "FNR":
            return count(is_class)
        case "TNR" | "FPR":
            return count(~is_class)
        case "PPV" | "FDR":
            return count(_is_decided(recipe, own, k))
        case "NPV" | "FOR":
            return count(own.is_valid & ~_is_decided(recipe, own, k))
        case _:
            return count(is_class, ~is_class)


def _is_decided(recipe: Recipe, own: Samples, k: int) -> Mask:
    if recipe.cut_offs is None:
        return own.decisions == k
    return own.is_valid & (own.scores[:, k] >= recipe.cut_offs.thresholds[k])


def _notes(recipe: Recipe, own: Samples, standard_error: float | None) -> list[str]:
    found: list[str] = []
    if recipe.cut_offs is not None and recipe.cut_offs.split.is_half:
        found.append(
            "For want of other data, the cut-offs were chosen on a random half of the cases; "
            f"the values are those of the other {own.size} samples."
        )
    if standard_error is not None:
        found.append("Computed on a random part of the samples, which the interval allows for.")
    return found


def _finite(number: float) -> Number:
    return number if math.isfinite(number) else None


def _as_fields(numbers: Mapping[str, float]) -> dict[str, Any]:
    """Numbers, and the signs of those that are infinite."""
    signs = {name: int(math.copysign(1, number)) for name, number in numbers.items() if math.isinf(number)}
    return {**{name: _finite(number) for name, number in numbers.items()}, "infinite": signs}
