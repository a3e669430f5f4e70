"""bKLD: binned Kullback-Leibler divergence (thesis, definition 5.13)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.develop.fingerprints.distances.method import Method
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.values.arrays import Floats, softmax
from lifelong_core.values.errors import InvalidInputError

Weighting: TypeAlias = Literal["uniform", "source", "target"]
"""Of features: 1 / m each, mean shares of the source, or softmax of the mean features of the target."""

_BLOCK_BYTES = 64 * 2**20
"""Memory of the rows that are multiplied at once; those of 1,000 fingerprints take 400 MB, with 1,000 bins 4 GB."""


@dataclass(frozen=True)
class BinnedKLD(Method[HistogramFingerprint]):
    """sum_j w_j D_KL(q_j || softmax(p_j)), p of the source and q of the target (definition 5.13).

    The thesis writes KLD(softmax(p), q), where its KLD (definition 2.73) has the reference as second argument. The
    distance is finite for empty bins, not negative, and not symmetric; the distance to itself is not zero, because the
    softmax makes the source nearly uniform.

    The softmax also favours sources whose histograms are narrow, whatever the target: a narrow source can be closer
    than the target's own images. With `pseudo_count`, p_j is smoothed instead: (counts + pseudo_count) / their sum. The
    distance is then the estimated D_KL(q_j || p_j), which is smallest for alike histograms. The thesis does not have
    this form; `docs/fingerprint_evidence.md` compares the two.

    It is linear in logarithms of the source: `target_query`, `source_row` and `target_offset` give it as
    `target_offset - source_row @ target_query`, which turns a query of a knowledge base into one matrix product.
    """

    fingerprint_type: ClassVar[type[Fingerprint]] = HistogramFingerprint
    is_symmetric: ClassVar[bool] = False
    is_zero_to_itself: ClassVar[bool] = False

    weighting: Weighting = "target"
    bins: int | None = None
    """that both fingerprints must have; None: any number"""
    pseudo_count: float | None = None
    """added to each bin of the source, above 0; None: softmax, as in the definition"""

    def __post_init__(self) -> None:
        """Check the pseudo-count."""
        if self.pseudo_count is not None and not 0 < self.pseudo_count < math.inf:
            raise InvalidInputError(
                f"expected a finite number above 0, or None, got {self.pseudo_count}.", field="pseudo_count"
            )

    def source_row(self, source: HistogramFingerprint) -> Floats:
        """Logarithms of the softmax of the histograms, or of the smoothed ones, (m B,); with weights of the source:
        multiplied by these, then the weights themselves, (m B + m,)."""
        if self.pseudo_count is None:
            logarithms = log_softmax(source.histograms)
        else:
            logarithms = log_smoothed(source.counts, self.pseudo_count)
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
        step = max(1, _BLOCK_BYTES // (fingerprints[0].counts.size * 8))
        blocks = [slice(start, start + step) for start in range(0, len(fingerprints), step)]
        products = np.empty((len(fingerprints), len(fingerprints)))
        for ours in blocks:
            rows = np.stack([self.source_row(source) for source in fingerprints[ours]])
            for others in blocks:
                queries = np.stack([self.target_query(target) for target in fingerprints[others]])
                products[ours, others] = rows @ queries.T
        return np.array([self.target_offset(target) for target in fingerprints]) - products


def log_softmax(histograms: Floats) -> Floats:
    """Logarithm of the softmax of each normalised histogram, (m, B)."""
    return histograms - np.log(np.exp(histograms).sum(axis=1, keepdims=True))


def log_smoothed(counts: NDArray[np.integer[Any]], pseudo_count: float) -> Floats:
    """Logarithm of each histogram of counts, (m, B), with a pseudo-count added to each bin (Lidstone smoothing)."""
    smoothed = counts + pseudo_count
    return np.log(smoothed / smoothed.sum(axis=1, keepdims=True))


def entropies(histograms: Floats) -> Floats:
    """Entropy of each normalised histogram, (m,), in nats; empty bins count 0."""
    logarithms = np.log(histograms, out=np.zeros_like(histograms), where=histograms > 0)
    return -(histograms * logarithms).sum(axis=1)


@dataclass(frozen=True)
class JensenShannon(Method[HistogramFingerprint]):
    """Mean over the features of sqrt(JS(p_j, q_j) / ln 2), in [0, 1]; a metric (Endres & Schindelin, 2003).

    JS(p, q) is the entropy of (p + q) / 2 minus the mean entropy of both (Lin, 1991): it needs no smoothing, and narrow
    histograms have no advantage. The thesis tried the divergence in its search (section 5.2.1) and does not define it
    further; `docs/fingerprint_evidence.md` compares it with bKLD.
    """

    fingerprint_type: ClassVar[type[Fingerprint]] = HistogramFingerprint
    is_symmetric: ClassVar[bool] = True
    is_zero_to_itself: ClassVar[bool] = True

    def _distances(self, sources: Sequence[HistogramFingerprint], target: HistogramFingerprint) -> Floats:
        histograms, entropy = target.histograms, entropies(target.histograms)
        return np.array([_mean_distance(source.histograms, histograms, entropy) for source in sources])


def _mean_distance(source: Floats, target: Floats, target_entropy: Floats) -> float:
    divergence = entropies((source + target) / 2) - (entropies(source) + target_entropy) / 2
    return float(np.sqrt(np.clip(divergence / np.log(2), 0.0, 1.0)).mean())
