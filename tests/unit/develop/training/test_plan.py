"""The plan of a training: phases, images, duration, needs and what is missing."""

from dataclasses import replace

import pytest

from lifelong_core.develop.training.plan import (
    STARTING_SECONDS,
    Circumstances,
    Speed,
    TrainingPlan,
    plan_training,
)
from lifelong_core.develop.training.recipe import Optimisation, Recipe

RECIPE = Recipe(
    architecture="resnet10t", image_size=32, optimisation=Optimisation(epochs=10, learning_rate=0.01)
)
KNOWN = Circumstances(images=1000, classes=2, speed=Speed(100.0, "measured", "lesions@3"))


def co_training(scenario: str = "co_training") -> Recipe:
    return Recipe.from_document(RECIPE.to_document() | {"scenario": scenario, "source": "skin"})


def seconds(plan: TrainingPlan) -> float:
    assert plan.duration is not None
    return plan.duration.seconds - STARTING_SECONDS


def test_a_baseline_is_planned_from_the_shares_and_a_measured_speed() -> None:
    plan = plan_training("lesions", RECIPE, KNOWN)
    assert plan.splits == {"training": 600, "validation": 100, "calibration": 150, "test": 150}
    assert [(one.phase, one.images, one.epochs) for one in plan.phases] == [
        ("reading", 1000, None),
        ("training", 600, 10),
        ("evaluating", 300, None),
        ("exporting", 64, None),
    ]
    # 10 epochs of 600 images with, and of 100 without gradients, then 300 images once.
    trained = (6000 + 0.35 * (1000 + 300)) / 100
    assert plan.duration is not None
    assert plan.duration.seconds == pytest.approx(STARTING_SECONDS + trained)
    assert plan.duration.low == pytest.approx(STARTING_SECONDS / 5 + trained / 1.5)
    assert plan.duration.high == pytest.approx(STARTING_SECONDS * 5 + trained * 1.5)
    assert "lesions@3" in plan.duration.explanation
    assert TrainingPlan.from_json(plan.to_json()) == plan
    assert (plan.missing, plan.warnings) == ((), ())


def test_a_learning_rate_that_is_not_given_is_found_first() -> None:
    recipe = RECIPE.model_copy(update={"optimisation": Optimisation(epochs=10)})
    assert "learning_rate" in [one.phase for one in plan_training("lesions", recipe, KNOWN).phases]


def test_source_images_add_a_phase_or_longer_epochs() -> None:
    known = replace(KNOWN, source_images=2000)
    alone = plan_training("lesions", RECIPE, known)
    assert alone.source_splits is None
    two_phases = plan_training("lesions", co_training("pretraining"), known)
    assert [(one.phase, one.images) for one in two_phases.phases if one.epochs] == [
        ("pretraining", 1800),
        ("training", 600),
    ]
    both = plan_training("lesions", co_training(), known)
    assert [(one.phase, one.images) for one in both.phases if one.epochs] == [("training", 1200)]
    assert both.source_splits is not None
    assert seconds(alone) < seconds(both) < seconds(two_phases)
    assert (both.disk_bytes or 0) > (alone.disk_bytes or 0)
    unknown = plan_training("lesions", co_training("pretraining"), KNOWN)
    assert (unknown.duration, unknown.disk_bytes, unknown.source_splits) == (None, None, None)


def test_without_a_measured_speed_the_plan_says_that_it_guesses() -> None:
    guessed = plan_training("lesions", RECIPE, replace(KNOWN, speed=None))
    assert guessed.duration is not None
    assert guessed.duration.basis == "guessed"
    low, high = guessed.duration.low - STARTING_SECONDS / 5, guessed.duration.high - STARTING_SECONDS * 5
    assert high == pytest.approx(100 * low)
    larger = plan_training(
        "lesions", RECIPE.model_copy(update={"image_size": 64}), replace(KNOWN, speed=None)
    )
    assert seconds(larger) == pytest.approx(4 * seconds(guessed))
    on_gpu = plan_training("lesions", RECIPE, replace(KNOWN, speed=None, device="cuda:0"))
    assert seconds(on_gpu) < seconds(guessed)


def test_what_finished_trainings_took_beside_their_epochs_replaces_the_guess() -> None:
    first = plan_training("lesions", RECIPE, KNOWN).duration
    learned = plan_training("lesions", RECIPE, replace(KNOWN, other_seconds=(120.0, 150.0, 240.0))).duration
    assert first is not None
    assert learned is not None
    trained = (6000 + 0.35 * (1000 + 300)) / 100
    assert learned.seconds == pytest.approx(150 + trained)
    assert (learned.low, learned.high) == pytest.approx((80 + trained / 1.5, 360 + trained * 1.5))
    assert "as the last 3 trainings here" in learned.explanation
    assert "a guess, 60 s" in first.explanation
    fast = plan_training("lesions", RECIPE, replace(KNOWN, speed=Speed(1741.3, "stated"))).duration
    assert fast is not None
    assert fast.explanation.startswith("1,740 images per second")


def test_an_unknown_number_of_images_leaves_the_duration_open() -> None:
    plan = plan_training("lesions", RECIPE, replace(KNOWN, images=None, missing=("No images.",)))
    assert (plan.splits, plan.duration, plan.disk_bytes) == (None, None, None)
    assert plan.missing == ("No images.",)


@pytest.mark.parametrize(
    ("recipe", "changes", "warning"),
    [
        (RECIPE, {"images": 400}, "50 or more of each class"),
        (RECIPE, {"has_weights_file": False}, "LIFELONG_TRAINING_WEIGHTS"),
        (RECIPE, {"memory_bytes": 10**9}, "LIFELONG_JOB_MEMORY_BYTES"),
        (RECIPE, {"free_disk_bytes": 10**6}, "LIFELONG_JOB_DISK_BYTES"),
        (RECIPE.model_copy(update={"image_size": None}), {}, "timm's data config"),
        (RECIPE, {"warnings": ("Of the caller.",)}, "Of the caller."),
    ],
)
def test_what_may_go_wrong_is_a_warning(recipe: Recipe, changes: dict[str, object], warning: str) -> None:
    found = plan_training("lesions", recipe, replace(KNOWN, **changes)).warnings  # type: ignore[arg-type]
    assert any(warning in text for text in found)
    assert len({text for text in found if warning not in text}) <= 1


def test_random_weights_need_no_file() -> None:
    recipe = RECIPE.model_copy(update={"initial_weights": "random"})
    assert plan_training("lesions", recipe, replace(KNOWN, has_weights_file=False)).warnings == ()
