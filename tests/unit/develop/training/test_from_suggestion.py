"""From a suggestion to a recipe: one thing is transferred, everything else stays as it is."""

from typing import Any

import pytest

from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard, Training
from lifelong_core.develop.knowledge.transferable import best_architecture, searched_policy
from lifelong_core.develop.training.from_suggestion import (
    check_source_data,
    parse_suggestion,
    recipe_from_suggestion,
)
from lifelong_core.develop.training.recipe import AugmentationPolicy, Optimisation, Recipe, Step
from lifelong_core.values.errors import InvalidInputError

POLICY = AugmentationPolicy(
    sub_policies=((Step(operation="rotate", probability=0.5, magnitude=0.3),),), searched_on="skin"
)
TRAININGS = (
    Training(architecture="resnet18", performance={"BA": (0.7, 0.72), "ECE": (0.01,)}),
    Training(
        architecture="convnext_tiny",
        hyperparameters={"initial_weights": "random"},
        performance={"BA": (0.74,), "ECE": (0.2,)},
    ),
    Training(performance={"BA": (0.99,)}),
)
SEARCHED = Training(
    scenario="augmentation",
    source="skin",
    augmentation=POLICY.to_document(),
    performance={"BA": (0.7,)},
)


def entry(*trainings: Training, **changes: Any) -> KnowledgeEntry:
    card = TaskCard(name="skin", classes=2, samples=100)
    return KnowledgeEntry(card=card, trainings=trainings, **changes)


BASE = Recipe(architecture="resnet10t", seed=5, optimisation=Optimisation(epochs=3))


def test_a_suggestion_names_scenario_and_source() -> None:
    assert parse_suggestion("co_training:skin.2019") == ("co_training", "skin.2019")
    for wrong, hint in (
        ("skin", "Scenarios: architecture"),
        ("pretrainin:skin", "pretraining"),
        (":skin", "architecture"),
        ("pretraining:", "letter or digit"),
        ("pretraining:Skin", "lower-case"),
    ):
        with pytest.raises(InvalidInputError) as refused:
            parse_suggestion(wrong)
        assert refused.value.field == "suggestion"
        assert hint in (refused.value.hint or "")


def test_the_architecture_is_the_one_that_did_best_with_its_initial_weights() -> None:
    source = entry(*TRAININGS)
    made = recipe_from_suggestion("architecture", source, BASE)
    expected = {"architecture": "convnext_tiny", "initial_weights": "random"}
    assert made == BASE.model_copy(update={"scenario": "architecture", "source": "skin", **expected})
    by_error = recipe_from_suggestion("architecture", source, BASE, measure="ECE")
    assert (by_error.architecture, by_error.initial_weights) == ("resnet18", "pretrained")


def test_where_no_training_has_the_measure_the_usual_one_decides() -> None:
    best = best_architecture(entry(*TRAININGS), "AUROC")
    assert best is not None
    assert (best.name, best.performance) == ("convnext_tiny", 0.74)


@pytest.mark.parametrize("scenario", ["pretraining", "co_training"])
def test_two_scenarios_change_nothing_but_their_source(scenario: Any) -> None:
    made = recipe_from_suggestion(scenario, entry())
    assert made == Recipe(scenario=scenario, source="skin")
    assert made.needs_source_data


def test_the_policy_is_the_newest_that_was_searched_for_the_source() -> None:
    older = SEARCHED.model_copy(update={"augmentation": AugmentationPolicy(searched_on="skin").to_document()})
    elsewhere = SEARCHED.model_copy(
        update={"augmentation": AugmentationPolicy(searched_on="lungs").to_document()}
    )
    unknown = SEARCHED.model_copy(update={"augmentation": {"searched_on": "skin", "policy": "of v9"}})
    source = entry(older, SEARCHED, elsewhere, unknown)
    assert searched_policy(source) == POLICY
    made = recipe_from_suggestion("augmentation", source, BASE)
    expected = {"scenario": "augmentation", "source": "skin", "augmentation": POLICY}
    assert made == BASE.model_copy(update=expected)


def test_what_a_source_does_not_hold_is_an_error_that_says_what_to_do() -> None:
    bare = entry(Training(performance={"BA": (0.7,)}), contact="a@b.example")
    with pytest.raises(InvalidInputError, match="no architecture") as refused:
        recipe_from_suggestion("architecture", bare)
    assert "a@b.example" in (refused.value.hint or "")
    with pytest.raises(InvalidInputError, match="no augmentation policy") as refused:
        recipe_from_suggestion("augmentation", bare)
    assert "lifelong search-augmentation skin --data FOLDER" in (refused.value.hint or "")
    with pytest.raises(InvalidInputError, match="follows a suggestion already") as refused:
        recipe_from_suggestion("pretraining", bare, Recipe(scenario="pretraining", source="lungs"))
    assert refused.value.field == "recipe"


def test_missing_images_of_the_source_name_what_can_be_transferred_instead() -> None:
    recipe = recipe_from_suggestion("pretraining", entry())
    check_source_data(recipe, None, is_given=True)
    check_source_data(Recipe(), None, is_given=False)
    with pytest.raises(InvalidInputError, match="images of skin") as refused:
        check_source_data(recipe, entry(*TRAININGS, SEARCHED, contact="a@b.example"), is_given=False)
    assert refused.value.field == "source_data"
    assert refused.value.hint == (
        "Give their folder. Without them, it can give the architecture convnext_tiny (architecture:skin) and its"
        " augmentation policy (augmentation:skin). Contact: a@b.example."
    )
    with pytest.raises(InvalidInputError) as refused:
        check_source_data(recipe, None, is_given=False)
    assert "are transferred without images" in str(refused.value.hint)
    with pytest.raises(InvalidInputError, match="no other task"):
        check_source_data(Recipe(), None, is_given=True)
