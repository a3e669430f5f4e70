"""Builds fingerprints, and figures for the task's facts, from batches of features."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.develop.features.extraction import Batch
from lifelong_core.develop.features.result import TaskFacts, facts_of
from lifelong_core.develop.features.sampling import Survey
from lifelong_core.develop.features.sources.entry import Entry
from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from lifelong_core.develop.fingerprints.feature_set import FeatureFingerprint, make_feature_fingerprint
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.gaussian import GaussianBuilder
from lifelong_core.develop.fingerprints.histogram import HistogramBuilder
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError

DIMENSION_SAMPLES = 2000
"""Images that the intrinsic dimension is estimated on."""

_ROWS_AT_ONCE = 256


class Builder(Protocol):
    """Makes one fingerprint of batches of features."""

    def add(self, features: NDArray[np.float32], /) -> None:
        """Count features (n, m)."""
        ...

    def build(self, *, seed: int) -> Fingerprint:
        """The fingerprint of all batches."""
        ...


class FeatureSetBuilder:
    """Keeps all features."""

    def __init__(self, extractor: ExtractorReference) -> None:
        self._extractor = extractor
        self._batches: list[NDArray[np.float32]] = []

    def add(self, features: NDArray[np.float32]) -> None:
        """Keep features (n, m)."""
        self._batches.append(features)

    def build(self, *, seed: int) -> FeatureFingerprint:
        """The fingerprint of all batches."""
        return make_feature_fingerprint(np.concatenate(self._batches), self._extractor, seed=seed)


BUILDERS: Mapping[str, Callable[[ExtractorReference, int], Builder]] = MappingProxyType(
    {
        "histogram": lambda extractor, bins: HistogramBuilder(extractor, bins=bins),
        "gaussian": lambda extractor, _bins: GaussianBuilder(extractor),
        "features": lambda extractor, _bins: FeatureSetBuilder(extractor),
    }
)
"""By kind of fingerprint, from the extractor and the number of bins."""


@dataclass(frozen=True)
class LabelledFeatures:
    """Features of readable images with classes.

    Attributes:
        entries: n images.
        features: (n, m).
        labels: (n,), class indices.
    """

    entries: tuple[Entry, ...]
    features: NDArray[np.float32]
    labels: NDArray[np.int64]


class Collection:
    """Takes batches, gives fingerprints and facts.

    Args:
        survey: of the images.
        builders: of the fingerprints, by kind.
        keep_labelled: whether features and labels of all images with a class are kept.
    """

    def __init__(
        self, survey: Survey, builders: Mapping[str, Builder], *, keep_labelled: bool = False
    ) -> None:
        self._survey = survey
        self._builders = builders
        self._keep_labelled = keep_labelled
        # The first of the chosen ones are a random sample themselves; the order of reading follows the source.
        self._measured = frozenset(survey.chosen[:DIMENSION_SAMPLES])
        self._measured_features: list[NDArray[np.float32]] = []
        self._labelled: list[tuple[Entry, NDArray[np.float32]]] = []
        self._smallest = self._largest = 0
        self.read = 0
        """images so far"""

    def add(self, batch: Batch) -> None:
        """Count a batch."""
        for builder in self._builders.values():
            builder.add(batch.features)
        smallest, largest = min(batch.sizes), max(batch.sizes)
        self._smallest = min(self._smallest, smallest) if self.read else smallest
        self._largest = max(self._largest, largest)
        self.read += len(batch.entries)
        measured = [entry in self._measured for entry in batch.entries]
        self._measured_features.append(batch.features[measured])
        if self._keep_labelled:
            pairs = zip(batch.entries, batch.features, strict=True)
            self._labelled += [(entry, row) for entry, row in pairs if entry.label is not None]

    def fingerprints(self, seed: int) -> dict[str, Fingerprint]:
        """The fingerprint of each builder."""
        return {kind: builder.build(seed=seed) for kind, builder in self._builders.items()}

    def facts(self) -> TaskFacts:
        """The facts of the task."""
        return facts_of(
            self._survey,
            smallest_pixels=self._smallest,
            largest_pixels=self._largest,
            intrinsic_dimension=estimate_intrinsic_dimension(np.concatenate(self._measured_features)),
        )

    def labelled(self) -> LabelledFeatures:
        """The kept features."""
        names: Sequence[str] = sorted({entry.label or "" for entry, _ in self._labelled})
        return LabelledFeatures(
            tuple(entry for entry, _ in self._labelled),
            np.array([row for _, row in self._labelled]),
            np.array([names.index(entry.label or "") for entry, _ in self._labelled], dtype=np.int64),
        )


def estimate_intrinsic_dimension(features: ArrayLike, *, neighbours: int = 20) -> float | None:
    """Maximum likelihood estimate of Levina and Bickel (2004), pooled as Pope et al. (2021) do.

    With T_j(x) the Euclidean distance of x to its j-th neighbour, the estimate is the inverse of the mean of
    log(T_k(x) / T_j(x)) over all x and j < k (MacKay and Ghahramani 2005). Equal rows count once. Pope et al. take
    the pixels of the images; features of a network give other, usually lower, values.

    Args:
        features: (n, m).
        neighbours: k >= 2.

    Returns:
        The dimension, > 0; None where there are not more than `neighbours` different rows, or all are equally far.

    Raises:
        InvalidInputError: not two-dimensional or not finite, or `neighbours` below 2.
    """
    rows = np.unique(np.asarray(features, dtype=np.float64), axis=0)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InvalidInputError("expected finite features of shape (n, m).", field="features")
    if neighbours < 2:
        raise InvalidInputError(f"expected at least 2, got {neighbours}.", field="neighbours")
    if len(rows) <= neighbours:
        return None
    rows = rows - rows.mean(axis=0)
    squares = np.einsum("ij,ij->i", rows, rows)
    total, counted = 0.0, 0
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        nearest = _nearest_squares(rows, squares, start, neighbours)
        ratios = 0.5 * np.log(nearest[:, -1:] / nearest[:, :-1])
        total += float(ratios.sum())
        counted += ratios.size
    return counted / total if total > 0 else None


def _nearest_squares(rows: Floats, squares: Floats, start: int, neighbours: int) -> Floats:
    """Squared distances of some rows to their neighbours, ascending, without themselves."""
    some = rows[start : start + _ROWS_AT_ONCE]
    found = squares[start : start + len(some), None] + squares - 2 * some @ rows.T
    found[np.arange(len(some)), start + np.arange(len(some))] = np.inf
    nearest = np.sort(np.partition(found, neighbours - 1, axis=1)[:, :neighbours], axis=1)
    smallest = np.finfo(np.float64).eps * max(float(squares.max()), np.finfo(np.float64).tiny)
    return np.maximum(nearest, smallest)  # rounding can leave nothing of a small difference
