"""Metrics of groups of samples: hierarchical means, and subgroups."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.metrics.counting.confusion import ratio
from lifelong_core.metrics.scores.samples import as_values
from lifelong_core.values.arrays import Floats, Integers, as_column, as_groups, as_labels
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import weighted_counts

SMALL_SUBGROUP = 30
"""With fewer independent cases, a share of 1/2 has a 95 % interval of +-0.18 or wider."""
SMALL_CLASS = 10
"""With fewer cases of a class, its sensitivity has a 95 % interval of +-0.31 or wider."""


@dataclass(frozen=True, eq=False)
class HierarchicalMean:
    """Mean in which every group of a level has the same weight, whatever its number of samples."""

    value: float
    """mean of the values of the outermost groups; nan without any"""
    groups: NDArray[np.generic]
    """shape (G,), keys of the outermost groups, ascending"""
    values: Floats
    """shape (G,), values of the groups; nan for a group without any"""
    samples: Integers
    """shape (G,), samples with a value in each group"""
    undefined: int
    """samples without a value, which are ignored"""


@dataclass(frozen=True, eq=False)
class Subgroup:
    """Metric of the samples with the same value of an attribute."""

    attribute: str
    """the attribute, e.g. the scanner"""
    key: str
    """its value, e.g. the scanner's name"""
    value: Floats
    """shape () or (K,), value of the metric"""
    samples: int
    cases: int
    """independent cases: groups, such as patients, or else samples"""
    class_samples: Integers
    """shape (C,)"""
    warnings: tuple[str, ...]
    """limits of the value, as sentences; empty without limits"""


def hierarchical_mean(values: ArrayLike, levels: Sequence[ArrayLike]) -> HierarchicalMean:
    """Mean over the samples of each patient, then over the patients of each hospital, then over the hospitals (FP4.3).

    A plain mean over all samples is dominated by the patients with most images. A metric that is no mean of one number
    per sample, such as precision, must first be computed for each group: `subgroup_values`.

    Args:
        values: shape (N,), one number per sample, such as its cost; nan where it is undefined.
        levels: group keys of shape (N,) each, the innermost first, e.g. patients and hospitals. A patient of two
            hospitals counts in each.

    Raises:
        InvalidInputError: a shape or a value does not fit, or there is no level.

    Examples:
        >>> found = hierarchical_mean([1, 1, 1, 0, 0.25], [[1, 1, 1, 2, 3], ["A", "A", "A", "A", "B"]])
        >>> found.value, found.groups.tolist(), found.values.tolist()
        (0.375, ['A', 'B'], [0.5, 0.25])
    """
    numbers = as_values(values, field="values", finite=False)
    if not len(levels):
        raise InvalidInputError("expected at least one level of groups.", field="levels")
    member, groups = np.zeros(numbers.size, np.int64), np.empty(0)
    nested: list[Integers] = []
    for depth, level in enumerate(reversed(levels)):
        given = as_groups(level, samples=numbers.size, field="levels")
        if given is None:
            raise InvalidInputError("expected one group per sample.", field="levels")
        keys, key_of = _members(given)
        groups = groups if depth else keys
        member = np.unique(member * keys.size + key_of, return_inverse=True)[1].astype(np.int64)
        nested.append(member)
    means, within = numbers, np.arange(numbers.size)
    for member in reversed(nested):
        means = _means(means, member[within])
        within = np.unique(member, return_index=True)[1]
    defined = ~np.isnan(numbers)
    return HierarchicalMean(
        value=float(_means(means, np.zeros(means.size, np.int64), size=1)[0]),
        groups=groups,
        values=means,
        samples=np.bincount(nested[0][defined], minlength=groups.size).astype(np.int64),
        undefined=int((~defined).sum()),
    )


