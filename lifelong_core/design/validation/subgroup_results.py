"""The recommended metrics by subgroup: samples with the same value of an attribute."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.design.validation.result import SubgroupMetric, SubgroupResult
from lifelong_core.design.validation.values.evaluation import Recipe, estimate_metric
from lifelong_core.design.validation.values.intervals import Resamples
from lifelong_core.design.validation.values.parts import PartValue, part_values
from lifelong_core.design.validation.values.resampled_metrics import KERNELS, SLOW_REPLICATES
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics.resampling.aggregation import Subgroup, subgroup_values
from lifelong_core.values.arrays import Integers

JUDGED = re.compile(r"Judged on (\d+) of \d+ samples: a cut-off was chosen on the others\.")
"""The note of a value that rests on a part of the subgroup's samples"""


@dataclass(frozen=True, eq=False)
class ResampledSubgroup:
    """A subgroup with the resampled values by which models are compared in it."""

    result: SubgroupResult
    summaries: tuple[PartValue, ...]
    """the summary of each metric"""


def resample_subgroups(
    recipes: Sequence[Recipe],
    samples: Samples,
    metadata: Mapping[str, ArrayLike],
    resamples: Resamples,
    *,
    level: float,
) -> tuple[ResampledSubgroup, ...]:
    """The metrics of each value of each attribute, in the order of `subgroup_values`.

    Args:
        recipes: the metrics.
        samples: all of the data.
        metadata: attribute -> value of each sample.
        resamples: draws of all the data; a subgroup has their samples of its own.
        level: nominal coverage of the intervals.

    Raises:
        InvalidInputError: an attribute does not have one value per sample.
    """
    found = subgroups_of(samples, metadata)
    return tuple(_result(one, recipes, samples, resamples, level) for one in found)


def subgroups_of(samples: Samples, metadata: Mapping[str, ArrayLike]) -> tuple[Subgroup, ...]:
    """The subgroups with the rows of their samples, and with warnings.

    Raises:
        InvalidInputError: an attribute does not have one value per sample.
    """
    return subgroup_values(
        lambda _, rows: rows,
        samples.labels,
        np.arange(samples.size),
        classes=samples.classes,
        metadata=metadata,
        groups=samples.unit,
    )


def judged_samples(notes: Iterable[str]) -> int | None:
    """The number of samples behind the value of a subgroup, from its notes; None: all of them.

    Examples:
        >>> judged_samples(["Judged on 12 of 30 samples: a cut-off was chosen on the others."]), judged_samples([])
        (12, None)
    """
    found = next(filter(None, map(JUDGED.match, notes)), None)
    return None if found is None else int(found[1])


def _result(
    subgroup: Subgroup, recipes: Sequence[Recipe], samples: Samples, resamples: Resamples, level: float
) -> ResampledSubgroup:
    rows = subgroup.value.astype(np.int64)
    judged_rows = [np.intersect1d(rows, recipe.rows(samples)) for recipe in recipes]
    by_metric = [
        _values(recipe, samples, resamples, own, level)
        for recipe, own in zip(recipes, judged_rows, strict=True)
    ]
    result = SubgroupResult(
        attribute=subgroup.attribute,
        key=subgroup.key,
        samples=subgroup.samples,
        cases=subgroup.cases,
        class_samples=tuple(subgroup.class_samples.tolist()),
        values=tuple(
            SubgroupMetric.model_validate(_with_samples(one.fields, judged, subgroup.samples))
            for values, judged in zip(by_metric, judged_rows, strict=True)
            for one in values
        ),
        warnings=subgroup.warnings,
    )
    return ResampledSubgroup(result, tuple(values[0] for values in by_metric))


def _with_samples(fields: Mapping[str, Any], judged: Integers, samples: int) -> Mapping[str, Any]:
    """The fields of a value, with a note on the number of samples if these are not all of the subgroup."""
    if judged.size == samples:
        return fields
    # The reason for a missing interval stays the last note.
    note = f"Judged on {judged.size} of {samples} samples: a cut-off was chosen on the others."
    return {**fields, "notes": (note, *fields["notes"])}


def _values(
    recipe: Recipe, samples: Samples, resamples: Resamples, rows: Integers, level: float
) -> tuple[PartValue, ...]:
    own, draws = samples.part(rows), resamples.part(rows)
    if recipe.acronym in KERNELS:
        draws = draws.first(SLOW_REPLICATES)
    return part_values(recipe, own, draws, estimate_metric(recipe, own), level=level)
