"""Bootstrap: the variation of a metric over data sets like this one.

Dependent samples, such as the images of a patient, must be drawn together (pitfall FP4.3): pass their groups. With the
same groups and the same seed, two models have the same draws, so that the replicates of their metrics can be compared
one by one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.counting.confusion import confusion_cells
from lifelong_core.metrics.resampling.intervals import Bootstrap, LeftOut
from lifelong_core.values.arrays import Floats, Integers, as_groups
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import weighted_counts

DELETIONS = 200
"""Most parts that are left out in turn for the acceleration of BCa intervals: each unit or, with more units, each of
this many random blocks, which estimate the same number."""


@dataclass(frozen=True, eq=False)
class ConfusionBootstrap:
    """Confusion matrices of the data, of resampled data, and of the data without parts of them."""

    observed: Floats
    """shape (C, D)"""
    replicates: Floats
    """shape (R, C, D)"""
    left_out: tuple[LeftOut, ...]
    """confusion matrices (M, C, D) without parts of each stratum"""

    def of(self, metric: Callable[[Floats], Floats]) -> Bootstrap:
        """Apply a metric to all matrices.

        Args:
            metric: gives an array (M, C, D) of matrices one value each, (M,), such as `accuracies`, or several,
                (M, K), such as `sensitivity`.

        Examples:
            >>> from lifelong_core.metrics.counting.multiclass import accuracies
            >>> resampled = bootstrap_confusions([0] * 50 + [1] * 50, [0] * 40 + [1] * 60, classes=2)
            >>> interval = resampled.of(accuracies).interval()
            >>> interval.estimate, 0.8 < interval.low < 0.9 < interval.high < 1
            (0.9, True)
        """
        return Bootstrap(
            estimate=np.array(metric(self.observed[np.newaxis])[0], dtype=np.float64),
            replicates=metric(self.replicates),
            left_out=tuple(LeftOut(metric(part.values), part.multiplicity) for part in self.left_out),
        )


def bootstrap_confusions(
    labels: ArrayLike,
    decisions: ArrayLike,
    *,
    classes: int,
    decisions_count: int | None = None,
    replicates: int = 1000,
    groups: ArrayLike | None = None,
    stratified: bool = False,
    rng: int | np.random.Generator = 0,
) -> ConfusionBootstrap:
    """Bootstrap confusion matrices of samples, or of groups of samples, drawn with replacement.

    Without groups, the counts are drawn at once, whatever the number of samples.

    Args:
        labels: shape (N,), true classes 0..C-1.
        decisions: shape (N,), 0..D-1.
        classes: number of classes C.
        decisions_count: number of decisions D, C + 1 where abstaining is one; None: C.
        replicates: number of draws.
        groups: shape (N,), e.g. patients; None: all samples are independent.
        stratified: draw within each true class, so that no class is ever absent.
        rng: seed or generator.

    Raises:
        InvalidInputError: a shape or a value does not fit; there is no sample; or there are strata, and samples of
            several classes in a group.

    Examples:
        >>> resampled = bootstrap_confusions([0, 0, 1, 1], [0, 1, 1, 1], classes=2, stratified=True)
        >>> resampled.replicates.shape, resampled.replicates.sum(axis=(1, 2)).tolist() == [4] * 1000
        ((1000, 2, 2), True)
    """
    _check_replicates(replicates)
    columns = classes if decisions_count is None else decisions_count
    cells = confusion_cells(labels, decisions, classes=classes, decisions_count=columns)
    size, generator = classes * columns, np.random.default_rng(rng)
    strata = _strata(cells.size, groups, cells // columns if stratified else None)
    draw = _drawn_counts if groups is None else _drawn_group_counts
    drawn = sum((draw(stratum, cells, size, replicates, generator) for stratum in strata), start=np.zeros(()))
    observed = np.bincount(cells, minlength=size).astype(np.float64)
    deleted = [
        _deleted_counts(stratum, cells, size, generator, grouped=groups is not None) for stratum in strata
    ]
    return ConfusionBootstrap(
        observed=observed.reshape(classes, columns),
        replicates=drawn.reshape(replicates, classes, columns),
        left_out=tuple(
            LeftOut((observed - parts).reshape(-1, classes, columns), multiplicity)
            for parts, multiplicity in deleted
        ),
    )


def bootstrap(
    statistic: Callable[..., ArrayLike],
    samples: Sequence[ArrayLike],
    *,
    replicates: int = 1000,
    groups: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    rng: int | np.random.Generator = 0,
) -> Bootstrap:
    """Bootstrap any statistic of samples, or of groups of samples, drawn with replacement.

    It is for metrics of scores; `bootstrap_confusions` is much faster for metrics that count. The statistic is computed
    once for each replicate and each of up to 200 parts left out, so use a subsample for slow statistics.

    Args:
        statistic: function of the arrays of `samples`, in their order; one number, or an array of shape (K,).
        samples: arrays of the same first dimension N, such as labels and probabilities.
        replicates: number of draws.
        groups: shape (N,), e.g. patients; None: all samples are independent.
        strata: shape (N,), e.g. classes; draw within each.
        rng: seed or generator.

    Raises:
        InvalidInputError: a shape or a value does not fit; there is no sample; or a group is in several strata.

    Examples:
        >>> values = np.random.default_rng(0).normal(size=100)
        >>> interval = bootstrap(np.mean, [values]).interval(level=0.9)
        >>> interval.low < interval.estimate < interval.high
        True
    """
    _check_replicates(replicates)
    arrays = [np.asarray(array) for array in samples]
    sizes = {array.shape[:1] for array in arrays}
    if len(sizes) != 1 or sizes == {()}:
        raise InvalidInputError("expected arrays with the same first dimension.", field="samples")
    count, generator = len(arrays[0]), np.random.default_rng(rng)
    parts = _strata(count, groups, strata)

    def evaluated(rows: Integers | slice) -> Floats:
        return np.asarray(statistic(*(array[rows] for array in arrays)), dtype=np.float64)

    drawn = [
        evaluated(np.concatenate([stratum.draw(generator) for stratum in parts])) for _ in range(replicates)
    ]
    left_out: list[LeftOut] = []
    for stratum in parts:
        blocks = stratum.blocks(generator)
        block_of = np.full(count, -1)
        block_of[stratum.rows] = blocks[stratum.unit]
        values = [evaluated(np.flatnonzero(block_of != block)) for block in range(blocks.max() + 1)]
        left_out.append(LeftOut(np.array(values), np.ones(len(values), dtype=np.int64)))
    return Bootstrap(evaluated(slice(None)), np.array(drawn), tuple(left_out))


@dataclass(frozen=True, eq=False)
class _Stratum:
    """Samples of one stratum."""

    rows: Integers
    """shape (n,), ordered by unit"""
    unit: Integers
    """shape (n,), 0..U-1: unit of each sample; units are drawn as a whole"""
    first: Integers
    """shape (U,), where each unit starts"""
    sizes: Integers
    """shape (U,), samples of each unit"""

    def draw(self, generator: np.random.Generator) -> Integers:
        """Rows of as many units as there are, drawn with replacement."""
        chosen = generator.integers(self.sizes.size, size=self.sizes.size)
        sizes = self.sizes[chosen]
        shifts = self.first[chosen] - (np.cumsum(sizes) - sizes)
        return self.rows[np.repeat(shifts, sizes) + np.arange(sizes.sum())]

    def blocks(self, generator: np.random.Generator) -> Integers:
        """Part with which each unit is left out, shape (U,); random if there are more units than parts."""
        return generator.permutation(self.sizes.size) % min(self.sizes.size, DELETIONS)


def _strata(samples: int, groups: ArrayLike | None, strata: ArrayLike | None) -> list[_Stratum]:
    if samples == 0:
        raise InvalidInputError("expected at least one sample.", field="labels")
    keys, layers = as_groups(groups, samples=samples), as_groups(strata, samples=samples, field="strata")
    unit = np.arange(samples) if keys is None else np.unique(keys, return_inverse=True)[1]
    layer = np.zeros(samples, np.int64) if layers is None else np.unique(layers, return_inverse=True)[1]
    found: list[_Stratum] = []
    for index in range(layer.max() + 1):
        rows = np.flatnonzero(layer == index)
        rows = rows[np.argsort(unit[rows], kind="stable")]
        _, first, own, sizes = np.unique(
            unit[rows], return_index=True, return_inverse=True, return_counts=True
        )
        found.append(_Stratum(rows, own, first, sizes))
    if sum(stratum.sizes.size for stratum in found) > unit.max() + 1:
        raise InvalidInputError(
            "a group has samples of several strata.",
            field="groups",
            hint="Draw groups without strata, or leave out the groups.",
        )
    return found


def _drawn_counts(
    stratum: _Stratum, cells: Integers, size: int, replicates: int, generator: np.random.Generator
) -> Floats:
    counts = np.bincount(cells[stratum.rows], minlength=size)
    total = stratum.rows.size
    return generator.multinomial(total, counts / total, size=replicates).astype(np.float64)


def _drawn_group_counts(
    stratum: _Stratum, cells: Integers, size: int, replicates: int, generator: np.random.Generator
) -> Floats:
    units = stratum.sizes.size
    pairs, counts = np.unique(stratum.unit * size + cells[stratum.rows], return_counts=True)
    unit, cell = np.divmod(pairs, size)
    drawn = np.empty((replicates, size))
    for row in drawn:
        times = np.bincount(generator.integers(units, size=units), minlength=units)
        row[:] = weighted_counts(cell, (counts * times[unit]).astype(np.float64), size=size)
    return drawn


def _deleted_counts(
    stratum: _Stratum, cells: Integers, size: int, generator: np.random.Generator, *, grouped: bool
) -> tuple[Floats, Integers]:
    """Counts of each part that is left out, (M, C * D), and the number of equal parts, (M,)."""
    counts = np.bincount(cells[stratum.rows], minlength=size)
    kinds = np.flatnonzero(counts)
    if not grouped and kinds.size <= DELETIONS:
        return np.eye(size)[kinds], counts[kinds]
    blocks = stratum.blocks(generator)
    number = int(blocks.max()) + 1
    parts = np.bincount(blocks[stratum.unit] * size + cells[stratum.rows], minlength=number * size)
    return parts.reshape(number, size).astype(np.float64), np.ones(number, dtype=np.int64)


def _check_replicates(replicates: int) -> None:
    if replicates < 1:
        raise InvalidInputError(f"expected at least one, got {replicates}.", field="replicates")