def subgroup_values(
    metric: Callable[[Integers, NDArray[np.generic]], ArrayLike],
    labels: ArrayLike,
    outputs: ArrayLike,
    *,
    classes: int,
    metadata: Mapping[str, ArrayLike],
    groups: ArrayLike | None = None,
) -> tuple[Subgroup, ...]:
    """Compute a metric for each subgroup that the metadata define, with warnings about small subgroups.

    Args:
        metric: function of the labels and outputs of a subgroup; one number, or an array of shape (K,).
        labels: shape (N,), true classes 0..C-1.
        outputs: shape (N, ...), such as decisions or probabilities.
        classes: number of classes C.
        metadata: for each attribute, its value for each sample, shape (N,).
        groups: shape (N,), groups of dependent samples, e.g. patients; None: all samples are independent.

    Returns:
        The subgroups in the order of the metadata, those of an attribute by ascending key. Each warns of fewer than 30
        independent cases, of fewer than 10 of a class, and of classes without any.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> from lifelong_core.metrics.counting.confusion import confusion_matrix
        >>> from lifelong_core.metrics.counting.multiclass import accuracy
        >>> first, second = subgroup_values(
        ...     lambda labels, decisions: accuracy(confusion_matrix(labels, decisions, classes=2)),
        ...     [0] * 40 + [1] * 20,
        ...     [0] * 30 + [1] * 30,
        ...     classes=2,
        ...     metadata={"scanner": ["new"] * 30 + ["old"] * 30},
        ... )
        >>> first.key, float(first.value), first.warnings
        ('new', 1.0, ('no case of class 1.',))
        >>> second.key, round(float(second.value), 3), second.warnings
        ('old', 0.667, ())
    """
    reference = as_labels(labels, classes=classes)
    given = np.asarray(outputs)
    if given.shape[:1] != reference.shape:
        raise InvalidInputError(
            f"expected one output per label ({reference.size}), got shape {given.shape}.", field="outputs"
        )
    cases = as_groups(groups, samples=reference.size)
    case_of = np.arange(reference.size) if cases is None else np.unique(cases, return_inverse=True)[1]
    subgroups: list[Subgroup] = []
    for attribute, column in metadata.items():
        keys, member = _members(as_column(column, samples=reference.size, field=f"metadata.{attribute}"))
        for index, key in enumerate(keys):
            rows = np.flatnonzero(member == index)
            own = reference[rows]
            class_cases = [np.unique(case_of[rows[own == label]]).size for label in range(classes)]
            count = np.unique(case_of[rows]).size
            subgroups.append(
                Subgroup(
                    attribute=attribute,
                    key=str(key),
                    value=np.asarray(metric(own, given[rows]), dtype=np.float64),
                    samples=rows.size,
                    cases=count,
                    class_samples=np.bincount(own, minlength=classes).astype(np.int64),
                    warnings=tuple(_warnings(count, class_cases)),
                )
            )
    return tuple(subgroups)


def _warnings(cases: int, class_cases: Sequence[int]) -> list[str]:
    warnings: list[str] = []
    if cases < SMALL_SUBGROUP:
        warnings.append(f"only {cases} independent cases, fewer than {SMALL_SUBGROUP}.")
    for label, count in enumerate(class_cases):
        if count == 0:
            warnings.append(f"no case of class {label}.")
        elif count < SMALL_CLASS:
            warnings.append(f"only {count} independent cases of class {label}, fewer than {SMALL_CLASS}.")
    return warnings


def _members(given: NDArray[np.generic]) -> tuple[NDArray[np.generic], Integers]:
    """Keys, ascending, and the index of each sample's key."""
    keys, member = np.unique(given, return_inverse=True)
    return keys, member.astype(np.int64)


def _means(values: Floats, member: Integers, *, size: int | None = None) -> Floats:
    """Mean of the values of each member index, without nan; nan without any value."""
    size = int(member.max(initial=-1)) + 1 if size is None else size
    defined = ~np.isnan(values)
    counts = np.bincount(member[defined], minlength=size).astype(np.float64)
    return ratio(weighted_counts(member[defined], values[defined], size=size), counts)
