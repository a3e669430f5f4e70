"""A search keeps what keeps the classes, goes on to an equal result, and says how far it is."""

from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lifelong_core.develop.features.sources.entry import ImageSource
from lifelong_core.develop.training.augmentation import search
from lifelong_core.develop.training.augmentation.halving import read_state, search_key
from lifelong_core.develop.training.augmentation.search import KEPT, PROBABILITY, search_policy
from lifelong_core.develop.training.progress import TrainingProgress
from lifelong_core.develop.training.recipe import LIGHT, AugmentationPolicy
from lifelong_core.develop.training.result import SearchOutcome
from lifelong_core.values.errors import InvalidInputError
from tests.unit.develop.training.optimisation.drawn import draw, recipe


@dataclass
class Run:
    """What a search told and gave."""

    checkpoints: list[bytes] = field(default_factory=list)
    progress: list[TrainingProgress] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    outcome: SearchOutcome | None = None


@dataclass
class Searches:
    """Searches on images whose class is the side of a square: left or right."""

    images: ImageSource
    folder: Path

    def run(self, *, killed_after: int = 1000, **changes: Any) -> Run:
        told = Run()

        def keep(content: bytes) -> None:
            told.checkpoints.append(content)
            if len(told.checkpoints) == killed_after:
                raise Killed

        given: dict[str, Any] = {
            "recipe": recipe(epochs=EPOCHS, learning_rate=1e-2, augmentation=LIGHT),
            "work_folder": self.folder,
            "trials": TRIALS,
            "device": "cpu",
            "on_checkpoint": keep,
            "on_progress": told.progress.append,
            "log": told.lines.append,
        }
        with pytest.MonkeyPatch.context() as patch, suppress(Killed):
            patch.setattr("lifelong_core.develop.training.phases._SAVING_SHARE", 1e9)
            patch.setattr("lifelong_core.develop.training.progress._SECONDS_BETWEEN", 0.0)
            told.outcome = search_policy("squares", images=self.images, **{**given, **changes})
        return told


class Killed(BaseException):
    """Stands for the end of the process."""


EPOCHS, TRIALS = 6, 40


@pytest.fixture(scope="module")
def searches(tmp_path_factory: pytest.TempPathFactory) -> Searches:
    folder = tmp_path_factory.mktemp("search")
    return Searches(draw(folder / "images", {"left": 60, "right": 60}), folder / "work")


@pytest.fixture(scope="module")
def whole(searches: Searches) -> Run:
    return searches.run()


@pytest.fixture
def outcome(whole: Run) -> SearchOutcome:
    assert whole.outcome is not None
    return whole.outcome


def operations(policy: AugmentationPolicy) -> set[str]:
    return {step.operation for steps in policy.sub_policies for step in steps}


def test_what_changes_the_class_is_left_out(outcome: SearchOutcome) -> None:
    """A horizontal flip moves the square to the other side; many other operations leave it there."""
    assert "horizontal_flip" not in operations(outcome.policy)
    assert len(outcome.policy.sub_policies) >= 3
    flips = [
        one.loss for one in outcome.tried if any(step.operation == "horizontal_flip" for step in one.steps)
    ]
    assert len(flips) >= 2
    assert min(flips) > outcome.largest_loss


def test_what_has_no_effect_is_not_tried(outcome: SearchOutcome) -> None:
    """The images are grey."""
    tried = {step.operation for one in outcome.tried for step in one.steps}
    assert not tried & {"identity", "saturation"}
    assert {"horizontal_flip", "brightness", "rotate"} <= tried


def test_the_policy_holds_the_best_of_the_last_round(outcome: SearchOutcome) -> None:
    assert len(outcome.tried) == TRIALS
    last = [one for one in outcome.tried if one.images == outcome.images]
    assert [one.loss for one in last] == sorted(one.loss for one in last)
    good = [one.steps for one in last if one.loss <= outcome.largest_loss][:KEPT]
    assert [[step.operation for step in steps] for steps in outcome.policy.sub_policies] == [
        [step.operation for step in steps] for steps in good
    ]
    assert {step.probability for steps in outcome.policy.sub_policies for step in steps} == {PROBABILITY}
    assert outcome.policy.searched_on == "squares"
    assert outcome.loss_of_unchanged < outcome.largest_loss < np.log(2)


def test_the_model_that_scores_is_trained_without_augmentation(outcome: SearchOutcome) -> None:
    assert outcome.recipe.augmentation == AugmentationPolicy()
    assert SearchOutcome.from_json(outcome.to_json()) == outcome


def same(first: SearchOutcome | None, second: SearchOutcome) -> bool:
    return first is not None and first.model_copy(update={"seconds": second.seconds}) == second


def test_an_interrupted_search_goes_on_to_an_equal_result(searches: Searches, outcome: SearchOutcome) -> None:
    """Killed after the third epoch, and again after the first round."""
    first = searches.run(killed_after=3)
    second = searches.run(checkpoint=first.checkpoints[-1], killed_after=EPOCHS - 3 + 2)
    assert "goes on after epoch 3 of the training" in second.lines
    last = searches.run(checkpoint=second.checkpoints[-1])
    assert "goes on after 1 of 3 rounds" in last.lines
    assert len(last.checkpoints) == 2
    assert same(last.outcome, outcome)


def test_a_finished_search_is_not_repeated(
    searches: Searches, whole: Run, outcome: SearchOutcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "train", None)
    again = searches.run(checkpoint=whole.checkpoints[-1])
    assert again.checkpoints == []
    assert same(again.outcome, outcome)


def test_a_checkpoint_of_another_search_is_not_used(whole: Run) -> None:
    last = whole.checkpoints[-1]
    key = torch.load(BytesIO(last), weights_only=True)["key"]
    found = read_state(last, key)
    assert found is not None
    assert [len(losses) for losses in found.losses] == [40, 20, 10]
    assert read_state(last, search_key("other", 1)) is None
    assert read_state(last[: len(last) // 2], key) is None
    assert read_state(b"", key) is None
    assert search_key("a", 1) != search_key("a", 2)


def test_a_damaged_checkpoint_begins_anew(searches: Searches) -> None:
    told = searches.run(checkpoint=b"damaged", killed_after=1)
    assert "the checkpoint is damaged or of another search: beginning anew" in told.lines


def test_progress_rises_through_the_phases(whole: Run) -> None:
    fractions = [one.fraction for one in whole.progress]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1
    assert list(dict.fromkeys(one.phase for one in whole.progress)) == ["reading", "training", "searching"]
    assert all(one.fraction < 0.7 for one in whole.progress if one.phase == "training")
    known = [one.seconds_left for one in whole.progress if one.phase == "searching"]
    assert known[-1] == 0


def test_no_more_images_are_scored_than_needed(
    searches: Searches, whole: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The images of a class lie beside each other; the few scored ones are of both."""
    monkeypatch.setattr(search, "_MOST_SCORED", 4)
    trained = whole.checkpoints[EPOCHS]
    few = searches.run(checkpoint=trained).outcome
    assert few is not None
    assert few.images == 4
    assert {one.images for one in few.tried} == {4}


def test_a_model_that_learnt_nothing_is_refused(searches: Searches) -> None:
    with pytest.raises(InvalidInputError, match="has learnt nothing") as caught:
        searches.run(recipe=recipe(epochs=1, learning_rate=1e-9), trials=3)
    assert caught.value.field == "recipe"
