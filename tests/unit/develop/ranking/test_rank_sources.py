"""Suggestions for a target: their order, gains, evidence and refusals."""

from dataclasses import replace

import numpy as np
import pytest

from lifelong_core.develop.knowledge.entry import SCENARIOS, KnowledgeEntry, TaskCard, TransferOutcomes
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.ranking.features import card_similarity
from lifelong_core.develop.ranking.fitting import fit_ranker
from lifelong_core.develop.ranking.rank_sources import rank_sources
from lifelong_core.develop.ranking.ranker import FittedRanker
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from tests.unit.develop.knowledge.examples import make_fingerprint
from tests.unit.develop.ranking.examples import SCENARIO, make_outcomes

NEW = TaskCard(name="new", keywords=("medical", "skin"), modality="dermatoscopy", classes=3, samples=900)


@pytest.fixture(scope="module")
def knowledge() -> KnowledgeBase:
    return KnowledgeBase.from_outcomes(make_outcomes())


@pytest.fixture(scope="module")
def ranker(knowledge: KnowledgeBase) -> FittedRanker:
    return fit_ranker(knowledge.outcomes(), trees=30)


def test_suggestions_are_ordered_by_expected_gain_and_have_intervals(knowledge, ranker):
    ranking = rank_sources(knowledge, NEW, scenario=SCENARIO, ranker=ranker)
    expected = [found.expected_gain for found in ranking.suggestions]
    assert expected == sorted(expected, reverse=True)
    assert {found.source for found in ranking.suggestions} == set(knowledge.tasks)
    assert all(found.low <= found.expected_gain <= found.high for found in ranking.suggestions)
    assert ranking.recommended == sum(gain > 0 for gain in expected) > 0
    assert ranking.declined is None
    assert ranking.ranker == ranker.digest
    largest = max(knowledge.entries.values(), key=lambda entry: entry.card.samples).card.name
    assert largest in {found.source for found in ranking.suggestions[:3]}


def test_a_ranking_survives_json(knowledge, ranker):
    ranking = rank_sources(knowledge, "task0-3", scenario=SCENARIO, ranker=ranker)
    assert type(ranking).from_json(ranking.to_json()) == ranking


def test_tasks_of_the_target_s_data_set_are_no_sources(knowledge, ranker):
    ranking = rank_sources(knowledge, "task0-3", scenario=SCENARIO, ranker=ranker)
    assert not {"task0-2", "task0-3"} & {found.source for found in ranking.suggestions}


def test_nothing_is_recommended_where_every_source_harms():
    knowledge = KnowledgeBase.from_outcomes(make_outcomes(level=-0.2))
    ranking = rank_sources(
        knowledge, NEW, scenario=SCENARIO, ranker=fit_ranker(knowledge.outcomes(), trees=30)
    )
    assert ranking.recommended == 0
    assert "Nothing here is expected to help" in (ranking.declined or "")
    assert len(ranking.suggestions) == len(knowledge)


def test_evidence_is_what_was_measured(knowledge, ranker):
    outcomes = knowledge.outcomes()
    gain = (outcomes.outcomes.mean(axis=2) - outcomes.baseline.mean(axis=1)[None, :, None, :])[0, 0]
    ranking = rank_sources(knowledge, "task0-3", scenario=SCENARIO, ranker=ranker)
    found = next(one for one in ranking.suggestions if one.source == "task0-8")
    assert found.evidence.measured_gain == pytest.approx(gain[8, 3])
    others = [target for target in range(14) if target not in (2, 3, 8, 9)]
    assert found.evidence.track_record == pytest.approx(gain[8, others].mean())
    assert found.evidence.track_record_targets == len(others)
    assert found.evidence.outcomes == np.isfinite(gain).sum()
    distances = outcomes.distances[0, :, 3]
    legal = [place for place in range(14) if place not in (2, 3)]
    assert found.evidence.distance == pytest.approx(distances[8])
    assert found.evidence.distance_rank == 1 + sum(distances[place] < distances[8] for place in legal)
    assert any(f"{gain[8, 3]:+.3f}" in reason for reason in found.reasons)


def test_a_measured_harm_corrects_the_prediction():
    outcomes = make_outcomes()
    harmed = outcomes.outcomes.copy()
    harmed[0, :, :, 8, 3] -= 0.3
    knowledge = KnowledgeBase.from_outcomes(replace(outcomes, outcomes=harmed))
    ranking = rank_sources(knowledge, "task0-3", scenario=SCENARIO, ranker=fit_ranker(outcomes, trees=30))
    *_, worst = ranking.suggestions
    assert worst.source == "task0-8"
    assert worst.low <= (worst.evidence.measured_gain or 0) <= worst.high < 0
    helped = ranking.suggestions[0]
    assert helped.high - helped.low < 0.03  # measured three times, with little noise


