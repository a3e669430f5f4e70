"""Strategies that rank source tasks, and how good their rankings are on measured transfers.

S scenarios, M measures, R repetitions (seeds), T tasks (the sources), V evaluated targets.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lifelong_core.develop.knowledge.entry import TransferOutcomes
from lifelong_core.develop.ranking.fitting import fit_ranker
from lifelong_core.develop.transferability import (
    gain,
    improvement,
    mean_of_top,
    percentile,
    regret,
    weightedtau,
    win_rate,
)
from lifelong_core.values.arrays import Floats, Integers, Mask

TOP = 3
"""Suggestions of which improvement, percentile and regret are averaged, as in the thesis."""
METRICS = ("weightedtau", "regret", "percentile", "improvement")
LEARNED, ALWAYS, RANDOM, SMALLEST = "learned", "learned, always transfer", "random", "smallest source first"
RANDOM_ORDERS = 20
"""Orders that are drawn for the win rate of a random order; all its other figures are exact expectations."""
ORIENTATION: Mapping[str, int] = {"weightedtau": 1, "regret": -1, "percentile": 1, "improvement": 1}


@dataclass(frozen=True)
class Evaluated:
    """Measured transfers to the targets that are evaluated."""

    outcomes: TransferOutcomes
    targets: Integers
    """(V,), indices of tasks"""

    @cached_property
    def performance(self) -> Floats:
        """(S, M, R, V, T), the sources last."""
        return np.swapaxes(self.outcomes.outcomes, -1, -2)[..., self.targets, :]

    @cached_property
    def baseline(self) -> Floats:
        """(M, R, V), without transfer."""
        return self.outcomes.baseline[..., self.targets]

    @cached_property
    def data_sets(self) -> tuple[str, ...]:
        """V data sets; targets of one data set resemble each other."""
        return tuple(data_sets(self.outcomes)[self.targets].tolist())

    @cached_property
    def mean_over_seeds(self) -> "Evaluated":
        """The same with one repetition, the mean of all."""
        means = replace(
            self.outcomes,
            outcomes=self.outcomes.outcomes.mean(axis=2, keepdims=True),
            baseline=self.outcomes.baseline.mean(axis=1, keepdims=True),
        )
        return Evaluated(means, self.targets)


@dataclass(frozen=True)
class Strategy:
    """Scores of all sources for all targets."""

    scores: Floats
    """(S or 1, V, T), higher is better"""
    declines: bool = False
    """scores are expected gains, and no transfer is suggested instead of one without"""


def data_sets(outcomes: TransferOutcomes) -> np.ndarray:
    """Data set of each task, or the task's own name, shape (T,)."""
    return np.array([card.dataset or card.name for card in outcomes.cards])


def evaluated_targets(outcomes: TransferOutcomes, splits: Mapping[str, str]) -> Integers:
    """Measured targets of the split "validation"; all measured targets when it is empty."""
    measured = ~np.isnan(outcomes.outcomes).all(axis=(0, 1, 2, 3))
    chosen = measured & np.array([splits.get(task) == "validation" for task in outcomes.tasks])
    return np.flatnonzero(chosen if chosen.any() else measured)


def fixed_strategies(evaluated: Evaluated) -> dict[str, Strategy]:
    """Every distance of the file (manual among them), smallest source first, and random."""
    outcomes = evaluated.outcomes
    samples = np.array([card.samples for card in outcomes.cards], dtype=np.float64)
    shape = (1, evaluated.targets.size, samples.size)
    return {
        **{
            method: Strategy(-outcomes.distances[number].T[np.newaxis, evaluated.targets])
            for number, method in enumerate(outcomes.methods)
        },
        SMALLEST: Strategy(np.broadcast_to(-samples, shape)),
        RANDOM: Strategy(np.zeros(shape)),
    }


