"""Mean and covariance of the features: the fingerprint of FID."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from lifelong_core.develop.fingerprints.fingerprint import (
    Arrays,
    FeatureHeader,
    Fingerprint,
    Header,
    as_features,
    as_single,
)
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError

MOST_GAUSSIAN_FEATURES = 4096
"""On one core, checking a covariance of this size takes 3 s, a distance 40 s (scaled up from 1,024 features)."""

_EIGENVALUE_TOLERANCE = 1e-6
"""of the trace: how far below zero float32 may push the smallest eigenvalue"""


class GaussianHeader(FeatureHeader):
    """Header of a `GaussianFingerprint`."""


@dataclass(frozen=True, eq=False)
class GaussianFingerprint(Fingerprint):
    """The empirical Gaussian measure of the features (thesis, definition 5.8), from at least two images.

    Raises:
        InvalidInputError: a field has an illegal value, or the covariance is not symmetric and positive semi-definite.
    """

    kind: ClassVar[str] = "gaussian"
    header_type: ClassVar[type[Header]] = GaussianHeader
    array_types: ClassVar[Mapping[str, str]] = {"mean": "f", "triangle": "f"}

    extractor: str
    """digest of the extractor reference"""
    samples: int
    """number of images, n"""
    mean: Floats
    """(m,)"""
    covariance: Floats
    """(m, m), with denominator n - 1"""
    seed: int = 0
    """of the sampling of the images"""

    def __post_init__(self) -> None:
        """Check the fields and make the arrays read-only."""
        self._header()
        if self.samples < 2:
            raise InvalidInputError("expected at least two images: one has no covariance.", field="samples")
        size = np.asarray(self.mean).size
        _check_size(size)
        mean = as_single(self.mean, (size,), field="mean")
        covariance = as_single(self.covariance, (size, size), field="covariance")
        if not np.array_equal(covariance, covariance.T):
            raise InvalidInputError("expected a symmetric matrix.", field="covariance")
        if not _is_positive_semidefinite(covariance):
            raise InvalidInputError("expected a positive semi-definite matrix.", field="covariance")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "covariance", covariance)

    @property
    def features(self) -> int:
        """Number of features, m."""
        return self.mean.size

    def _arrays(self) -> Arrays:
        triangle = self.covariance[np.tril_indices(self.features)]
        return {"mean": self.mean.astype(np.float32), "triangle": triangle.astype(np.float32)}

    @classmethod
    def from_parts(cls, header: GaussianHeader, arrays: Any) -> Self:
        """Return the fingerprint of a checked header and the arrays of the file."""
        size = arrays["mean"].size
        if arrays["mean"].ndim != 1 or arrays["triangle"].shape != (size * (size + 1) // 2,):
            raise InvalidInputError(
                "expected the lower triangle of a covariance matrix, row by row.", field="triangle"
            )
        covariance = np.zeros((size, size))
        covariance[np.tril_indices(size)] = arrays["triangle"]
        covariance = covariance + np.tril(covariance, -1).T
        return cls(header.extractor, header.samples, arrays["mean"], covariance, header.seed)


class GaussianBuilder:
    """Mean and covariance of batches of features of any number of images, in memory that depends only on m.

    Means and scatter matrices are merged as in Chan, Golub and LeVeque (1979), so that large means cost no precision.
    """

    def __init__(self, extractor: ExtractorReference) -> None:
        _check_size(extractor.features)
        self._extractor = extractor
        self._mean = np.zeros(extractor.features)
        self._scatter = np.zeros((extractor.features, extractor.features))
        self.samples = 0

    def add(self, features: ArrayLike) -> None:
        """Count features, (n, m).

        Raises:
            InvalidInputError: another shape, or a value that is not finite; nothing of the batch is counted then.
        """
        array = as_features(features, features=self._extractor.features)
        mean = array.mean(axis=0)
        self._merge(len(array), mean, (array - mean).T @ (array - mean))

    def merge(self, other: "GaussianBuilder") -> None:
        """Add the counts of another builder.

        Raises:
            InvalidInputError: it has another extractor.
        """
        if self._extractor.digest != other._extractor.digest:
            raise InvalidInputError("expected a builder of the same extractor.", field="builder")
        self._merge(other.samples, other._mean, other._scatter)

    def _merge(self, samples: int, mean: Floats, scatter: Floats) -> None:
        total = self.samples + samples
        if not samples:
            return
        difference = mean - self._mean
        self._mean = self._mean + difference * (samples / total)
        self._scatter += scatter + np.outer(difference, difference) * (self.samples * samples / total)
        self.samples = total

    def build(self, *, seed: int = 0) -> GaussianFingerprint:
        """The fingerprint of all images so far; more can be added afterwards.

        Raises:
            InvalidInputError: fewer than two images were added.
        """
        if self.samples < 2:
            raise InvalidInputError(f"expected at least two images, got {self.samples}.", field="features")
        scatter = (self._scatter + self._scatter.T) / 2
        return GaussianFingerprint(
            self._extractor.digest, self.samples, self._mean, scatter / (self.samples - 1), seed
        )


def make_gaussian_fingerprint(
    features: ArrayLike, extractor: ExtractorReference, *, seed: int = 0
) -> GaussianFingerprint:
    """Gaussian fingerprint of features, (n, m) with n >= 2.

    Raises:
        InvalidInputError: another shape, fewer than two images, or a value that is not finite.
    """
    builder = GaussianBuilder(extractor)
    builder.add(features)
    return builder.build(seed=seed)


def _check_size(features: int) -> None:
    if not 1 <= features <= MOST_GAUSSIAN_FEATURES:
        raise InvalidInputError(
            f"expected 1..{MOST_GAUSSIAN_FEATURES} features, got {features}.",
            field="mean",
            hint="Use another kind of fingerprint for this extractor.",
        )


def _is_positive_semidefinite(matrix: Floats) -> bool:
    """Whether no eigenvalue of a symmetric matrix is below zero by more than rounding."""
    tolerance = _EIGENVALUE_TOLERANCE * max(float(np.trace(matrix)), 0.0) + float(np.finfo(np.float32).tiny)
    try:
        np.linalg.cholesky(matrix + tolerance * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True
