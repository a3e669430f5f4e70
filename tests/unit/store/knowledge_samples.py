"""Entries of a knowledge base for tests."""

import numpy as np

from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard, Training
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase


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


def make_base(tasks: int = 71, *, measured: int = 12) -> KnowledgeBase:
    """Tasks in the plane with published distances; between the first ones, pretraining was measured.

    Transfers help tasks with an even number, which are solved badly without, and do harm to the others; close sources
    do better than those far away.
    """
    rng = np.random.default_rng(0)
    places = rng.normal(size=(tasks, 2))
    distances = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    names = [f"task_{number}_with_a_long_name" for number in range(tasks)]
    entries: list[KnowledgeEntry] = []
    for target, name in enumerate(names):
        known = {
            names[source]: float(distances[source, target]) for source in range(tasks) if source != target
        }
        sources = [source for source in range(min(measured, tasks)) if source != target and target < measured]
        trainings = [Training(performance={"BA": tuple(0.65 + 0.1 * (target % 2) + rng.normal(0, 0.005, 3))})]
        trainings += [
            Training(
                scenario="pretraining",
                source=names[source],
                performance={"BA": tuple(0.715 - 0.03 * distances[source, target] + rng.normal(0, 0.005, 3))},
            )
            for source in sources
        ]
        card = TaskCard(name=name, dataset=f"set_{target}", classes=2 + target % 5, samples=100 + 10 * target)
        entries.append(
            KnowledgeEntry(
                card=card,
                trainings=tuple(trainings),
                distances={"bKLD(small,target)": known},
                licence="CC0-1.0",
            )
        )
    return KnowledgeBase.from_entries(entries)
