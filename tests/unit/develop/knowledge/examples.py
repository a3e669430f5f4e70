"""Small entries for the tests of the knowledge base."""

import numpy as np

from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.develop.knowledge.entry import KnowledgeEntry, Scenario, TaskCard, Training


def make_card(name: str, dataset: str | None = None) -> TaskCard:
    return TaskCard(name=name, dataset=dataset, keywords=("medical",), classes=3, samples=500)


def make_entry(
    name: str,
    *,
    dataset: str | None = None,
    baseline: tuple[float, ...] = (0.5, 0.6),
    transfers: dict[tuple[Scenario, str], tuple[float, ...]] | None = None,
    training_samples: int | None = None,
    distances: dict[str, dict[str, float]] | None = None,
) -> KnowledgeEntry:
    trainings = (
        [Training(training_samples=training_samples, performance={"BA": baseline})] if baseline else []
    )
    trainings += [
        Training(
            scenario=scenario, source=source, training_samples=training_samples, performance={"BA": values}
        )
        for (scenario, source), values in (transfers or {}).items()
    ]
    return KnowledgeEntry(
        card=make_card(name, dataset), trainings=tuple(trainings), distances=distances or {}
    )


def same(left: object, right: object) -> bool:
    return np.array_equal(np.asarray(left), np.asarray(right), equal_nan=True)


def make_fingerprint(
    seed: int = 0, *, features: int = 4, bins: int = 5, samples: int = 200, extractor: str = "a" * 64
) -> HistogramFingerprint:
    """A fingerprint of random features with other distributions for each seed."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(bins, 0.3), size=features)
    counts = np.stack([rng.multinomial(samples, row) for row in shares])
    means = rng.gamma(0.5, 1.0, size=features)
    return HistogramFingerprint(extractor, samples, counts, means, means / means.sum(), seed)
