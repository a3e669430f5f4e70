"""Histograms of each feature: the fingerprint of VDNA, P2L and bKLD."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from lifelong_core.develop.fingerprints.extractor import MOST_FEATURES, ExtractorReference
from lifelong_core.develop.fingerprints.fingerprint import (
    Arrays,
    FeatureHeader,
    Fingerprint,
    Header,
    as_features,
    as_single,
)
from lifelong_core.values.arrays import Floats
from lifelong_core.values.documents import FrozenDocument
from lifelong_core.values.errors import InvalidInputError

MOST_BINS = 10_000

SUM_TOLERANCE = 1e-3
"""Of mean shares, which are stored as float32."""

_ROWS_AT_ONCE = 1024
"""Images that are counted at once: bounds the memory, whatever the size of a batch."""


class Privacy(FrozenDocument):
    """(epsilon, delta)-differential privacy (Dwork and Roth, 2014, definition 2.4) of a whole fingerprint.

    Two sets of sampled images are neighbours if they differ in the images of one patient only: up to
    `images_per_patient` are removed, and up to as many are added. Removing, adding or replacing a patient in the data
    set changes a sample of `lifelong_core.develop.features.sampling` in this way, because that takes the images with
    the smallest hashes of their names; with another sampling, one patient may change which images are taken at all.
    """

    epsilon: float = Field(gt=0)
    """of all histograms together, not of each"""
    delta: float = Field(default=0.0, ge=0, lt=1)
    """0: pure differential privacy"""
    images_per_patient: int = Field(default=1, ge=1)
    """largest number of images of one patient; the guarantee does not cover patients with more"""


class HistogramHeader(FeatureHeader):
    """Header of a `HistogramFingerprint`."""

    privacy: Privacy | None = None


@dataclass(frozen=True, eq=False)
class HistogramFingerprint(Fingerprint):
    """Counts of each feature in B bins, and two means (thesis, definitions 5.7 and 5.12).

    The bins of a feature are equally wide between the two edges of the extractor; the first bin also counts all lower
    values, the last one all higher ones. The thesis can be read as if these had bins of their own; its published code
    clips, as here.

    Raises:
        InvalidInputError: a field has an illegal value, or the counts of a feature do not sum to `samples` (those of a
            private fingerprint need not).
    """

    kind: ClassVar[str] = "histogram"
    header_type: ClassVar[type[Header]] = HistogramHeader
    array_types: ClassVar[Mapping[str, str]] = {"counts": "u", "mean_features": "f", "mean_shares": "f"}

    extractor: str
    """digest of the extractor reference"""
    samples: int
    """number of images, n; of a private fingerprint, an estimate"""
    counts: NDArray[np.integer[Any]]
    """(m, B), int32"""
    mean_features: Floats
    """(m,)"""
    mean_shares: Floats
    """(m,), sums to 1: mean over the images of |u| / ||u||_1, which is a(U) of definition 5.12 for features u >= 0,
    divided by n, as its remark that a(U) sums to 1 requires; an image with all features 0 counts as 1 / m each"""
    seed: int = 0
    """of the sampling of the images"""
    privacy: Privacy | None = None
    """None: exact counts"""

    def __post_init__(self) -> None:
        """Check the fields and make the arrays read-only."""
        self._header()
        counts = _as_counts(self.counts)
        sums = counts.sum(axis=1, dtype=np.int64)
        if self.privacy is None and (sums != self.samples).any():
            raise InvalidInputError(
                f"the counts of feature {int(np.argmax(sums != self.samples))} do not sum to {self.samples} samples.",
                field="counts",
            )
        if not sums.all():
            raise InvalidInputError("expected at least one occupied bin for each feature.", field="counts")
        shape = (len(counts),)
        shares = as_single(self.mean_shares, shape, field="mean_shares")
        if shares.min() < 0 or abs(shares.sum() - 1) > SUM_TOLERANCE:
            raise InvalidInputError(
                "expected shares that are not negative and sum to 1.", field="mean_shares"
            )
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "mean_features", as_single(self.mean_features, shape, field="mean_features"))
        object.__setattr__(self, "mean_shares", shares)

    @property
    def features(self) -> int:
        """Number of features, m."""
        return self.counts.shape[0]

    @property
    def bins(self) -> int:
        """Number of bins of each feature, B."""
        return self.counts.shape[1]

    @property
    def histograms(self) -> Floats:
        """Normalised histograms (definition 5.7), (m, B); rows sum to 1."""
        return self.counts / self.counts.sum(axis=1, dtype=np.int64, keepdims=True)

    def _arrays(self) -> Arrays:
        return {
            "counts": _to_planes(self.counts),
            "mean_features": self.mean_features.astype(np.float32),
            "mean_shares": self.mean_shares.astype(np.float32),
        }

    @classmethod
    def from_parts(cls, header: HistogramHeader, arrays: Any) -> Self:
        """Return the fingerprint of a checked header and the arrays of the file."""
        return cls(
            header.extractor,
            header.samples,
            _from_planes(arrays["counts"]),
            arrays["mean_features"],
            arrays["mean_shares"],
            header.seed,
            header.privacy,
        )


class HistogramBuilder:
    """Counts batches of features of any number of images, in memory that depends only on m and B.

    Builders of parts of the images, of several workers for instance, can be merged in any order.
    """

    def __init__(self, extractor: ExtractorReference, *, bins: int = 100) -> None:
        if not 1 <= bins <= MOST_BINS:
            raise InvalidInputError(f"expected a number in 1..{MOST_BINS}, got {bins}.", field="bins")
        self._extractor = extractor
        self._counts = np.zeros((extractor.features, bins), dtype=np.int64)
        self._feature_sums = np.zeros(extractor.features)
        self._share_sums = np.zeros(extractor.features)
        self.samples = 0

    def add(self, features: ArrayLike) -> None:
        """Count features, (n, m).

        Raises:
            InvalidInputError: another shape, or a value that is not finite; nothing of the batch is counted then.
        """
        array = as_features(features, features=self._extractor.features)
        for rows in _split_rows(array):
            self._counts += count_bins(rows, self._extractor.edges, self._counts.shape[1])
            self._feature_sums += rows.sum(axis=0)
            self._share_sums += normalise_features(rows).sum(axis=0)
            self.samples += len(rows)

    def merge(self, other: "HistogramBuilder") -> None:
        """Add the counts of another builder.

        Raises:
            InvalidInputError: it has another extractor or another number of bins.
        """
        if self._extractor.digest != other._extractor.digest or self._counts.shape != other._counts.shape:
            raise InvalidInputError("expected a builder of the same extractor and bins.", field="builder")
        self._counts += other._counts
        self._feature_sums += other._feature_sums
        self._share_sums += other._share_sums
        self.samples += other.samples

    def build(self, *, seed: int = 0) -> HistogramFingerprint:
        """The fingerprint of all images so far; more can be added afterwards.

        Raises:
            InvalidInputError: no image was added.
        """
        if not self.samples:
            raise InvalidInputError("expected at least one image.", field="features")
        return HistogramFingerprint(
            self._extractor.digest,
            self.samples,
            self._counts.astype(np.int32),
            self._feature_sums / self.samples,
            self._share_sums / self.samples,
            seed,
        )


def make_histogram_fingerprint(
    features: ArrayLike, extractor: ExtractorReference, *, bins: int = 100, seed: int = 0
) -> HistogramFingerprint:
    """Histogram fingerprint of features, (n, m).

    Args:
        features: of n images, by the extractor.
        extractor: gives the bin edges and the digest.
        bins: of each feature, B.
        seed: that the images were sampled with.

    Raises:
        InvalidInputError: another shape, or a value that is not finite.
    """
    builder = HistogramBuilder(extractor, bins=bins)
    builder.add(features)
    return builder.build(seed=seed)


def count_bins(features: Floats, edges: Floats, bins: int) -> NDArray[np.int64]:
    """Counts (m, B) of features (n, m) in B bins of equal width between the edges (m, 2), clipped."""
    low, high = edges.T
    with np.errstate(over="ignore"):  # a value far outside, which is clipped
        place = np.floor((features - low) / (high - low) * bins)
    inside = np.clip(place, 0, bins - 1).astype(np.int64)
    cells = inside + np.arange(len(edges)) * bins
    return np.bincount(cells.ravel(), minlength=len(edges) * bins).reshape(len(edges), bins)


def normalise_features(features: Floats) -> Floats:
    """|u| / ||u||_1 of each row u, (n, m); 1 / m each for a row of zeros."""
    sizes = np.abs(features)
    sums = sizes.sum(axis=1, keepdims=True)
    return np.divide(sizes, sums, out=np.full_like(sizes, 1 / sizes.shape[1]), where=sums > 0)


def _split_rows(features: Floats) -> Iterator[Floats]:
    for start in range(0, len(features), _ROWS_AT_ONCE):
        yield features[start : start + _ROWS_AT_ONCE]


def _as_counts(values: NDArray[np.generic]) -> NDArray[np.int32]:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise InvalidInputError(f"expected whole numbers, got values of type {array.dtype}.", field="counts")
    if array.ndim != 2 or not 1 <= array.shape[0] <= MOST_FEATURES or not 1 <= array.shape[1] <= MOST_BINS:
        raise InvalidInputError(
            f"expected shape (m, B) with m in 1..{MOST_FEATURES} and B in 1..{MOST_BINS}, got {array.shape}.",
            field="counts",
        )
    if array.min() < 0 or array.max() > np.iinfo(np.int32).max:
        raise InvalidInputError("expected counts in 0..2^31-1.", field="counts")
    counts = array.astype(np.int32)
    counts.setflags(write=False)
    return counts


def _to_planes(counts: NDArray[np.integer[Any]]) -> NDArray[np.uint8]:
    """Counts (m, B) as bytes (P, B, m), the lowest byte first, as many as needed.

    Neighbouring bytes are alike so that they compress well: 47 kB instead of 58 kB for 10,000 images.
    """
    needed = max(1, (int(counts.max()).bit_length() + 7) // 8)
    return np.stack([(counts.T >> (8 * place) & 0xFF).astype(np.uint8) for place in range(needed)])


def _from_planes(planes: NDArray[np.generic]) -> NDArray[np.int64]:
    if planes.dtype != np.uint8 or planes.ndim != 3 or not 1 <= len(planes) <= 4:
        raise InvalidInputError(
            f"expected bytes of shape (P, B, m) with P in 1..4, got {planes.dtype} of {planes.shape}.",
            field="counts",
        )
    total = np.zeros(planes.shape[1:], dtype=np.int64)
    for place, plane in enumerate(planes):
        total += plane.astype(np.int64) << (8 * place)
    return total.T
