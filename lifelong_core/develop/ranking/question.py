"""What is known of one target and its possible sources, gathered from a knowledge base."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np

from lifelong_core.develop.fingerprints.distances.registry import METHODS
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.knowledge.entry import Scenario, TaskCard, TransferOutcomes, dataset_of
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.ranking.features import DISTANCES
from lifelong_core.develop.ranking.ranker import mean_baseline
from lifelong_core.develop.ranking.source_distances import source_distances
from lifelong_core.develop.ranking.standardised_gains import gain_variances, gains
from lifelong_core.values.arrays import Floats


@dataclass(frozen=True)
class TrackRecord:
    """Mean gain of a source on targets of other data sets than the asked one."""

    gain: float
    targets: int


@dataclass(frozen=True)
class Question:
    """A target, its K possible sources, and what was measured of them in one scenario and measure."""

    target: TaskCard
    sources: tuple[TaskCard, ...]
    distances: Mapping[str, Floats]
    """by method, shape (K,); nan: not known"""
    baseline: float | None
    """mean performance of the target without transfer; None: not measured"""
    measured_gains: Floats
    """(K,): of transfers to this very target; nan: not measured"""
    measured_variances: Floats
    """(K,): of these gains, from repetitions; nan: not known"""
    records: Mapping[str, TrackRecord]
    """by source"""

    @classmethod
    def ask(
        cls,
        knowledge: KnowledgeBase,
        target: str | TaskCard,
        *,
        scenario: Scenario,
        measure: str,
        methods: Sequence[str] = (),
        fingerprints: Sequence[Fingerprint] = (),
        is_for_ranker: bool = True,
    ) -> Self:
        """Gather it; `methods` are those beside the ranker's; others need the ranker's only where these are unknown.

        Raises:
            NotFoundError: the knowledge base does not hold the target.
        """
        card = knowledge.entry(target).card if isinstance(target, str) else target
        outcomes = knowledge.outcomes()
        names = knowledge.possible_sources(target)
        if is_for_ranker:
            # Of the others nothing was measured or published: there is nothing to transfer, and no evidence.
            names = tuple(name for name in names if name in outcomes.tasks)
        gain = _gains(outcomes, scenario, measure)

        def measure_by(wanted: Sequence[str]) -> dict[str, Floats]:
            return {
                method: source_distances(knowledge, card.name, names, method, fingerprints)
                for method in wanted
            }

        distances = measure_by([method for method in methods if method in METHODS])
        if is_for_ranker or all(np.isnan(held).all() for held in distances.values()):
            distances |= measure_by([method for method in DISTANCES if method not in distances])
            distances = {method: distances[method] for method in dict.fromkeys((*DISTANCES, *distances))}
        known, variances, baseline = dict[str, float](), dict[str, float](), None
        if card.name in outcomes.tasks:
            place = outcomes.tasks.index(card.name)
            known = dict(zip(outcomes.tasks, gain[:, place].tolist(), strict=True))
            baseline = mean_baseline(outcomes, measure, place)
            variance = _variances(outcomes, scenario, measure)
            variances = dict(zip(outcomes.tasks, variance[:, place].tolist(), strict=True))
        return cls(
            card,
            tuple(knowledge.entry(name).card for name in names),
            MappingProxyType(distances),
            baseline,
            np.array([known.get(name, np.nan) for name in names], dtype=np.float64),
            np.array([variances.get(name, np.nan) for name in names], dtype=np.float64),
            MappingProxyType(_track_records(outcomes, card, gain)),
        )


def _gains(outcomes: TransferOutcomes, scenario: Scenario, measure: str) -> Floats:
    """Gains of this measure, shape (T, T); nan: not measured."""
    if scenario not in outcomes.scenarios or measure not in outcomes.measures:
        return np.full((len(outcomes.cards),) * 2, np.nan)
    return gains(outcomes, outcomes.scenarios.index(scenario))[outcomes.measures.index(measure)]


def _variances(outcomes: TransferOutcomes, scenario: Scenario, measure: str) -> Floats:
    """Variances of these gains, shape (T, T); nan: not known."""
    if scenario not in outcomes.scenarios or measure not in outcomes.measures:
        return np.full((len(outcomes.cards),) * 2, np.nan)
    return gain_variances(outcomes, outcomes.scenarios.index(scenario))[outcomes.measures.index(measure)]


def _track_records(outcomes: TransferOutcomes, target: TaskCard, gain: Floats) -> dict[str, TrackRecord]:
    other = np.array([dataset_of(card) != dataset_of(target) for card in outcomes.cards], dtype=np.bool_)
    known = ~np.isnan(gain[:, other])
    counts = known.sum(axis=1)
    means = np.nan_to_num(gain[:, other]).sum(axis=1) / np.maximum(counts, 1)
    return {
        name: TrackRecord(float(mean), int(count))
        for name, mean, count in zip(outcomes.tasks, means, counts, strict=True)
        if count
    }
