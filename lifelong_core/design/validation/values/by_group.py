"""Metrics of each group of samples, such as a patient's images, and their mean over the groups (FP4.3)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lifelong_core.design.validation.values.evaluation import Recipe
from lifelong_core.design.validation.values.intervals import Resamples
from lifelong_core.design.validation.values.resampled_metrics import SLOW_REPLICATES, resample_metric
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics import METRICS
from lifelong_core.metrics.counting.confusion import ratio
from lifelong_core.metrics.resampling.intervals import Bootstrap
from lifelong_core.values.arrays import Floats

DRAWS_AT_A_TIME = 256
SCORES = ("BS", "RBS", "NLL")
"""Metrics of probabilities that say something about a few samples; calibration errors do not"""
OF_ALL_SAMPLES = "Pooled over all samples: in single groups it says nothing."
AT_STATED_SHARES = (
    "Pooled over all samples: at stated class shares, a group would need samples of each class."
)
MEAN_OVER_GROUPS = re.compile(r"Mean over (\d+) groups(?:; in \d+ of (\d+) it is undefined)?\.")
"""The note of `GroupMeans.notes`"""


@dataclass(frozen=True, eq=False)
class GroupMeans:
    """The mean of a metric over groups."""

    resampled: Bootstrap
    """shape () or (C,); the draws are of groups"""
    of_groups: Floats
    """shape (G,) or (G, C); nan where a group has no value"""

    def notes(self, values: Floats) -> tuple[str, ...]:
        """How many of the groups have a value, of one part of the metric with values (G,)."""
        defined = int((~np.isnan(values)).sum())
        missing = values.size - defined
        rest = f"; in {missing} of {values.size} it is undefined" if missing else ""
        return (f"Mean over {defined} groups{rest}.",)


def is_by_group(recipe: Recipe) -> bool:
    """Whether the metric is computed within each group first."""
    return recipe.by_group and pooled_note(recipe) is None


def pooled_note(recipe: Recipe) -> str | None:
    """Why the metric is none of single groups, in a sentence; None if it is."""
    if recipe.prevalence is not None or recipe.converted is not None:
        return AT_STATED_SHARES
    card = METRICS[recipe.acronym]
    is_of_groups = card.family in ("counting", "multi-threshold") or recipe.acronym in SCORES
    return None if is_of_groups else OF_ALL_SAMPLES


def groups_with_value(notes: Iterable[str]) -> tuple[int, int] | None:
    """The number of groups with a value, and of all groups, from `GroupMeans.notes`; None: no mean over groups.

    Examples:
        >>> groups_with_value(["Mean over 30 groups; in 5 of 35 it is undefined."]), groups_with_value(["A note."])
        ((30, 35), None)
    """
    found = next(filter(None, map(MEAN_OVER_GROUPS.match, notes)), None)
    return None if found is None else (int(found[1]), int(found[2] or found[1]))


def resample_by_group(recipe: Recipe, own: Samples, draws: Resamples, estimate: Floats) -> GroupMeans:
    """The mean over the groups with a value, of the data and of resampled groups.

    Args:
        recipe: how to compute the metric.
        own: the samples.
        draws: of these samples.
        estimate: shape () or (C,), of which only the shape counts.
    """
    units = np.unique(own.unit)
    none = np.empty((0, *estimate.shape))
    of_groups = np.concatenate([none, *_of_groups(recipe, own, units, estimate)])
    filled = np.where(np.isfinite(of_groups), of_groups, 0.0)
    is_defined, is_plus, is_minus = (
        mask.astype(np.float64) for mask in (~np.isnan(of_groups), of_groups == np.inf, of_groups == -np.inf)
    )
    blocks: list[Floats] = []
    for start in range(0, len(draws.times), DRAWS_AT_A_TIME):
        times = draws.times[start : start + DRAWS_AT_A_TIME, units].astype(np.float64)
        means = ratio(times @ filled, times @ is_defined)
        means[times @ is_plus > 0] += np.inf  # One infinite group makes the mean infinite.
        has_minus = times @ is_minus > 0
        means[has_minus] = np.where(np.isinf(means[has_minus]), np.nan, -np.inf)
        blocks.append(means)
    return GroupMeans(draws.split(np.concatenate(blocks)), of_groups)


def _of_groups(recipe: Recipe, own: Samples, units: NDArray[np.int64], estimate: Floats) -> Iterator[Floats]:
    """Values of a few groups at a time, shape (g,) or (g, C): each is the data with the other groups left out."""
    pooled = replace(recipe, by_group=False)
    order = np.argsort(own.unit, kind="stable")
    ends = np.searchsorted(own.unit[order], units, side="right")
    first = 0
    for start in range(0, units.size, SLOW_REPLICATES):
        chosen = units[start : start + SLOW_REPLICATES]
        end = int(ends[start + chosen.size - 1])
        rows = np.sort(order[first:end])
        first = end
        part = own.part(rows)
        unit = np.searchsorted(chosen, part.unit).astype(np.int64)
        each = np.eye(chosen.size, dtype=np.uint8)
        times = np.concatenate([np.ones((1, chosen.size), np.uint8), each])
        only = Resamples(unit, times, chosen.size)
        yield resample_metric(pooled, replace(part, unit=unit), only, estimate).replicates
