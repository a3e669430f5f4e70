"""Recipes, policies, progress and results survive JSON; what contradicts itself is refused by name."""

from typing import Any

import pytest

from lifelong_core.develop.training.progress import TrainingProgress
from lifelong_core.develop.training.recipe import (
    LIGHT,
    SPLITS,
    AugmentationPolicy,
    Optimisation,
    Recipe,
    Shares,
    Step,
)
from lifelong_core.develop.training.result import EpochRecord, Parity, SplitFacts, TrainingResult
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing

POLICY = AugmentationPolicy(
    sub_policies=(
        (
            Step(operation="shear_x", probability=0.25, magnitude=0.5),
            Step(operation="equalize", probability=1),
        ),
        (),
    ),
    searched_on="dermatology",
)
RECIPE = Recipe(
    scenario="augmentation",
    source="dermatology",
    architecture="resnet18",
    initial_weights="random",
    colour="grey",
    image_size=64,
    augmentation=POLICY,
    optimisation=Optimisation(
        epochs=3, sampling="prevalence", target_prevalence=(0.25, 0.75), learning_rate=0.01
    ),
    shares=Shares(training=0.4, validation=0.2, calibration=0.2, test=0.2),
    seed=7,
)
RESULT = TrainingResult(
    task="dermatology",
    class_names=("naevus", "melanoma"),
    recipe=RECIPE,
    preprocessing=Preprocessing(colour="grey", mean=(0.5,), standard_deviation=(0.5,)),
    weights="0" * 64,
    initial_weights=None,
    splits={name: SplitFacts(images=3, groups=2, counts=(1, 2)) for name in SPLITS},
    data="1" * 64,
    epochs=(
        EpochRecord(
            phase="training",
            epoch=1,
            learning_rate=0.01,
            training_loss=0.7,
            validation_loss=0.6,
            validation_metric=0.5,
            seconds=1.5,
        ),
    ),
    best_epoch=1,
    parity=Parity(images=3, largest_difference=1e-6, largest_difference_through_service=0, tolerance=1e-4),
    device="cpu",
    versions={"torch": "2"},
    seconds={"training": 1.5},
)


@pytest.mark.parametrize(
    "document",
    [
        LIGHT,
        POLICY,
        Recipe(),
        RECIPE,
        RESULT,
        TrainingProgress(phase="training", fraction=0.5, epoch=3, epochs=6),
    ],
    ids=lambda document: type(document).__name__,
)
def test_documents_survive_json(document: Any) -> None:
    kind = type(document)
    assert kind.from_json(document.to_json()) == document
    assert kind.from_document(document.to_document()) == document


def test_the_default_is_the_uninformed_baseline_with_light_augmentation() -> None:
    recipe = Recipe()
    assert (recipe.scenario, recipe.source, recipe.needs_source_data) == (None, None, False)
    assert recipe.augmentation.sub_policies == ((Step(operation="horizontal_flip", probability=0.5),),)
    assert recipe.optimisation.sampling == "balanced"


@pytest.mark.parametrize(
    ("scenario", "needed"),
    [("architecture", False), ("pretraining", True), ("augmentation", False), ("co_training", True)],
)
def test_two_scenarios_need_the_images_of_the_source(scenario: Any, needed: bool) -> None:
    assert Recipe(scenario=scenario, source="dermatology").needs_source_data is needed


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"scenario": "pretraining"}, "scenario and source"),
        ({"source": "dermatology"}, "scenario and source"),
        ({"scenario": "guessing", "source": "dermatology"}, "scenario"),
        ({"source": "../dermatology", "scenario": "pretraining"}, "source"),
        ({"image_size": 4}, "image_size"),
        ({"seed": -1}, "seed"),
        ({"shares": {"training": 0.5}}, "shares that sum to 1, got 0.9"),
        ({"shares": {"training": 0.6, "validation": 0, "calibration": 0.2, "test": 0.2}}, "validation"),
        ({"optimisation": {"sampling": "prevalence"}}, "target_prevalence"),
        ({"optimisation": {"target_prevalence": [0.5, 0.5]}}, "target_prevalence"),
        ({"optimisation": {"sampling": "prevalence", "target_prevalence": [0.5, 0.6]}}, "sums to 1"),
        ({"optimisation": {"learning_rate": float("nan")}}, "learning_rate"),
        ({"optimisation": {"batch_size": 1}}, "batch_size"),
        ({"optimisation": {"momentum": 0.9}}, "momentum"),
    ],
)
def test_a_recipe_that_contradicts_itself_is_refused(document: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Recipe.from_document(document)
    assert field in str(caught.value)


@pytest.mark.parametrize(
    ("step", "field"),
    [
        ({"operation": "rotation", "probability": 1}, "operation"),
        ({"operation": "rotate"}, "probability"),
        ({"operation": "rotate", "probability": 1.5}, "probability"),
        ({"operation": "rotate", "probability": 1, "magnitude": 1.5}, "magnitude"),
        ({"operation": "rotate", "probability": 1, "strength": 1}, "strength"),
    ],
)
def test_a_policy_with_a_wrong_step_is_refused(step: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        AugmentationPolicy.from_document({"sub_policies": [[step]]})
    assert field in str(caught.value)
    assert "sub_policies" in str(caught.value)


@pytest.mark.parametrize(("sub_policies", "steps"), [(101, 0), (1, 21)])
def test_a_policy_of_unbounded_size_is_refused(sub_policies: int, steps: int) -> None:
    step = {"operation": "rotate", "probability": 1}
    with pytest.raises(InvalidInputError, match="sub_policies"):
        AugmentationPolicy.from_document({"sub_policies": [[step] * steps] * sub_policies})
