"""naive and MMD: means over all pairs of images."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lifelong_core.develop.fingerprints.distances.method import Method
from lifelong_core.develop.fingerprints.feature_set import FeatureFingerprint
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError

_ROWS_AT_ONCE = 512
"""Images whose distances to all others are in memory at once."""


@dataclass(frozen=True)
class Naive(Method[FeatureFingerprint]):
    """Mean Euclidean distance of all pairs of a source and a target image (thesis, example 5.2, with p = 2).

    The distance to itself is not zero. Unequal numbers of images: the mean over n_source n_target pairs.
    """

    fingerprint_type: ClassVar[type[Fingerprint]] = FeatureFingerprint
    is_symmetric: ClassVar[bool] = True
    is_zero_to_itself: ClassVar[bool] = False

    def _distances(self, sources: Sequence[FeatureFingerprint], target: FeatureFingerprint) -> Floats:
        return np.array([_mean_distance(source.rows, target.rows) for source in sources])


@dataclass(frozen=True)
class MaximumMeanDiscrepancy(Method[FeatureFingerprint]):
    """MMD, squared and unbiased, with a Cauchy kernel (thesis, definition 5.3; Gretton et al., 2012, lemma 6).

    As the definition has it, no root is taken, and pairs of an image with itself are left out, so that the mean is 0
    for two samples of one distribution, and a value can be negative. Unequal numbers of images: each mean has its own
    number of pairs. The published code includes these pairs, which biases it by about 2 / n, and averages over chunks.

    Attributes:
        bandwidth: nu of the kernel 1 / (1 + ||u - v||^2 / nu^2); None: the root of the number of features. The
            definition leaves it open.
    """

    fingerprint_type: ClassVar[type[Fingerprint]] = FeatureFingerprint
    is_symmetric: ClassVar[bool] = True
    is_zero_to_itself: ClassVar[bool] = False

    bandwidth: float | None = None

    def __post_init__(self) -> None:
        """Check the bandwidth."""
        if self.bandwidth is not None and not 0 < self.bandwidth < math.inf:
            raise InvalidInputError(
                f"expected a finite number above 0, got {self.bandwidth}.", field="bandwidth"
            )

    def _check(self, fingerprint: Fingerprint, field: str) -> None:
        super()._check(fingerprint, field)
        if getattr(fingerprint, "samples", 0) < 2:
            raise InvalidInputError("MMD needs at least two images for each task, got one.", field=field)

    def _distances(self, sources: Sequence[FeatureFingerprint], target: FeatureFingerprint) -> Floats:
        bandwidth = self.bandwidth if self.bandwidth is not None else math.sqrt(target.features)
        within_target = _mean_within(target.rows, bandwidth)
        return np.array(
            [
                _mean_within(source.rows, bandwidth)
                + within_target
                - 2 * _kernel_sum(source.rows, target.rows, bandwidth) / (source.samples * target.samples)
                for source in sources
            ]
        )


def _mean_within(rows: Floats, bandwidth: float) -> float:
    """Mean kernel of all pairs of different rows; the kernel of a row and itself is 1."""
    count = len(rows)
    return (_kernel_sum(rows, rows, bandwidth) - count) / (count * (count - 1))


def _kernel_sum(first: Floats, second: Floats, bandwidth: float) -> float:
    return sum(
        float((1 / (1 + squared / bandwidth**2)).sum()) for squared in _squared_distances(first, second)
    )


def _mean_distance(first: Floats, second: Floats) -> float:
    total = sum(float(np.sqrt(squared).sum()) for squared in _squared_distances(first, second))
    return total / (len(first) * len(second))


def _squared_distances(first: Floats, second: Floats) -> Iterator[Floats]:
    """Squared Euclidean distances of all pairs of rows, some rows of the first array at a time."""
    # A common shift changes no distance, and keeps the squares small, and with them the rounding of their difference.
    centre = second.mean(axis=0)
    ours, others = first - centre, second - centre
    squares = (others**2).sum(axis=1)
    for start in range(0, len(ours), _ROWS_AT_ONCE):
        rows = ours[start : start + _ROWS_AT_ONCE]
        yield np.maximum((rows**2).sum(axis=1)[:, None] + squares - 2 * rows @ others.T, 0.0)
