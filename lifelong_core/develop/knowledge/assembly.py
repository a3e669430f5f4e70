"""Measured transfers as arrays from the entries of a knowledge base, and back without loss."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from lifelong_core.develop.knowledge.entry import (
    SCENARIOS,
    KnowledgeEntry,
    Scenario,
    Training,
    TransferOutcomes,
)
from lifelong_core.metrics import METRICS
from lifelong_core.values.arrays import Floats

_Key = tuple[Scenario | None, str | None]
"""Scenario and source; None, None: the baseline."""
_Values = dict[str, tuple[float, ...]]
"""By measure, a value for each repetition."""


def assemble_outcomes(entries: Sequence[KnowledgeEntry]) -> TransferOutcomes:
    """Arrays of all trainings; nan where nothing was measured. See `KnowledgeBase.outcomes` for the rules."""
    position = {entry.card.name: index for index, entry in enumerate(entries)}
    values = [_pool(_comparable(entry.trainings)) for entry in entries]
    scenarios: tuple[Scenario, ...] = tuple(
        scenario for scenario in SCENARIOS if any(key[0] == scenario for one in values for key in one)
    )
    measures = _unique(measure for one in values for pooled in one.values() for measure in pooled)
    repetitions = max(
        (len(numbers) for one in values for pooled in one.values() for numbers in pooled.values()), default=0
    )
    shape = (len(measures), repetitions)
    outcomes = np.full((len(scenarios), *shape, len(entries), len(entries)), np.nan)
    baseline = np.full((*shape, len(entries)), np.nan)
    for target, one in enumerate(values):
        for (scenario, source), pooled in one.items():
            array = _repetitions(pooled, measures, repetitions)
            if scenario is None or source is None:
                baseline[:, :, target] = array
            elif source in position:
                outcomes[scenarios.index(scenario), :, :, position[source], target] = array
    methods, distances = _published_distances(entries, position)
    return TransferOutcomes(
        cards=tuple(entry.card for entry in entries),
        scenarios=scenarios,
        measures=measures,
        outcomes=outcomes,
        baseline=baseline,
        methods=methods,
        distances=distances,
    )


def make_entries(
    outcomes: TransferOutcomes, training_samples: Mapping[str, int]
) -> tuple[KnowledgeEntry, ...]:
    """One entry for each task of the outcomes; `training_samples` by target, all images where it is left out."""
    return tuple(
        KnowledgeEntry(
            card=card,
            trainings=make_trainings(outcomes, target, training_samples.get(card.name)),
            distances={
                method: known
                for index, method in enumerate(outcomes.methods)
                if (known := _known(outcomes.tasks, outcomes.distances[index, :, target]))
            },
        )
        for target, card in enumerate(outcomes.cards)
    )


def make_trainings(
    outcomes: TransferOutcomes, target: int, training_samples: int | None
) -> tuple[Training, ...]:
    """Baseline of the target at this position, and the transfers to it that were measured."""
    trainings: list[Training] = []
    if baseline := _performance(outcomes.measures, outcomes.baseline[:, :, target]):
        trainings.append(Training(training_samples=training_samples, performance=baseline))
    for index, scenario in enumerate(outcomes.scenarios):
        for source, name in enumerate(outcomes.tasks):
            if values := _performance(outcomes.measures, outcomes.outcomes[index, :, :, source, target]):
                trainings.append(
                    Training(
                        scenario=scenario, source=name, training_samples=training_samples, performance=values
                    )
                )
    return tuple(trainings)


def _comparable(trainings: Iterable[Training]) -> list[Training]:
    """Trainings with the number of images that has the most transfers."""
    groups: dict[int | None, list[Training]] = defaultdict(list)
    for training in trainings:
        groups[training.training_samples].append(training)

    def evidence(samples: int | None) -> tuple[int, float]:
        transfers = sum(training.source is not None for training in groups[samples])
        return transfers, np.inf if samples is None else samples

    return groups[max(groups, key=evidence)] if groups else []


def _pool(trainings: Iterable[Training]) -> dict[_Key, _Values]:
    """Performance of the baseline and of each transfer; several trainings of the same one are repetitions."""
    pooled: dict[_Key, _Values] = {}
    for training in trainings:
        values = pooled.setdefault((training.scenario, training.source), {})
        for measure, numbers in training.performance.items():
            if _is_higher_better(measure):
                values[measure] = values.get(measure, ()) + numbers
    return pooled


def _is_higher_better(measure: str) -> bool:
    """Whether higher values are better; taken to be so of a measure that the catalogue does not know."""
    return measure not in METRICS or METRICS[measure].orientation == "up"


def _repetitions(values: _Values, measures: Sequence[str], repetitions: int) -> Floats:
    """(M, R), nan behind the last repetition."""
    array = np.full((len(measures), repetitions), np.nan)
    for measure, numbers in values.items():
        array[measures.index(measure), : len(numbers)] = numbers
    return array


def _performance(measures: Sequence[str], values: Floats) -> _Values:
    """Values, (M, R), that were measured, by measure."""
    measured = {
        measure: tuple(row[np.isfinite(row)].tolist()) for measure, row in zip(measures, values, strict=True)
    }
    return {measure: numbers for measure, numbers in measured.items() if numbers}


def _known(names: Sequence[str], values: Floats) -> dict[str, float]:
    return {name: value for name, value in zip(names, values.tolist(), strict=True) if np.isfinite(value)}


def _published_distances(
    entries: Sequence[KnowledgeEntry], position: Mapping[str, int]
) -> tuple[tuple[str, ...], Floats]:
    """Methods, and published distances (D, T, T): method, source, target."""
    methods = _unique(method for entry in entries for method in entry.distances)
    distances = np.full((len(methods), len(entries), len(entries)), np.nan)
    for target, entry in enumerate(entries):
        for method, by_source in entry.distances.items():
            for source, value in by_source.items():
                if source in position:
                    distances[methods.index(method), position[source], target] = value
    return methods, distances


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    """Names in the order of their first appearance."""
    return tuple(dict.fromkeys(names))
