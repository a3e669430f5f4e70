"""P2L, FED and Manual: distances of one vector for each task."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lifelong_core.develop.fingerprints.distances.method import Method
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.fisher import FisherFingerprint
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.develop.fingerprints.keywords import KeywordFingerprint
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
