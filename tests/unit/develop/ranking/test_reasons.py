"""Sentences about rankings, and what a source lacks."""

import pytest

from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard, Training
from lifelong_core.develop.ranking.suggestion import Evidence, Ranking, Suggestion, conclude, find_limits


def suggest(number: int, gain: float = 0.01) -> Suggestion:
    evidence = Evidence(card_similarity=0.5, baseline_effect=0.0, outcomes=100)
    return Suggestion(
        source=f"source{number}",
        expected_gain=gain,
        low=gain - 0.03,
        high=gain + 0.02,
        evidence=evidence,
        reasons=(),
    )


def rank(*suggestions: Suggestion, recommended: int = 0, declined: str | None = None) -> Ranking:
    return Ranking(
        target="moles",
        scenario="pretraining",
        measure="BA",
        strategy="learned",
        confidence=0.8,
        suggestions=suggestions,
        recommended=recommended,
        declined=declined,
    )


def test_the_conclusion_says_what_helps_and_how_sure_that_is_or_why_nothing_does():
    two, harm = (suggest(1), suggest(2, -0.01)), "But every prediction interval includes zero"
    assert conclude(rank(*two, recommended=1)).startswith(
        "1 of 2 source tasks is expected to help: with it, moles is expected to reach a higher BA than without"
        f" transfer. {harm}"
    )
    three = (suggest(1, 0.1), suggest(2), suggest(3, -0.01))
    found = conclude(rank(*three, recommended=2))
    assert found.startswith("2 of 3 source tasks are expected to help: with one of them,")
    assert found.endswith("For 1 of them, even the lower limit of the prediction interval is above zero.")
    assert "Even the lower limit" in conclude(rank(*three, recommended=1))
    assert conclude(rank(*two, declined="Nothing helps.")) == "Nothing helps."


@pytest.mark.parametrize("scenario", ["architecture", "augmentation"])
def test_a_source_without_a_recipe_is_named_and_one_with_it_is_not(scenario):
    card = TaskCard(name="skin", classes=2, samples=100)
    bare = KnowledgeEntry(card=card, trainings=(Training(performance={"BA": (0.7,)}),), contact="a@b.example")
    (limit,) = find_limits(bare, scenario)
    assert "skin" in limit
    assert limit.endswith("Contact: a@b.example.")
    whole = Training(
        performance={"BA": (0.7,)}, architecture="resnet50", augmentation={"searched_on": "skin"}
    )
    assert find_limits(bare.model_copy(update={"trainings": (whole,)}), scenario) == ()


@pytest.mark.parametrize("scenario", ["pretraining", "co_training"])
def test_images_are_never_in_a_knowledge_base(scenario):
    entry = KnowledgeEntry(card=TaskCard(name="skin", classes=2, samples=100))
    assert find_limits(entry, scenario) == (
        "This needs images of skin, which a knowledge base does not hold.",
    )
    trained = Training(performance={"BA": (0.7,)}, architecture="resnet50")
    (limit,) = find_limits(entry.model_copy(update={"trainings": (trained,)}), scenario)
    assert limit.endswith(" Without them, it can give the architecture resnet50 (architecture:skin).")
