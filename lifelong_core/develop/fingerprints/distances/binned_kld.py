"""bKLD: binned Kullback-Leibler divergence (thesis, definition 5.13)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from lifelong_core.arrays import Floats, softmax
from lifelong_core.develop.fingerprints.distances.method import Method
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.errors import InvalidInputError

Weighting: TypeAlias = Literal["uniform", "source", "target"]
"""Of features: 1 / m each, mean shares of the source, or softmax of the mean features of the target."""


@dataclass(frozen=True)
class BinnedKLD(Method[HistogramFingerprint]):
    """sum_j w_j D_KL(q_j || softmax(p_j)), p of the source and q of the target (definition 5.13).

    The thesis writes KLD(softmax(p), q), where its KLD (definition 2.73) has the reference as second argument. The
    distance is finite for empty bins, not negative, and not symmetric; the distance to itself is not zero, because the
    softmax makes the source nearly uniform.

    It is linear in logarithms of the source: `target_query`, `source_row` and `target_offset` give it as
    `target_offset - source_row @ target_query`, which turns a query of a knowledge base into one matrix product.
    """

    fingerprint_type: ClassVar[type[Fingerprint]] = HistogramFingerprint
    is_symmetric: ClassVar[bool] = False
    is_zero_to_itself: ClassVar[bool] = False

    weighting: Weighting = "target"
    bins: int | None = None
    """that both fingerprints must have; None: any number"""

    def source_row(self, source: HistogramFingerprint) -> Floats:
        """Log-softmax of the histograms, (m B,); with weights of the source: multiplied by these, then the weights
        themselves, (m B + m,)."""
        logarithms = log_softmax(source.histograms)
        if self.weighting != "source":
            return logarithms.ravel()
        weights = source.mean_shares
        return np.concatenate([(weights[:, None] * logarithms).ravel(), weights])

    def target_query(self, target: HistogramFingerprint) -> Floats:
        """The factors of the elements of `source_row`."""
        histograms = target.histograms
        if self.weighting != "source":
            return (self._target_weights(target)[:, None] * histograms).ravel()
        return np.concatenate([histograms.ravel(), entropies(histograms)])

    def target_offset(self, target: HistogramFingerprint) -> float:
        """The part of the distance that is the same for all sources."""
        if self.weighting == "source":
            return 0.0
        return -float(self._target_weights(target) @ entropies(target.histograms))

    def _target_weights(self, target: HistogramFingerprint) -> Floats:
        if self.weighting == "uniform":
            return np.full(target.features, 1 / target.features)
        return softmax(target.mean_features[None, :])[0]

    def _check(self, fingerprint: Fingerprint, field: str) -> None:
        super()._check(fingerprint, field)
        if self.bins is not None and getattr(fingerprint, "bins", None) != self.bins:
            raise InvalidInputError(
                f"this method needs histograms of {self.bins} bins, got {getattr(fingerprint, 'bins', None)}.",
                field=field,
                hint=f"Make the fingerprint with bins={self.bins}.",
            )

    def _distances(self, sources: Sequence[HistogramFingerprint], target: HistogramFingerprint) -> Floats:
        query, offset = self.target_query(target), self.target_offset(target)
        # One source at a time: a matrix of all rows would take 400 kB for each.
        return np.array([offset - self.source_row(source) @ query for source in sources])

    def _matrix(self, fingerprints: Sequence[HistogramFingerprint]) -> Floats:
        rows = np.stack([self.source_row(source) for source in fingerprints])
        queries = np.stack([self.target_query(target) for target in fingerprints])
        return np.array([self.target_offset(target) for target in fingerprints]) - rows @ queries.T


def log_softmax(histograms: Floats) -> Floats:
    """Logarithm of the softmax of each normalised histogram, (m, B)."""
    return histograms - np.log(np.exp(histograms).sum(axis=1, keepdims=True))


def entropies(histograms: Floats) -> Floats:
    """Entropy of each normalised histogram, (m,), in nats; empty bins count 0."""
    logarithms = np.log(histograms, out=np.zeros_like(histograms), where=histograms > 0)
    return -(histograms * logarithms).sum(axis=1)
