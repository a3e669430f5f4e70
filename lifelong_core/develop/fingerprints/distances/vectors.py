"""P2L, FED, Manual, FID, EMD and VDNA: distances of vectors, Gaussian distributions and single features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lifelong_core.develop.fingerprints.distances.method import Method
from lifelong_core.develop.fingerprints.feature_set import FeatureFingerprint
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.fisher import FisherFingerprint, KeywordFingerprint
from lifelong_core.develop.fingerprints.gaussian import GaussianFingerprint
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.values.arrays import Floats

_UNIFORM_SHARE = 1e-6


@dataclass(frozen=True)
class P2L(Method[HistogramFingerprint]):
    """D_KL(target || source) of the mean shares of the features (thesis, definition 5.12; Bhattacharjee et al., 2020).

    The direction is that of the definition, whose KLD (definition 2.73) has the reference as second argument; the
    published code has both directions. Both vectors are mixed with one millionth of the uniform distribution, so that
    a feature that never fires in the source does not make the distance infinite. The number of source images, which
    the paper also weighs in, is left to the ranker.
    """

    fingerprint_type: ClassVar[type[Fingerprint]] = HistogramFingerprint
    is_symmetric: ClassVar[bool] = False
    is_zero_to_itself: ClassVar[bool] = True

    def _distances(self, sources: Sequence[HistogramFingerprint], target: HistogramFingerprint) -> Floats:
        reference = _smooth(target.mean_shares)
        logarithms = np.log(reference)
        distances = [reference @ (logarithms - np.log(_smooth(source.mean_shares))) for source in sources]
        return np.maximum(distances, 0.0)


def _smooth(shares: Floats) -> Floats:
    return (1 - _UNIFORM_SHARE) * shares / shares.sum() + _UNIFORM_SHARE / shares.size


@dataclass(frozen=True)
class FED(Method[FisherFingerprint]):
    """1 - cosine similarity of the Fisher embeddings (thesis, definition 5.11), in [0, 1]."""

    fingerprint_type: ClassVar[type[Fingerprint]] = FisherFingerprint
    is_symmetric: ClassVar[bool] = True
    is_zero_to_itself: ClassVar[bool] = True

    def _distances(self, sources: Sequence[FisherFingerprint], target: FisherFingerprint) -> Floats:
        reference = _unit_vector(target.embedding)
        # Half the squared distance of unit vectors is 1 - cosine, without the rounding of a difference of ones.
        distances = [((_unit_vector(source.embedding) - reference) ** 2).sum() / 2 for source in sources]
        return np.array(distances)


def _unit_vector(vector: Floats) -> Floats:
    scaled = vector / vector.max()  # squares of small entries would underflow
    return scaled / np.linalg.norm(scaled)


@dataclass(frozen=True)
class Manual(Method[KeywordFingerprint]):
    """1 - intersection / union of the keywords (Jaccard distance), in [0, 1].

    The denominator of definition 5.18, 2 m - intersection with m the number of all known keywords, is not the union
    that the definition names; its distances also change when any task gets a new keyword. Ties are common and are left
    as they are; the thesis breaks them in favour of the larger source.
    """

    fingerprint_type: ClassVar[type[Fingerprint]] = KeywordFingerprint
    is_symmetric: ClassVar[bool] = True
    is_zero_to_itself: ClassVar[bool] = True

    def _distances(self, sources: Sequence[KeywordFingerprint], target: KeywordFingerprint) -> Floats:
        wanted = set(target.keywords)
        shares = [
            len(wanted & set(source.keywords)) / len(wanted | set(source.keywords)) for source in sources
        ]
        return 1 - np.array(shares)


@dataclass(frozen=True)
class Frechet(Method[GaussianFingerprint]):
    """W_2 of the two Gaussian measures (thesis, definition 5.9), in units of the features.

    W_2^2 = ||m_1 - m_2||^2 + tr(S_1 + S_2) - 2 tr((S_1^.5 S_2 S_1^.5)^.5) (Dowson and Landau, 1982). The published
    code, like most others, leaves out the root of W_2^2; the order of sources is the same.
    """

    fingerprint_type: ClassVar[type[Fingerprint]] = GaussianFingerprint
    is_symmetric: ClassVar[bool] = True
    is_zero_to_itself: ClassVar[bool] = True

    def _distances(self, sources: Sequence[GaussianFingerprint], target: GaussianFingerprint) -> Floats:
        root = _square_root(target.covariance)
        squared = [
            float(((source.mean - target.mean) ** 2).sum())
            + float(np.trace(source.covariance) + np.trace(target.covariance))
            # The last trace is the sum of the singular values of the product of the roots. They are computed without
            # squaring small numbers, which matters when there are fewer images than features.
            - 2 * float(np.linalg.svd(_square_root(source.covariance) @ root, compute_uv=False).sum())
            for source in sources
        ]
        return np.sqrt(np.maximum(squared, 0.0))


def _square_root(matrix: Floats) -> Floats:
    """The symmetric square root of a symmetric, positive semi-definite matrix; rounding below zero counts as zero."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


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
