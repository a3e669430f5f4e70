"""How bins, samples and storage change what fingerprints find; by features that are extracted once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.fingerprint_retrieval import ORIGINAL, Pool, Row, Sample, retrieve, retrieve_by
from lifelong_core.develop.fingerprints.distances.binned_kld import BinnedKLD
from lifelong_core.develop.fingerprints.distances.registry import JEFFREYS, METHODS
from lifelong_core.develop.fingerprints.distances.vectors import VDNA
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint, make_histogram_fingerprint

COMPARED = ("bKLD(small,target)", "bKLD(small,smoothed)", "VDNA")
BINS = (5, 20, 100, 1000)
SAMPLES = (10, 30, 100, 300, 1000)


def vary_bins(pool: Pool, bins: Sequence[int] = BINS) -> list[Row]:
    """Other numbers of bins."""
    rows: list[Row] = []
    for number in bins:
        methods = {
            COMPARED[0]: BinnedKLD("target", number),
            COMPARED[1]: BinnedKLD("target", number, JEFFREYS),
            COMPARED[2]: VDNA(),
        }
        made = _histograms(pool, lambda features, number=number: _histogram(features, pool, number))
        for name, method in methods.items():
            rows += _named(retrieve(pool, method, made), bins=number, method=name)
    return rows


def vary_samples(pool: Pool, samples: Sequence[int] = SAMPLES) -> list[Row]:
    """The first images of each task and variant only."""
    rows: list[Row] = []
    for number in samples:
        few = replace(pool, features={key: one[:number] for key, one in pool.features.items()})
        for name in COMPARED:
            rows += _named(retrieve_by(few, METHODS[name]), samples=number, method=name)
    return rows


def vary_storage(pool: Pool) -> list[Row]:
    """Rows of the query index as float64, float32 and float16: how often the order of the sources is the same."""
    rows: list[Row] = []
    for name, method in METHODS.items():
        if name not in COMPARED or not isinstance(method, BinnedKLD):
            continue
        made = _histograms(pool, lambda features: _histogram(features, pool, 100))
        sources = [key for key in made if key[1] == ORIGINAL]
        exact = np.stack([method.source_row(made[key]) for key in sources])
        for number_type in (np.float32, np.float16):
            stored = exact.astype(number_type).astype(np.float32)
            for key, target in made.items():
                if key[1] == ORIGINAL:
                    continue
                query = method.target_query(target)
                order, found = np.argsort(-exact @ query), np.argsort(-stored @ query.astype(np.float32))
                rows.append(
                    {
                        "method": name,
                        "storage": np.dtype(number_type).name,
                        "same_first": bool(order[0] == found[0]),
                        "same_five": bool((order[:5] == found[:5]).all()),
                    }
                )
    return rows


def _histogram(features: np.ndarray, pool: Pool, bins: int) -> HistogramFingerprint:
    return make_histogram_fingerprint(features, pool.reference, bins=bins)


def _histograms(
    pool: Pool, make: Callable[[np.ndarray], HistogramFingerprint]
) -> Mapping[Sample, HistogramFingerprint]:
    return {key: make(features) for key, features in pool.features.items()}


def _named(rows: Sequence[Row], **fields: Any) -> list[Row]:
    return [{**row, **fields} for row in rows]
