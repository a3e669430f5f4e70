"""From a knowledge base to ranked suggestions for one target, each with its evidence."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lifelong_core.develop.fingerprints.distances.registry import METHODS
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.knowledge.entry import SCENARIOS, Scenario, TaskCard
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.ranking.features import card_similarity
from lifelong_core.develop.ranking.question import Forecast, Question
from lifelong_core.develop.ranking.ranker import FittedRanker, ScenarioRanker
from lifelong_core.develop.ranking.suggestion import (
    Evidence,
    Neighbour,
    Ranking,
    Suggestion,
    explain,
    find_limits,
)
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.validation_errors import suggest

LEARNED, SMALLEST, RANDOM = "learned", "smallest source first", "random"
CONFIDENCE = 0.8
MOST_NEIGHBOURS = 10
SIMILARITY = "JSD"
"""Finds similar images best (docs/fingerprint_evidence.md); of transfers it was not measured."""


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
    average source brings, plus what the ranker's scores were worth on data sets that were left out, corrected by
    what was measured of this very transfer. Sources are recommended while their expected gain is above zero, the gain
    of no transfer.

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
    fitted = ranker.scenarios.get(scenario) if ranker else None
    question = Question.ask(
        knowledge,
        target,
        scenario=scenario,
        measure=measure,
        methods=(strategy,) if fitted else (strategy, SIMILARITY),
        fingerprints=fingerprints,
        is_for_ranker=fitted is not None,
    )
    _check_distances(question, strategy)
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
    forecast = Forecast.of(fitted, question, measure, confidence)
    suggestions = tuple(
        _suggest(
            question,
            place,
            forecast,
            _evidence(question, place, fitted, measure),
            measure,
            find_limits(knowledge.entry(question.sources[place].name), scenario),
        )
        for place in _order(question, strategy, forecast.expected, seed)
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


def _check_distances(question: Question, strategy: str) -> None:
    if strategy in METHODS and question.sources and np.isnan(question.distances[strategy]).all():
        raise InvalidInputError(
            f"no distance of {question.target.name} by {strategy} is known.",
            field="strategy",
            hint="Make a fingerprint of the target with the extractor of the other tasks, or rank by `learned`.",
        )


def _order(question: Question, strategy: str, expected: Floats, seed: int) -> list[int]:
    """Places of the sources, best first; unknown distances come last."""
    keys: Mapping[str, Callable[[], Floats]] = {
        LEARNED: lambda: -expected,
        SMALLEST: lambda: np.array([float(card.samples) for card in question.sources]),
        RANDOM: lambda: np.random.default_rng(seed).random(expected.size),
    }
    key = keys[strategy]() if strategy in keys else question.distances[strategy]
    return [int(place) for place in np.argsort(key, kind="stable")]


def _suggest(
    question: Question,
    place: int,
    forecast: Forecast,
    evidence: Evidence,
    measure: str,
    limits: tuple[str, ...],
) -> Suggestion:
    expected = float(forecast.expected[place])
    return Suggestion(
        source=question.sources[place].name,
        expected_gain=expected,
        low=float(forecast.low[place]),
        high=float(forecast.high[place]),
        evidence=evidence,
        reasons=explain(evidence, expected, measure),
        limits=limits,
    )


def _evidence(question: Question, place: int, fitted: ScenarioRanker, measure: str) -> Evidence:
    card = question.sources[place]
    method, distance, rank, known = _distance_of(question, place)
    measured, record = float(question.measured_gains[place]), question.records.get(card.name)
    return Evidence(
        distance=distance,
        distance_method=method,
        distance_rank=rank,
        known_distances=known,
        measured_gain=None if np.isnan(measured) else measured,
        track_record=None if record is None else record.gain,
        track_record_targets=0 if record is None else record.targets,
        card_similarity=card_similarity(card, question.target),
        baseline_effect=fitted.gains[measure].target_level(question.baseline),
        outcomes=fitted.outcomes,
    )


def _distance_of(question: Question, place: int) -> tuple[str | None, float | None, int | None, int]:
    """Method, distance, rank and number of known distances, of the first method that knows this source."""
    for method, distances in question.distances.items():
        if not np.isnan(distances[place]):
            known = distances[~np.isnan(distances)]
            return method, float(distances[place]), int((known < distances[place]).sum()) + 1, known.size
    return None, None, None, 0


def _neighbours(question: Question) -> tuple[Neighbour, ...]:
    """The closest tasks by SIMILARITY, else by the first distance that is known, else by their cards."""
    similarities = [card_similarity(card, question.target) for card in question.sources]
    known = {method: held for method, held in question.distances.items() if not np.isnan(held).all()}
    unknown = np.full(len(question.sources), np.nan)
    distances = known.get(SIMILARITY, next(iter(known.values()), unknown))
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
    question: Question, scenario: Scenario, measure: str, fitted: ScenarioRanker | None
) -> str:
    if not question.sources:
        return "The knowledge base holds no task of another data set."
    if fitted is None:
        return (
            f"Too few transfers were measured in the scenario {scenario} to expect a gain from any source."
            " The closest tasks are named without a suggestion."
        )
    return (
        f"Too few gains of {measure} were measured in the scenario {scenario};"
        f" there are enough of {', '.join(fitted.gains)}."
    )


def _why_none_helps(suggestions: Sequence[Suggestion], measure: str) -> str:
    best = max(suggestions, key=lambda found: found.expected_gain)
    expectation = f"is expected to change {measure} by {best.expected_gain:+.3f}"
    if best.expected_gain > 0:
        return f"The first source of this order is not expected to help, but {best.source} {expectation}."
    return f"Nothing here is expected to help. The best source, {best.source}, {expectation}."
