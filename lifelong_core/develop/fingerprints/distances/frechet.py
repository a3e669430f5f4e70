"""FID: Fréchet distance of Gaussian distributions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lifelong_core.develop.fingerprints.distances.method import Method
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.gaussian import GaussianFingerprint
from lifelong_core.values.arrays import Floats


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
