"""From a knowledge base to ranked suggestions for one target, each with its evidence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from lifelong_core.arrays import Floats
from lifelong_core.develop.fingerprints.distances.registry import METHODS
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.knowledge.entry import SCENARIOS, Scenario, TaskCard
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.knowledge.transfer_outcomes import TransferOutcomes
from lifelong_core.develop.ranking.features import DISTANCES, card_similarity
from lifelong_core.develop.ranking.ranker import FittedRanker, ScenarioRanker, mean_baseline
from lifelong_core.develop.ranking.reasons import explain
from lifelong_core.develop.ranking.source_distances import source_distances
from lifelong_core.develop.ranking.standardised_gains import dataset_of, gains
from lifelong_core.develop.ranking.suggestion import Evidence, Neighbour, Ranking, Suggestion
from lifelong_core.errors import InvalidInputError
from lifelong_core.validation_errors import suggest

LEARNED, SMALLEST, RANDOM = "learned", "smallest source first", "random"
CONFIDENCE = 0.8
MOST_NEIGHBOURS = 10


@dataclass(frozen=True)
class _Question:
    """Target and sources of one ranking."""

    measure: str
    target: TaskCard
    sources: tuple[TaskCard, ...]
    distances: Mapping[str, Floats]
    """by method, shape (K,)"""
    baseline: float | None
    """mean performance of the target without transfer; None: not measured"""
    measured_gains: Mapping[str, float]
    """by source, where a transfer to the target was measured"""


def rank_sources(
    knowledge: KnowledgeBase,
    target: str | TaskCard,
    *,
    scenario: Scenario,
    measure: str = "BA",
    strategy: str = LEARNED,
    ranker: FittedRanker | None = None,
    fingerprints: Sequence[Fingerprint] = (),
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Ranking:
    """Rank the tasks that something can be transferred from, best first.

    A strategy decides the order. The expected gains are the ranker's, whatever the strategy: the level that an
    average source brings, plus what the ranker's scores were worth on data sets that were left out. Sources are
    recommended while their expected gain is above zero, the gain of no transfer.

    Args:
        knowledge: the known tasks.
        target: a task of the knowledge base, or the card of a new one.
        scenario: what would be transferred.
        measure: acronym of the measure whose gain is expected.
        strategy: "learned", "smallest source first", "random", or a method in `METHODS` (the closest first).
        ranker: from `fit_ranker`; None: too few transfers were measured.
        fingerprints: of the target, beside those that the knowledge base holds.
        confidence: of the prediction intervals, in [0.5, 0.99].
        seed: of the strategy `random`.

    Returns:
        The ranking. Without a ranker of this scenario and measure it has no suggestions, but the closest tasks.

    Raises:
        NotFoundError: the knowledge base does not hold the target.
        InvalidInputError: there is no such scenario or strategy, or the confidence is out of range.
    """
    _check(scenario, strategy, confidence)
    outcomes = knowledge.outcomes()
    gain = _gains(outcomes, scenario, measure)
    question = _ask(knowledge, target, strategy, fingerprints, outcomes, measure, gain)
    fitted = ranker.scenarios.get(scenario) if ranker else None
    answer = Ranking(
        target=question.target.name,
        scenario=scenario,
        measure=measure,
        strategy=strategy,
        confidence=confidence,
        suggestions=(),
        recommended=0,
        ranker=ranker.digest if ranker and fitted else None,
    )
    if fitted is None or measure not in fitted.gains or not question.sources:
        declined = _why_no_suggestions(question, scenario, measure, fitted)
        return answer.model_copy(update={"declined": declined, "neighbours": _neighbours(question)})
    model = fitted.gains[measure]
    scores, is_measured = fitted.score(question.sources, question.target, question.distances)
    expected = model.expected_gains(scores, question.baseline)
    limits = {
        known: model.residual_limits(
            confidence, is_measured=known, baseline_known=question.baseline is not None
        )
        for known in (False, True)
    }
    records = _track_records(outcomes, question.target, gain)
    suggestions = tuple(
        _suggest(
            question,
            place,
            expected=float(expected[place]),
            limits=limits[bool(is_measured[place])],
            evidence=_evidence(question, place, fitted, measure, records.get(question.sources[place].name)),
        )
        for place in _order(question, strategy, scores, seed)
    )
    recommended = next(
        (number for number, found in enumerate(suggestions) if found.expected_gain <= 0), len(suggestions)
    )
    declined = None if recommended else _why_none_helps(suggestions, measure)
    return answer.model_copy(
        update={"suggestions": suggestions, "recommended": recommended, "declined": declined}
    )


def _check(scenario: str, strategy: str, confidence: float) -> None:
    if scenario not in SCENARIOS:
        raise InvalidInputError(
            f"there is no scenario {str(scenario)[:80]!r}.",
            field="scenario",
            hint=suggest(str(scenario), list(SCENARIOS)) or f"Scenarios: {', '.join(SCENARIOS)}.",
        )
    known = (LEARNED, SMALLEST, RANDOM, *METHODS)
    if strategy not in known:
        raise InvalidInputError(
            f"there is no strategy {str(strategy)[:80]!r}.",
            field="strategy",
            hint=suggest(str(strategy), list(known)) or f"Strategies: {', '.join(known)}.",
        )
    if not 0.5 <= confidence <= 0.99:
        raise InvalidInputError(f"expected 0.5 to 0.99, got {confidence:g}.", field="confidence")


def _ask(
    knowledge: KnowledgeBase,
    target: str | TaskCard,
    strategy: str,
    fingerprints: Sequence[Fingerprint],
    outcomes: TransferOutcomes,
    measure: str,
    gain: Floats,
) -> _Question:
    card = knowledge.entry(target).card if isinstance(target, str) else target
    sources = knowledge.possible_sources(target)
    methods = dict.fromkeys((*DISTANCES, *((strategy,) if strategy in METHODS else ())))
    distances = {
        method: source_distances(knowledge, card.name, sources, method, fingerprints) for method in methods
    }
    cards = tuple(knowledge.entry(source).card for source in sources)
    if strategy in METHODS and cards and np.isnan(distances[strategy]).all():
        raise InvalidInputError(
            f"no distance of {card.name} by {strategy} is known.",
            field="strategy",
            hint="Make a fingerprint of the target with the extractor of the other tasks, or rank by `learned`.",
        )
    baseline, measured = None, dict[str, float]()
    if card.name in outcomes.tasks:
        place = outcomes.tasks.index(card.name)
        baseline = mean_baseline(outcomes, measure, place)
        measured = _known(outcomes.tasks, gain[:, place])
    return _Question(measure, card, cards, MappingProxyType(distances), baseline, MappingProxyType(measured))


def _order(question: _Question, strategy: str, scores: Floats, seed: int) -> list[int]:
    """Places of the sources, best first; unknown distances come last."""
    keys: Mapping[str, Callable[[], Floats]] = {
        LEARNED: lambda: -scores,
        SMALLEST: lambda: np.array([float(card.samples) for card in question.sources]),
        RANDOM: lambda: np.random.default_rng(seed).random(scores.size),
    }
    key = keys[strategy]() if strategy in keys else question.distances[strategy]
    return [int(place) for place in np.argsort(key, kind="stable")]


def _suggest(
    question: _Question, place: int, *, expected: float, limits: tuple[float, float], evidence: Evidence
) -> Suggestion:
    low, high = limits
    return Suggestion(
        source=question.sources[place].name,
        expected_gain=expected,
        low=expected + low,
        high=expected + high,
        evidence=evidence,
        reasons=explain(evidence, expected, question.measure),
    )


def _evidence(
    question: _Question,
    place: int,
    fitted: ScenarioRanker,
    measure: str,
    record: tuple[float, int] | None,
) -> Evidence:
    card = question.sources[place]
    method, distance, rank, known = _distance_of(question, place)
    return Evidence(
        distance=distance,
        distance_method=method,
        distance_rank=rank,
        known_distances=known,
        measured_gain=question.measured_gains.get(card.name),
        track_record=None if record is None else record[0],
        track_record_targets=0 if record is None else record[1],
        card_similarity=card_similarity(card, question.target),
        baseline_effect=fitted.gains[measure].target_level(question.baseline),
        outcomes=fitted.outcomes,
    )


def _distance_of(question: _Question, place: int) -> tuple[str | None, float | None, int | None, int]:
    """Method, distance, rank and number of known distances, of the first method that knows this source."""
    for method, distances in question.distances.items():
        if not np.isnan(distances[place]):
            known = distances[~np.isnan(distances)]
            return method, float(distances[place]), int((known < distances[place]).sum()) + 1, known.size
    return None, None, None, 0


def _gains(outcomes: TransferOutcomes, scenario: Scenario, measure: str) -> Floats:
    """Gains of this measure, shape (T, T); nan: not measured."""
    if scenario not in outcomes.scenarios or measure not in outcomes.measures:
        return np.full((len(outcomes.cards),) * 2, np.nan)
    return gains(outcomes, outcomes.scenarios.index(scenario))[outcomes.measures.index(measure)]


def _track_records(
    outcomes: TransferOutcomes, target: TaskCard, gain: Floats
) -> dict[str, tuple[float, int]]:
    """By source, its mean gain on targets of other data sets, and the number of these targets."""
    other = np.array([dataset_of(card) != dataset_of(target) for card in outcomes.cards], dtype=np.bool_)
    known = ~np.isnan(gain[:, other])
    counts = known.sum(axis=1)
    means = np.nan_to_num(gain[:, other]).sum(axis=1) / np.maximum(counts, 1)
    return {
        name: (float(mean), int(count))
        for name, mean, count in zip(outcomes.tasks, means, counts, strict=True)
        if count
    }


def _known(tasks: Sequence[str], values: Floats) -> dict[str, float]:
    return {name: float(value) for name, value in zip(tasks, values, strict=True) if not np.isnan(value)}


def _neighbours(question: _Question) -> tuple[Neighbour, ...]:
    """The closest tasks by the first distance that is known, else by their cards."""
    similarities = [card_similarity(card, question.target) for card in question.sources]
    distances = next(
        (held for held in question.distances.values() if not np.isnan(held).all()),
        np.full(len(question.sources), np.nan),
    )
    order: list[int] = np.lexsort((-np.array(similarities), distances))[:MOST_NEIGHBOURS].tolist()
    return tuple(
        Neighbour(
            source=question.sources[place].name,
            distance=None if np.isnan(distances[place]) else float(distances[place]),
            card_similarity=similarities[place],
        )
        for place in order
    )


def _why_no_suggestions(
    question: _Question, scenario: Scenario, measure: str, fitted: ScenarioRanker | None
) -> str:
    if not question.sources:
        return "The knowledge base holds no task of another data set."
    if fitted is None:
        return (
            f"Too few transfers were measured in the scenario {scenario} to expect a gain from any source."
            " The closest tasks are named without a suggestion."
        )
    return f"No gains of {measure} were measured in the scenario {scenario}; known are {', '.join(fitted.gains)}."


def _why_none_helps(suggestions: Sequence[Suggestion], measure: str) -> str:
    best = max(suggestions, key=lambda found: found.expected_gain)
    expectation = f"{best.source} is expected to change {measure} by {best.expected_gain:+.3f}"
    if best.expected_gain > 0:
        return f"The first source of this order is not expected to help, but {expectation}."
    return f"Nothing here is expected to help: even the best source does not: {expectation}."
