"""All bKLD distances to one target as one matrix product over memory-mapped histograms.

bKLD is linear in the histograms p of a source: sum_j w_j [-H(q_j) + logsumexp(p_j) - <q_j, p_j>], since each q_j of
the target sums to 1 (thesis, definition 5.13). So a query needs the counts of all sources, logsumexp(p_j) and
the mean shares, which an `IndexFile` maps into memory, and one product with the histograms of the target. One file
serves all weightings.

The file keeps counts as 16-bit integers. They take the memory of float16, are exact up to 65,535 images in a bin,
and numpy converts them to float32 six times as fast; wider counts are kept beside them as 32-bit integers.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.develop.fingerprints.distances.binned_kld import Weighting, entropies
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.develop.knowledge.index_file import IndexFile, residual_lengths
from lifelong_core.runtime.cores import usable_cores
from lifelong_core.values.arrays import Floats, softmax
from lifelong_core.values.errors import InvalidInputError

_ROWS = 1000
"""Tasks that are converted to float32 at once: 400 kB for 100 bins stay in the cache of a core."""
_MOST_THREADS = 2
_LARGEST_SHARE = 1 / 6
"""Of candidates among all tasks. Above it, one product for all tasks costs less than each candidate in float64."""
_SINGLE = 2.0**-24
"""Relative rounding error of float32."""
_DOUBLE_ERROR = 1e-12
"""Bound of the rounding errors of all operations in float64."""


_Singles: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class Neighbour:
    """A source task and its distance to the target."""

    task: str
    distance: float


@dataclass(frozen=True)
class _Query:
    """What the distances need of the target."""

    weighting: Weighting
    histograms: Floats
    """(m, B)"""
    entropies: Floats
    """(m,)"""
    weights: Floats
    """(m,), of the features; not used where the source gives them"""


class QueryIndex:
    """Distances of all tasks of an index to one target; safe to share between threads.

    Attributes:
        tasks: K names, in the order of the distances.
        features: number of features, m.
    """

    def __init__(self, file: IndexFile, *, threads: int | None = None) -> None:
        self._file = file
        self._threads = threads or min(_MOST_THREADS, usable_cores())
        self.tasks = file.tasks
        self.features = file.features

    def distances(self, target: HistogramFingerprint, weighting: Weighting = "target") -> Floats:
        """bKLD of each task as the source to the target, (K,), with a relative error of about 1e-6.

        Raises:
            InvalidInputError: the target is of another extractor, or has another number of features or bins.
        """
        return self._estimate(self._prepare(target, weighting))[0]

    def earth_movers_distances(self, target: HistogramFingerprint) -> Floats:
        """VDNA between each task and the target, (K,), from float32.

        Raises:
            InvalidInputError: the target is of another extractor, or has another number of features or bins.
        """
        cumulated = target.histograms.cumsum(axis=1).astype(np.float32)

        def distances(shares: _Singles, feature: int) -> _Singles:
            shares.cumsum(axis=1, out=shares)
            shares -= cumulated[feature]
            return np.abs(shares, out=shares).mean(axis=1)

        return self._mean_distances(target, distances)

    def jensen_shannon_distances(self, target: HistogramFingerprint) -> Floats:
        """JSD between each task and the target, (K,), from float32: with an error of up to 1e-3 where it is almost 0.

        Raises:
            InvalidInputError: the target is of another extractor, or has another number of features or bins.
        """
        histograms = target.histograms.astype(np.float32)
        entropy = _row_entropies(histograms)

        def distances(shares: _Singles, feature: int) -> _Singles:
            own = _row_entropies(shares)
            shares += histograms[feature]
            shares /= 2
            divergence = _row_entropies(shares) - (own + entropy[feature]) / 2
            return np.sqrt(np.clip(divergence / np.float32(np.log(2)), 0.0, 1.0))

        return self._mean_distances(target, distances)

    def _mean_distances(
        self, target: HistogramFingerprint, distances: Callable[[_Singles, int], _Singles]
    ) -> Floats:
        """Means over the features, (K,), of distances by feature; those get histograms (k, B) to overwrite."""
        self._check(target)
        file = self._file
        wide = {int(row): file.counts_of(row).astype(np.float64) for row in file.wide_rows}

        def add_up(features: Iterable[int]) -> Floats:
            total = np.zeros(len(self.tasks))
            for feature in features:
                for start in range(0, len(self.tasks), _ROWS):
                    rows = slice(start, start + _ROWS)
                    shares = file.counts[feature, rows].astype(np.float32)
                    for row, counts in wide.items():
                        if start <= row < start + _ROWS:
                            shares[row - start] = counts[feature]
                    shares /= file.totals[feature, rows, None].astype(np.float32)
                    total[rows] += distances(shares, feature)
            return total

        parts = [range(first, file.features, self._threads) for first in range(self._threads)]
        with ThreadPoolExecutor(self._threads) as pool:
            return np.asarray(np.sum(list(pool.map(add_up, parts)), axis=0) / file.features)

    def nearest(
        self, target: HistogramFingerprint, count: int, weighting: Weighting = "target"
    ) -> tuple[Neighbour, ...]:
        """The `count` tasks with the smallest bKLD to the target, in the order of the definition.

        Bounds of the distances, from a sketch of the histograms, leave a few candidates, which are compared in
        float64. Where they leave many, as with histograms of few images, the product for all tasks leaves few. Of
        equal tasks, the first by name comes first.

        Raises:
            InvalidInputError: the target is of another extractor, or has another number of features or bins.
        """
        query = self._prepare(target, weighting)
        count = min(count, len(self.tasks))
        if count < 1:
            return ()
        rows = np.arange(len(self.tasks))
        if weighting != "source":
            rows = _candidates(*self._sketch(query), count)
        if rows.size > _LARGEST_SHARE * len(self.tasks):
            rows = _candidates(*self._estimate(query), count)
        exact = np.array([self._compute(query, row) for row in rows.tolist()])
        order = np.argsort(exact, kind="stable")[:count]
        return tuple(Neighbour(self.tasks[rows[place]], float(exact[place])) for place in order)

    def _check(self, target: HistogramFingerprint) -> None:
        file = self._file
        if target.extractor != file.extractor or target.counts.shape != (file.features, file.bins):
            raise InvalidInputError(
                f"expected {file.features} features in {file.bins} bins of the extractor {file.extractor[:12]}, "
                f"got {target.features} in {target.bins} of {target.extractor[:12]}.",
                field="target",
                hint="Make the fingerprint with the extractor reference and the bins of the knowledge base.",
            )

    def _prepare(self, target: HistogramFingerprint, weighting: Weighting) -> _Query:
        self._check(target)
        if weighting == "target":
            weights = softmax(target.mean_features[None, :])[0]
        else:
            weights = np.full(self.features, 1 / self.features)
        histograms = target.histograms
        return _Query(weighting, histograms, entropies(histograms), weights)

    def _sketch(self, query: _Query) -> tuple[Floats, Floats]:
        """Distances, (K,), from the coordinates in the basis, and bounds of their errors, (K,).

        What the basis leaves of two histograms has an inner product of at most the product of the lengths
        (Cauchy and Schwarz).
        """
        file = self._file
        coarse = query.histograms @ file.basis
        residuals = residual_lengths(query.histograms, coarse)
        factors = (query.weights[:, None] * coarse).ravel()
        inner = file.coarse @ factors.astype(np.float32)
        missing: Floats = (query.weights * residuals) @ file.residuals
        # Coordinates of a histogram have a length of at most 1, for each feature.
        rounding = (factors.size + 4) * _SINGLE * float(query.weights @ np.linalg.norm(coarse, axis=1))
        errors = missing * (1 + 2 * _SINGLE) + rounding + _DOUBLE_ERROR
        return self._constant(query) - inner, errors

    def _constant(self, query: _Query) -> Floats:
        """The part of the distances, (K,), without the histograms of the sources; not for weights of the source."""
        return query.weights @ self._file.log_sums - float(query.weights @ query.entropies)

    def _estimate(self, query: _Query) -> tuple[Floats, Floats]:
        """Distances, (K,), and bounds of their errors, (K,)."""
        file = self._file
        products = self._multiply(query.histograms.astype(np.float32))
        scaled = products if file.samples is not None else products / file.totals
        if query.weighting == "source":
            inner = np.einsum("jk,jk->k", file.shares, scaled, dtype=np.float64)
            constant = file.source_constants - query.entropies @ file.shares
        else:
            inner = query.weights @ scaled
            constant = self._constant(query)
        if file.samples is not None:
            inner = inner / file.samples
        # Each product is a sum of B terms that are not negative, of factors with one rounding each.
        errors = (file.bins + 4) * _SINGLE * inner + _DOUBLE_ERROR
        return constant - inner, errors

    def _multiply(self, histograms: NDArray[np.float32]) -> NDArray[np.float32]:
        """Counts of each task times the histogram of the target, (m, K): by feature and task."""
        file = self._file
        products = np.empty((file.features, len(self.tasks)), dtype=np.float32)

        def multiply(features: Iterable[int]) -> None:
            buffer = np.empty((min(_ROWS, len(self.tasks)), file.bins), dtype=np.float32)
            for feature in features:
                for start in range(0, len(self.tasks), _ROWS):
                    counts = file.counts[feature, start : start + _ROWS]
                    rows = buffer[: len(counts)]
                    np.copyto(rows, counts)
                    np.dot(rows, histograms[feature], out=products[feature, start : start + _ROWS])
                if file.wide_rows.size:
                    wide = file.wide_counts[feature].astype(np.float32)
                    products[feature, file.wide_rows] = wide @ histograms[feature]

        if self._threads == 1:
            multiply(range(file.features))
        else:
            parts = [range(first, file.features, self._threads) for first in range(self._threads)]
            with ThreadPoolExecutor(self._threads) as pool:
                list(pool.map(multiply, parts))
        return products

    def _compute(self, query: _Query, row: int) -> float:
        """The distance of one task in float64."""
        file = self._file
        shares = file.counts_of(row) / file.totals_of(row)[:, None]
        weights = file.shares[:, row] if query.weighting == "source" else query.weights
        divergences = file.log_sums[:, row] - query.entropies - (shares * query.histograms).sum(axis=1)
        return float((weights * divergences).sum())


def _row_entropies(histograms: _Singles) -> _Singles:
    """As `entropies`, without a mask, which would cost most of the time."""
    logarithms = np.log(np.maximum(histograms, np.finfo(np.float32).tiny))
    return -np.einsum("ij,ij->i", histograms, logarithms)


def _candidates(values: Floats, errors: Floats, count: int) -> NDArray[np.intp]:
    """Rows that can be among the `count` smallest, if each value is wrong by at most its error."""
    limit = np.partition(values + errors, count - 1)[count - 1]
    return np.flatnonzero(values - errors <= limit)
