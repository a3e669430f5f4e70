"""Entries of a knowledge base for tests."""

import numpy as np

from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard, Training


def make_entry(name: str = "moles", *, samples: int = 100, sources: tuple[str, ...] = ()) -> KnowledgeEntry:
    """An entry with a transfer from each source."""
    card = TaskCard(name=name, classes=2, samples=samples, keywords=("skin",), modality="dermatoscopy")
    baseline = Training(performance={"BA": (0.7, 0.72, 0.71)})
    transfers = tuple(
        Training(scenario="pretraining", source=source, performance={"BA": (0.75, 0.8, 0.78)})
        for source in sources
    )
    return KnowledgeEntry(
        card=card, trainings=(baseline, *transfers), licence="CC0-1.0", contact="a@clinic.example"
    )


def make_histogram(seed: int = 0, *, extractor: str = "ab" * 32, bins: int = 8) -> HistogramFingerprint:
    """A histogram fingerprint of 20 images with 3 features."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(20, np.full(bins, 1 / bins), size=3)
    return HistogramFingerprint(extractor, 20, counts, rng.normal(size=3), np.full(3, 1 / 3))