def test_one_repetition_says_less_than_three(knowledge, ranker):
    outcomes = knowledge.outcomes()
    once = replace(outcomes, outcomes=outcomes.outcomes[:, :, :1], baseline=outcomes.baseline[:, :1])
    once_here = outcomes.outcomes.copy()
    once_here[0, :, 1:, 8, 3] = np.nan

    def width(measured: TransferOutcomes) -> float:
        ranking = rank_sources(
            KnowledgeBase.from_outcomes(measured), "task0-3", scenario=SCENARIO, ranker=ranker
        )
        found = next(one for one in ranking.suggestions if one.source == "task0-8")
        assert found.evidence.measured_gain is not None
        return found.high - found.low

    thrice = width(outcomes)
    assert width(once) > width(replace(outcomes, outcomes=once_here)) > 1.5 * thrice > 0


def test_intervals_of_measured_transfers_cover_the_gain_without_noise_after_a_single_repetition():
    covered: list[bool] = []
    for seed in range(3):
        outcomes = make_outcomes(seed=seed)
        # Of many repetitions, whose mean has no noise, the first is known.
        rng = np.random.default_rng(seed)
        noise = 0.01 * rng.normal(size=outcomes.outcomes[:, :, :1].shape)
        truth = outcomes.outcomes[0, 0].mean(axis=0) - outcomes.baseline[0].mean(axis=0)
        mean = outcomes.outcomes.mean(axis=2, keepdims=True)
        known = replace(
            outcomes, outcomes=mean + noise, baseline=outcomes.baseline.mean(axis=1, keepdims=True)
        )
        knowledge, ranker = KnowledgeBase.from_outcomes(known), fit_ranker(known, trees=30)
        for target, task in enumerate(known.tasks):
            found = rank_sources(knowledge, task, scenario=SCENARIO, ranker=ranker).suggestions
            covered += [one.low <= truth[known.tasks.index(one.source), target] <= one.high for one in found]
    assert 0.8 <= np.mean(covered) < 0.99


def test_distances_come_from_fingerprints_before_published_ones(knowledge, ranker):
    prints = {
        task: (make_fingerprint(number, bins=100),)
        for number, task in enumerate(knowledge.tasks)
        if number != 5
    }
    base = KnowledgeBase(knowledge.entries, prints)
    own = make_fingerprint(4, bins=100)
    ranking = rank_sources(
        base, NEW, scenario=SCENARIO, ranker=ranker, strategy="bKLD(small,target)", fingerprints=(own,)
    )
    closest, *_, last = ranking.suggestions
    assert closest.source == "task0-4"
    assert closest.evidence.distance_rank == 1
    assert (last.source, last.evidence.distance) == ("task0-5", None)
    foreign = make_fingerprint(4, bins=100, extractor="b" * 64)
    with pytest.raises(InvalidInputError) as caught:
        rank_sources(base, NEW, scenario=SCENARIO, ranker=ranker, strategy="VDNA", fingerprints=(foreign,))
    assert caught.value.field == "strategy"


def test_without_a_ranker_the_closest_tasks_are_named_without_suggestions(knowledge):
    ranking = rank_sources(knowledge, "task0-3", scenario=SCENARIO)
    assert (ranking.suggestions, ranking.recommended) == ((), 0)
    assert "Too few" in (ranking.declined or "")
    distances = [found.distance for found in ranking.neighbours]
    assert distances == sorted(distances)
    other = rank_sources(knowledge, NEW, scenario=SCENARIOS[1])
    similarities = [found.card_similarity for found in other.neighbours]
    assert similarities == sorted(similarities, reverse=True)


def test_a_lonely_task_gets_a_sentence(ranker):
    alone = KnowledgeBase.from_entries([KnowledgeEntry(card=NEW)])
    ranking = rank_sources(alone, "new", scenario=SCENARIO, ranker=ranker)
    assert "no task of another data set" in (ranking.declined or "")


@pytest.mark.parametrize("strategy", ["smallest source first", "random"])
def test_baseline_strategies_order_otherwise(knowledge, ranker, strategy):
    # Not the seed of the examples, whose sizes would come out in the same order.
    ranking = rank_sources(knowledge, NEW, scenario=SCENARIO, ranker=ranker, strategy=strategy, seed=1)
    samples = [knowledge.entries[found.source].card.samples for found in ranking.suggestions]
    assert (samples == sorted(samples)) == (strategy == "smallest source first")
    assert ranking == rank_sources(
        knowledge, NEW, scenario=SCENARIO, ranker=ranker, strategy=strategy, seed=1
    )


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("scenario", {"scenario": "arch"}),
        ("strategy", {"scenario": SCENARIO, "strategy": "lerned"}),
        ("confidence", {"scenario": SCENARIO, "confidence": 1.0}),
    ],
)
def test_illegal_arguments_are_named(knowledge, ranker, field, arguments):
    with pytest.raises(InvalidInputError) as caught:
        rank_sources(knowledge, NEW, ranker=ranker, **arguments)
    assert caught.value.field == field


def test_an_unknown_target_is_refused(knowledge, ranker):
    with pytest.raises(NotFoundError, match="task9-9"):
        rank_sources(knowledge, "task9-9", scenario=SCENARIO, ranker=ranker)


def test_equal_cards_are_similar_and_others_less():
    assert card_similarity(NEW, NEW) == 1
    assert card_similarity(NEW, NEW.model_copy(update={"samples": 90_000})) < 1
    other = TaskCard(name="b", keywords=("cars",), modality="photographs", classes=300, samples=10**6)
    assert card_similarity(NEW, other) < 0.3
