"""What differentially private fingerprints still find."""

from collections.abc import Sequence

import numpy as np

from benchmarks.fingerprint_retrieval import ORIGINAL, Pool, Row, Sample, retrieve
from benchmarks.fingerprint_settings import COMPARED
from lifelong_core.develop.fingerprints.distances.registry import METHODS, SMALL
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.histogram import make_histogram_fingerprint
from lifelong_core.develop.fingerprints.private_histogram import make_private

SAMPLES = (100, 1000, 10_000)
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
DELTA = 1e-6


def vary_privacy(
    pool: Pool,
    *,
    samples: Sequence[int] = SAMPLES,
    epsilons: Sequence[float] = EPSILONS,
    delta: float = DELTA,
    seed: int = 0,
) -> list[Row]:
    """Private fingerprints of the sources, as a bundle would hold them; the target's own stays exact.

    More samples than there are images are drawn with replacement: this only shows how noise compares with counts.
    Infinite epsilon: exact.
    """
    rows: list[Row] = []
    for number in samples:
        rng = np.random.default_rng(seed)
        drawn = {key: _drawn(one, number, rng) for key, one in pool.features.items()}
        exact = {
            key: make_histogram_fingerprint(one, pool.reference, bins=SMALL) for key, one in drawn.items()
        }
        for epsilon in (*epsilons, np.inf):
            made: dict[Sample, Fingerprint] = {
                key: one
                if np.isinf(epsilon) or key[1] != ORIGINAL
                else make_private(one, pool.reference, epsilon=epsilon, delta=delta)
                for key, one in exact.items()
            }
            for name in COMPARED:
                found = retrieve(pool, METHODS[name], made)
                setting = {"samples": number, "epsilon": epsilon, "method": name}
                rows += [{**row, **setting} for row in found]
    return rows


def _drawn(features: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    if number <= len(features):
        return features[:number]
    return features[rng.integers(len(features), size=number)]