def learned_strategies(
    train: TransferOutcomes,
    evaluated: Evaluated,
    *,
    most_fits: int | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> dict[str, Strategy]:
    """The ranker, fitted for each target on the training outcomes without the target's relatives.

    It sees which transfers of `evaluated` were measured, never how well they did.
    """
    hidden = hide_outcomes(evaluated.outcomes)
    scenarios = evaluated.outcomes.scenarios
    scores = np.full((len(scenarios), evaluated.targets.size, len(hidden.cards)), np.nan)
    folds = leave_out_folds(train, evaluated, most_fits)
    for number, (left_out, places) in enumerate(folds):
        ranker = fit_ranker(without_tasks(train, left_out))
        for place, scenario in enumerate(scenarios):
            scores[place, places] = ranker.scores(hidden, scenario).T[evaluated.targets[places]]
        progress(number + 1, len(folds))
    return {LEARNED: Strategy(scores, declines=True), ALWAYS: Strategy(scores)}


def leave_out_folds(
    train: TransferOutcomes, evaluated: Evaluated, most: int | None = None
) -> list[tuple[frozenset[str], list[int]]]:
    """Training tasks to leave out, and the places of the targets (of V) that are ranked without them.

    A target is ranked without its relatives; with fewer than `most` folds also without those of other targets.
    """
    related = find_relatives(evaluated.outcomes)
    found: dict[frozenset[str], list[int]] = {}
    for place, target in enumerate(evaluated.targets.tolist()):
        names = {evaluated.outcomes.tasks[number] for number in np.flatnonzero(related[target])}
        found.setdefault(frozenset(names & set(train.tasks)), []).append(place)
    folds = list(found.items())
    number = min(len(folds), most or len(folds))
    return [
        (frozenset().union(*(names for names, _ in part)), [place for _, places in part for place in places])
        for part in (folds[start::number] for start in range(number))
    ]


def find_relatives(outcomes: TransferOutcomes) -> Mask:
    """Tasks that may share images with each other, shape (T, T): of one data set, or never paired although measured."""
    names = data_sets(outcomes)
    paired = ~np.isnan(outcomes.outcomes).all(axis=(0, 1, 2))
    target = paired.any(axis=0)
    apart = target[:, np.newaxis] & target & ~paired & ~paired.T
    return (names[:, np.newaxis] == names) | apart


def without_tasks(outcomes: TransferOutcomes, names: frozenset[str]) -> TransferOutcomes:
    """The outcomes without these tasks, both as targets and as sources."""
    kept = np.flatnonzero([task not in names for task in outcomes.tasks])
    return replace(
        outcomes,
        cards=tuple(outcomes.cards[number] for number in kept),
        outcomes=outcomes.outcomes[..., kept[:, np.newaxis], kept],
        baseline=outcomes.baseline[..., kept],
        distances=outcomes.distances[..., kept[:, np.newaxis], kept],
    )


def hide_outcomes(outcomes: TransferOutcomes) -> TransferOutcomes:
    """The same pairs, all with one outcome."""
    return replace(outcomes, outcomes=np.where(np.isnan(outcomes.outcomes), np.nan, 0.5))


def measure(evaluated: Evaluated, strategy: Strategy, k: int = TOP) -> dict[str, Floats]:
    """Figures of METRICS in each setup, shape (S, M, R, V): of the first k suggestions, weightedtau of all."""
    scores = strategy.scores[:, np.newaxis, np.newaxis]
    performance = evaluated.performance
    return {
        "weightedtau": weightedtau(performance, scores),
        "regret": mean_of_top(regret(performance), scores, k),
        "percentile": mean_of_top(percentile(performance), scores, k),
        "improvement": mean_of_top(improvements(evaluated, strategy), scores, k),
    }


def improvements(evaluated: Evaluated, strategy: Strategy) -> Floats:
    """Improvement by each source, shape (S, M, R, V, T); 0 where the strategy suggests no transfer instead."""
    return _with_declines(improvement(evaluated.performance, evaluated.baseline), strategy)


def gains(evaluated: Evaluated, strategy: Strategy) -> Floats:
    """Whether each source improves on no transfer, shape (S, M, R, V, T); 0 where the strategy suggests none."""
    return _with_declines(gain(evaluated.performance, evaluated.baseline), strategy)


def _with_declines(values: Floats, strategy: Strategy) -> Floats:
    if not strategy.declines:
        return values
    taken = strategy.scores[:, np.newaxis, np.newaxis] > 0
    return np.where(taken | np.isnan(values), values, 0.0)


def oriented(figures: Mapping[str, Floats]) -> Floats:
    """The figures of METRICS as one array, higher is better, shape (4, S, M, R, V)."""
    return np.stack([ORIENTATION[name] * figures[name] for name in METRICS])


def win_rates(
    evaluated: Evaluated, strategies: Mapping[str, Strategy], figures: Mapping[str, Mapping[str, Floats]]
) -> dict[str, Floats]:
    """Share of the setups in which each strategy is first, by scenario, shape (S,) (Def. 5.20).

    The methods of the file compete with each other, as in the thesis; any other strategy competes with all of them,
    alone. Setups are all combinations of meta metric, measure, repetition and target; first places may be shared.
    """
    methods = evaluated.outcomes.methods
    if not methods:
        return {name: np.full(len(evaluated.outcomes.scenarios), np.nan) for name in strategies}
    pool = np.stack([oriented(figures[name]) for name in methods], axis=-1)

    def compete(entries: Floats) -> Floats:
        by_scenario = np.moveaxis(entries, 1, 0)
        return np.array([win_rate(one.reshape(-1, one.shape[-1])) for one in by_scenario])

    found = dict(zip(methods, compete(pool).T, strict=True))
    best = pool.max(axis=-1)

    def challenge(entry: Floats) -> Floats:
        return compete(np.stack([entry, best], axis=-1))[:, 0]

    for name in strategies:
        if name not in found and name != RANDOM:
            found[name] = challenge(oriented(figures[name]))
    found[RANDOM] = np.mean(
        [challenge(oriented(measure(evaluated, order))) for order in random_orders(evaluated)], axis=0
    )
    return {name: found[name] for name in strategies}


def random_orders(evaluated: Evaluated) -> list[Strategy]:
    """Seeded random orders of the sources, without equal scores."""
    rng = np.random.default_rng(0)
    shape = (len(evaluated.outcomes.scenarios), evaluated.targets.size, len(evaluated.outcomes.cards))
    return [Strategy(rng.uniform(size=shape)) for _ in range(RANDOM_ORDERS)]


def mean_known(values: Floats, axis: int) -> Floats:
    """Mean without nan; nan where nothing else is."""
    known = ~np.isnan(values)
    number = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return np.where(number == 0, np.nan, total / np.maximum(number, 1))
