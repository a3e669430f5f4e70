"""Do suggestions of the knowledge base make better models? Each task is once the new one, unknown to the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from benchmarks.fingerprint_extractors import Extractor, random_extractor
from benchmarks.retraining_tasks import SPLITS, TASKS, task_images
from benchmarks.retraining_transfers import ARCHITECTURES, SEEDS, Cell
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.histogram import make_histogram_fingerprint
from lifelong_core.develop.knowledge.entry import SCENARIOS, KnowledgeEntry, Scenario, TaskCard, Training
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.ranking.fitting import TREES, fit_knowledge_ranker
from lifelong_core.develop.ranking.rank_sources import rank_sources

REPLICATES = 10_000
CLOSEST = "bKLD(small,target)"
"""the strategy of the thesis: the closest task by its fingerprint, whatever the expected gain"""

Measurements = Mapping[Cell, float]


@dataclass(frozen=True)
class Choice:
    """What a strategy gains for one new task in one scenario, in points of balanced accuracy, mean of the seeds.

    Attributes:
        suggested: by the first suggestion; 0 where the ranker advises against any transfer.
        source: of the suggestion; None: no transfer is advised.
        expected: gain that the suggestion promises.
        closest: by the closest task.
        random: by a random source: the mean of all.
        best: by the source that turned out best.
    """

    target: str
    scenario: Scenario
    suggested: float
    source: str | None
    expected: float
    closest: float
    random: float
    best: float


def gains_of(measured: Measurements, scenario: Scenario, target: str) -> dict[str, float]:
    """Points of balanced accuracy that each source brings to a target, mean of the measured seeds."""
    found: dict[str, float] = {}
    for source in TASKS:
        if source == target:
            continue
        values = [
            100 * (transferred - measured[Cell(None, None, target, seed)])
            for seed in range(SEEDS)
            if (transferred := _transferred(measured, scenario, source, target, seed)) is not None
        ]
        if len(values) == SEEDS:
            found[source] = float(np.mean(values))
    return found


def choices(measured: Measurements, *, targets: Sequence[str] = TASKS, trees: int = TREES) -> list[Choice]:
    """What each strategy would have chosen for each of these tasks, had it been new; `trees` of the ranker."""
    knowledge = _knowledge(measured, random_extractor("resnet18", 0))
    return [choice for target in targets for choice in _choices_for(knowledge, measured, target, trees)]


def most_promising(found: Sequence[Choice]) -> list[Choice]:
    """For each task the scenario whose suggestion promises most: what an operator would take."""
    best: dict[str, Choice] = {}
    for one in found:
        if one.target not in best or one.expected > best[one.target].expected:
            best[one.target] = one
    return list(best.values())


def summary(found: Sequence[Choice], strategy: str) -> dict[str, float]:
    """Mean gain of a strategy over the tasks with a 95 % bootstrap interval over tasks, and Wilcoxon's p-value."""
    values = np.array([getattr(one, strategy) for one in found])
    by_task = {name: values[[one.target == name for one in found]] for name in {one.target for one in found}}
    means = np.array([np.mean(gains) for gains in by_task.values()])
    rng = np.random.default_rng(0)
    drawn = means[rng.integers(len(means), size=(REPLICATES, len(means)))].mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    tested: Any = wilcoxon(means) if np.any(means) else None
    return {
        "mean": float(means.mean()),
        "low": float(low),
        "high": float(high),
        "p": float(tested.pvalue) if tested else 1.0,
    }


def difference(found: Sequence[Choice], first: str, second: str) -> dict[str, float]:
    """`summary` of what the first strategy gains more than the second one."""
    pairs = [_Difference(one.target, getattr(one, first) - getattr(one, second)) for one in found]
    return summary(pairs, "value")  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Difference:
    target: str
    value: float


def _transferred(
    measured: Measurements, scenario: Scenario, source: str, target: str, seed: int
) -> float | None:
    if scenario == "architecture":
        return measured.get(Cell(None, None, target, seed, _best_architecture(measured, source)))
    return measured.get(Cell(scenario, source, target, seed))


def _best_architecture(measured: Measurements, task: str) -> str:
    """The architecture with the highest mean over the seeds."""
    means = {
        name: np.mean([measured[Cell(None, None, task, seed, name)] for seed in range(SEEDS)])
        for name in ARCHITECTURES
    }
    return max(means, key=lambda name: float(means[name]))


def _choices_for(knowledge: KnowledgeBase, measured: Measurements, target: str, trees: int) -> list[Choice]:
    """The answers of a knowledge base that has never met the target."""
    entries = [entry for entry in knowledge.entries.values() if entry.card.name != target]
    known = KnowledgeBase(
        {entry.card.name: _without_source(entry, target) for entry in entries},
        {entry.card.name: knowledge.fingerprints[entry.card.name] for entry in entries},
    )
    ranker = fit_knowledge_ranker(known, trees=trees)
    found: list[Choice] = []
    for scenario in SCENARIOS:
        gains = gains_of(measured, scenario, target)
        if len(gains) < len(TASKS) - 1:
            continue
        card, prints = knowledge.entry(target).card, knowledge.fingerprints[target]
        ranking, closest = (
            rank_sources(
                known, card, scenario=scenario, strategy=strategy, ranker=ranker, fingerprints=prints
            )
            for strategy in ("learned", CLOSEST)
        )
        first = ranking.suggestions[0] if ranking.recommended else None
        found.append(
            Choice(
                target=target,
                scenario=scenario,
                suggested=gains[first.source] if first else 0.0,
                source=first.source if first else None,
                expected=100 * first.expected_gain if first else 0.0,
                closest=gains[closest.suggestions[0].source],
                random=float(np.mean(list(gains.values()))),
                best=max(gains.values()),
            )
        )
    return found


def _without_source(entry: KnowledgeEntry, name: str) -> KnowledgeEntry:
    kept = tuple(training for training in entry.trainings if training.source != name)
    return entry.model_copy(update={"trainings": kept})


def _knowledge(measured: Measurements, extractor: Extractor) -> KnowledgeBase:
    """All tasks with their trainings and fingerprints."""
    features = {name: extractor.features(_colours(name)) for name in TASKS}
    reference = extractor.reference(np.concatenate(list(features.values())))
    prints: dict[str, tuple[Fingerprint, ...]] = {
        name: (make_histogram_fingerprint(found, reference, bins=100),) for name, found in features.items()
    }
    return KnowledgeBase({name: _entry(measured, name) for name in TASKS}, prints)


def _colours(task: str) -> np.ndarray:
    """All images of a task, (n, EDGE, EDGE, 3)."""
    images = np.concatenate(list(task_images(task, 0).values()))
    return np.repeat(images[..., np.newaxis], 3, axis=-1)


def _entry(measured: Measurements, target: str) -> KnowledgeEntry:
    card = TaskCard(
        name=target,
        dataset=target,
        classes=3,
        samples=3 * sum(count for _, count in SPLITS),
    )
    baseline = tuple(measured[Cell(None, None, target, seed)] for seed in range(SEEDS))
    trainings = [Training(architecture=ARCHITECTURES[0], performance={"BA": baseline})]
    for scenario in SCENARIOS:
        for source in TASKS:
            values = [_transferred(measured, scenario, source, target, seed) for seed in range(SEEDS)]
            known = tuple(value for value in values if value is not None)
            if source != target and known:
                trainings.append(Training(scenario=scenario, source=source, performance={"BA": known}))
    return KnowledgeEntry(card=card, trainings=tuple(trainings))
