"""JSD: the mean over the features of the Jensen-Shannon distance of their histograms."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lifelong_core.develop.fingerprints.distances.binned_kld import entropies
from lifelong_core.develop.fingerprints.distances.method import Method
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.values.arrays import Floats


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
