"""The values of one metric of some samples: of all classes, of each class or their mean, with intervals."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lifelong_core.design.validation.values.by_group import (
    GroupMeans,
    is_by_group,
    resample_by_group,
)
from lifelong_core.design.validation.values.calibration import (
    calibrated_draws,
    debias,
    is_unbiased,
    reference_fields,
)
from lifelong_core.design.validation.values.class_mix import NO_NET_BENEFIT
from lifelong_core.design.validation.values.evaluation import MetricEstimate, Recipe, mean_over_classes
from lifelong_core.design.validation.values.intervals import (
    Resamples,
    difference_bounds,
    map_values,
    value_bounds,
)
from lifelong_core.design.validation.values.metric_value import ValueOf, as_fields
from lifelong_core.design.validation.values.resampled_metrics import resample_metric
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics import METRICS
from lifelong_core.metrics.resampling.intervals import Bootstrap
from lifelong_core.metrics.undefined_reasons import Reason
from lifelong_core.values.arrays import Floats, Mask


@dataclass(frozen=True, eq=False)
class Part:
    """One of the values of a metric."""

    value_of: ValueOf
    class_index: int | None = None


@dataclass(frozen=True, eq=False)
class PartValue:
    """One of the values of a metric with its resampled values."""

    part: Part
    resampled: Bootstrap
    """of shape ()"""
    fields: Mapping[str, Any]
    """fields of an `EstimatedValue`"""
    cases: int
    """number of independent cases behind the value"""
    chance: float | None
    """mean calibration error of calibrated predictions; None: the metric has no such bias"""
    limits: tuple[float, float]
    """the least and the largest value that it can have"""

    @property
    def compared(self) -> Bootstrap:
        """The resampled value by which models are compared: a calibration error less that of calibrated predictions."""
        if self.chance is None:
            return self.resampled
        return debias(self.resampled, self.chance)


def part_values(
    recipe: Recipe, own: Samples, draws: Resamples, found: MetricEstimate, *, level: float
) -> tuple[PartValue, ...]:
    """The values of a metric of some samples; the summary comes first.

    Args:
        recipe: how to compute it.
        own: the samples.
        draws: of these samples.
        found: the metric of them.
        level: nominal coverage of the intervals.
    """
    grouped = resample_by_group(recipe, own, draws, found.values) if is_by_group(recipe) else None
    values = resample_metric(recipe, own, draws, found.values) if grouped is None else grouped.resampled
    by_chance = calibrated_draws(recipe, own)
    no_value = "undefined" if grouped is None else "undefined in every group"
    if recipe.cut_offs is not None:
        found = MetricEstimate(values.estimate, _cut_off_reasons(recipe, values.estimate), None)
    made: list[PartValue] = []
    for part in parts_of(recipe, own.classes):
        chosen = map_values(values, lambda array, part=part: select_part(array, part, recipe))
        cases = _cases(recipe, own, part.class_index)
        notes: tuple[str, ...] = ()
        if grouped is not None:
            cases = _defined_groups(grouped, part, recipe)
            if part.value_of in ("one_class", "all_classes"):
                notes = grouped.notes(select_part(grouped.of_groups, part, recipe))
        estimate = float(chosen.estimate)
        drawn = None if by_chance is None else select_part(by_chance, part, recipe)
        chance = None if drawn is None or is_unbiased(recipe) else float(drawn.mean())
        # ECCL is a difference of decisions on the same cases: before and after recalibration.
        bounds = (difference_bounds if recipe.acronym == "ECCL" else value_bounds)(
            chosen,
            level=level,
            limits=limits_of(recipe),
            cases=cases,
            chance=None if chance is None else (chance, 0.0),
        )
        reason = _mix_reason(recipe, own) or _reason(part, found.values, found.reasons, recipe.weights)
        fields = {
            "label": recipe.label,
            "class_index": part.class_index,
            "value_of": part.value_of,
            "reason": (reason or no_value) if math.isnan(estimate) else None,
            "method": bounds.method,
            "replicates": bounds.replicates,
            "notes": (*notes, *bounds.notes),
            "calibrated": None if drawn is None else reference_fields(estimate, drawn),
        }
        ends = {"estimate": estimate, "low": bounds.low, "high": bounds.high}
        made.append(PartValue(part, chosen, fields | as_fields(ends), cases, chance, limits_of(recipe)))
    return tuple(made)


def _defined_groups(grouped: GroupMeans, part: Part, recipe: Recipe) -> int:
    """The number of groups with a value, of the class with the fewest where several count."""
    counts = (~np.isnan(grouped.of_groups)).sum(axis=0)
    if part.class_index is not None:
        return int(counts[part.class_index])
    counted = slice(None) if recipe.weights is None or counts.ndim == 0 else recipe.weights > 0
    return int(np.min(np.atleast_1d(counts)[counted]))


def parts_of(recipe: Recipe, classes: int) -> tuple[Part, ...]:
    """The values that a metric has; the summary comes first."""
    weighted = recipe.weights is not None
    if not METRICS[recipe.acronym].is_per_class:
        return (Part("weighted_mean" if weighted and recipe.acronym == "CWCE" else "all_classes"),)
    if recipe.metric.target_class is not None:
        return (Part("one_class", recipe.metric.target_class),)
    mean = Part("weighted_mean" if weighted else "mean")
    return (mean, *(Part("one_class", k) for k in range(classes)))


def select_part(values: Floats, part: Part, recipe: Recipe) -> Floats:
    """The value of a part, from values (...) of all classes or (..., C) of each."""
    if part.class_index is not None:
        return values[..., part.class_index]
    return mean_over_classes(values, recipe.weights) if METRICS[recipe.acronym].is_per_class else values


def limits_of(recipe: Recipe) -> tuple[float, float]:
    """The least and the largest possible value of a metric; infinite if unbounded."""
    if recipe.acronym == "EC":
        costs = np.array([[0.0, 1.0]] if recipe.costs is None else recipe.costs)
        return float(costs.min()), float(costs.max())
    low, high = METRICS[recipe.acronym].bounds
    return float(low), float(high)


def _reason(part: Part, values: Floats, reasons: Reason | None, weights: Floats | None) -> str | None:
    """Why the part's value of a metric is undefined."""
    if reasons is None or isinstance(reasons, str):
        return reasons
    if part.class_index is not None:
        return reasons.get(part.class_index)
    missing = [k for k in reasons if weights is None or weights[k] > 0]
    if missing:
        return f"undefined for class {missing[0]}: {reasons[missing[0]]}"
    return "values of opposite infinite sign" if np.isinf(values).any() else None


