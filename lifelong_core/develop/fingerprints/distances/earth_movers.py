"""EMD and VDNA: the mean over the features of the one-dimensional earth mover's distance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lifelong_core.develop.fingerprints.distances.method import Method
from lifelong_core.develop.fingerprints.feature_set import FeatureFingerprint
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.values.arrays import Floats


@dataclass(frozen=True)
class EarthMovers(Method[FeatureFingerprint]):
    """EMD (thesis, definition 5.6), in units of the features.

    It is computed from quantile functions, and so for unequal numbers of images too. The "EMD-AVG" of the published
    code accumulates over the index of the features, which is another quantity.
    """

    fingerprint_type: ClassVar[type[Fingerprint]] = FeatureFingerprint
    is_symmetric: ClassVar[bool] = True
    is_zero_to_itself: ClassVar[bool] = True

    def _distances(self, sources: Sequence[FeatureFingerprint], target: FeatureFingerprint) -> Floats:
        sorted_target = np.sort(target.rows, axis=0)
        return np.array([_mean_distance(np.sort(source.rows, axis=0), sorted_target) for source in sources])


def _mean_distance(first: Floats, second: Floats) -> float:
    """Mean over the columns of the integral of the distance between the quantile functions of two sorted arrays."""
    steps = np.union1d(np.arange(1, len(first) + 1) * len(second), np.arange(1, len(second) + 1) * len(first))
    widths = np.diff(steps, prepend=0)
    ours, others = (steps - 1) // len(second), (steps - 1) // len(first)
    total = sum(
        float(widths @ np.abs(first[ours, column] - second[others, column]))
        for column in range(first.shape[1])
    )
    return total / (len(first) * len(second) * first.shape[1])


@dataclass(frozen=True)
class VDNA(Method[HistogramFingerprint]):
    """Mean earth mover's distance of the normalised histograms (thesis, definition 5.7; Ramtoula et al., 2023).

    The unit of a feature is the range between its edges, so that a feature with large values does not count more;
    moving everything by one bin costs 1 / B. The published code counts in bins, which gives B times the distance.
    """

    fingerprint_type: ClassVar[type[Fingerprint]] = HistogramFingerprint
    is_symmetric: ClassVar[bool] = True
    is_zero_to_itself: ClassVar[bool] = True

    def _distances(self, sources: Sequence[HistogramFingerprint], target: HistogramFingerprint) -> Floats:
        cumulated = target.histograms.cumsum(axis=1)
        return np.array([np.abs(source.histograms.cumsum(axis=1) - cumulated).mean() for source in sources])
