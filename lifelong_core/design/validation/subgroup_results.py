"""The recommended metrics of the samples that have one thing in common, side by side."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.arrays import as_groups
from lifelong_core.design.validation.displays import SubgroupMetric, SubgroupResult
from lifelong_core.design.validation.evaluating import Recipe, estimated
from lifelong_core.design.validation.metric_values import parts_of, reason_for, taken
from lifelong_core.design.validation.outputs import Samples
from lifelong_core.errors import InvalidInputError
from lifelong_core.metrics.aggregation import Subgroup, subgroup_values

MOST_SUBGROUPS = 100
"""Of one attribute; more are hardly groups, but numbers such as ages"""


def subgroup_results(
    recipes: Sequence[Recipe], samples: Samples, metadata: Mapping[str, ArrayLike]
) -> tuple[SubgroupResult, ...]:
    """Of each value of each attribute, in the order of `subgroup_values`.

    Raises:
        InvalidInputError: an attribute does not have one value per sample, or too many different ones.
    """
    return tuple(_result(found, recipes, samples) for found in subgroups_of(samples, metadata))


def subgroups_of(samples: Samples, metadata: Mapping[str, ArrayLike]) -> tuple[Subgroup, ...]:
    """The subgroups, each with its samples as its value, and with warnings.

    Raises:
        InvalidInputError: an attribute does not have one value per sample, or too many different ones.
    """
    for attribute, column in metadata.items():
        given = as_groups(column, samples=samples.size, field=f"metadata.{attribute}")
        different = 0 if given is None else np.unique(given).size
        if different > MOST_SUBGROUPS:
            raise InvalidInputError(
                f"there are {different} different values, at most {MOST_SUBGROUPS} are subgroups.",
                field=f"metadata.{attribute}",
                mend="Put numbers such as ages in ranges.",
            )
    return subgroup_values(
        lambda _, rows: rows,
        samples.labels,
        np.arange(samples.size),
        classes=samples.classes,
        metadata=metadata,
        groups=samples.unit,
    )


def _result(found: Subgroup, recipes: Sequence[Recipe], samples: Samples) -> SubgroupResult:
    rows = found.value.astype(np.int64)
    return SubgroupResult(
        attribute=found.attribute,
        key=found.key,
        samples=found.samples,
        cases=found.cases,
        class_samples=tuple(found.class_samples.tolist()),
        values=tuple(
            value
            for recipe in recipes
            for value in _values(recipe, samples, np.intersect1d(rows, recipe.rows(samples)))
        ),
        warnings=found.warnings,
    )


def _values(recipe: Recipe, samples: Samples, rows: ArrayLike) -> list[SubgroupMetric]:
    own = samples.part(np.asarray(rows))
    found = estimated(recipe, own)
    made: list[SubgroupMetric] = []
    for part in parts_of(recipe, samples.classes):
        value = float(taken(found.values, part, recipe))
        reason = reason_for(part, found.values, found.reasons, recipe.weights) if math.isnan(value) else None
        made.append(
            SubgroupMetric(
                label=recipe.label,
                class_index=part.class_index,
                value_of=part.value_of,
                estimate=value if math.isfinite(value) else None,
                reason="infinite" if math.isinf(value) else reason,
            )
        )
    return made