def _cut_off_reasons(recipe: Recipe, values: Floats) -> Reason | None:
    """Why values at cut-offs are undefined, by class."""
    if recipe.cut_offs is None:
        return None
    used, reasons = recipe.cut_offs, dict[int, str]()
    for k in np.flatnonzero(np.isnan(values)).tolist():
        if np.isnan(used.thresholds[k]):
            reasons[k] = f"no cut-off for class {k} reaches {used.target_metric} = {used.target_value:g}"
        else:
            reasons[k] = f"at the cut-off for class {k}: {METRICS[recipe.acronym].undefined}"
    return reasons or None


def _mix_reason(recipe: Recipe, own: Samples) -> str | None:
    """Why the metric is undefined at the class mix of use."""
    if recipe.is_refused:
        return NO_NET_BENEFIT
    missing = None if recipe.converted is None else recipe.converted.missing_class(own.labels)
    return None if missing is None else f"no reference sample of class {missing}, which occurs in use"


def _cases(recipe: Recipe, own: Samples, k: int | None) -> int:
    """The number of independent cases behind a value: the smallest count among the parts of its ratios."""

    def count(*masks: Mask) -> int:
        return min(np.unique(own.unit[mask]).size for mask in masks)

    if k is None:
        in_use = recipe.prevalence if recipe.converted is None else recipe.converted.in_use
        shares = recipe.weights if in_use is None else np.array(in_use)
        counted = range(own.classes) if shares is None else np.flatnonzero(shares).tolist()
        if METRICS[recipe.acronym].is_per_class:
            return min(_cases(recipe, own, label) for label in counted)
        if recipe.acronym == "BA" or in_use is not None:
            return count(*(own.labels == label for label in counted))
        return count(np.ones(own.size, np.bool_))
    is_class = own.labels == k
    match recipe.acronym:
        case "TPR" | "FNR" | "F_beta" | "JAC":
            return count(is_class)
        case "TNR" | "FPR":
            return count(~is_class)
        case "PPV" | "FDR":
            return count(_is_decided(recipe, own, k))
        case "NPV" | "FOR":
            return count(own.is_valid & ~_is_decided(recipe, own, k))
        case "MK":
            is_decided = _is_decided(recipe, own, k)
            return count(is_decided, own.is_valid & ~is_decided)
        case "MCE":
            return count(np.ones(own.size, np.bool_))
        case _:
            return count(is_class, ~is_class)


def _is_decided(recipe: Recipe, own: Samples, k: int) -> Mask:
    if recipe.cut_offs is None:
        return own.decisions == k
    return own.is_valid & (own.scores[:, k] >= recipe.cut_offs.thresholds[k])
