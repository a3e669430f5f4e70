"""Candidates that have an effect, their scores by a model that is known exactly, and the rounds."""

import numpy as np
import pytest
import torch

from lifelong_core.develop.training.augmentation.halving import Scorer, halve, in_turn, plan_rounds
from lifelong_core.develop.training.augmentation.transform import STRENGTHS, draw_candidates, effective_steps
from lifelong_core.develop.training.recipe import Step

LABELS = np.array([0, 1, 2, 0, 1, 0])


def images(channels: int = 3, count: int = 6) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(20, 236, (count, channels, 32, 32), dtype=torch.uint8, generator=generator)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_steps_without_effect_are_no_candidates():
    colour, grey, black = (
        effective_steps(one) for one in (images(), images(1), torch.zeros(6, 3, 32, 32).byte())
    )
    assert "identity" not in colour
    assert set(colour) - set(grey) == {"saturation"}
    assert [step.magnitude for step in colour["rotate"]] == list(STRENGTHS)
    assert colour["horizontal_flip"] == (Step(operation="horizontal_flip", probability=1),)
    assert set(black) == {"solarize"}
    assert all(step.probability == 1 for steps in colour.values() for step in steps)


def test_candidates_are_different_and_equal_by_seed():
    steps = effective_steps(images())
    first, second, other = (draw_candidates(steps, 200, generator(seed)) for seed in (0, 0, 1))
    assert first == second != other
    assert len(set(first)) == 200
    assert all(len({step.operation for step in one}) == len(one) for one in first)
    assert 40 < sum(len(one) == 1 for one in first) < 120  # of 71
    assert {step.operation for one in first for step in one} == set(steps)


def test_operations_of_one_strength_are_as_likely_as_the_others():
    every = effective_steps(images())
    steps = {name: every[name] for name in ("horizontal_flip", "rotate")}
    drawn = [draw_candidates(steps, 1, generator(seed))[0] for seed in range(400)]
    assert sum(len(one) == 1 for one in drawn) == pytest.approx(200, abs=40)
    assert sum(one[0].operation == "rotate" for one in drawn) == pytest.approx(200, abs=40)


def test_there_may_be_fewer_candidates_than_wanted():
    flip = {"horizontal_flip": (Step(operation="horizontal_flip", probability=1),)}
    assert draw_candidates(flip, 50, generator()) == ((flip["horizontal_flip"][0],),)
    assert draw_candidates({}, 50, generator()) == ()


def scorer(logits_of, labels=LABELS, seed=0) -> Scorer:
    pixels = images(count=len(labels))
    return Scorer(logits_of, lambda positions: pixels[torch.from_numpy(positions)], labels, (28, 28), seed)


def test_the_loss_is_the_mean_over_the_classes():
    """A model that gives class 0 the probability 1/2 and the others 1/4, whatever the image."""
    logits = torch.log(torch.tensor([0.5, 0.25, 0.25]))
    constant = scorer(lambda batch: logits.expand(len(batch), 3))
    for count in (3, 4, 6):
        assert constant.loss((), count) == pytest.approx((np.log(2) + np.log(4) + np.log(4)) / 3)


def test_the_first_images_are_cropped_and_augmented():
    seen = []

    def logits_of(batch):
        seen.append(batch)
        return torch.zeros(len(batch), 3)

    own = scorer(logits_of)
    own.loss((), 4)
    own.loss((Step(operation="horizontal_flip", probability=1),), 4)
    plain, flipped = seen
    assert plain.shape == (4, 3, 28, 28)
    assert torch.equal(flipped, plain.flip(-1))
    windows = images()[:4].unfold(2, 28, 1).unfold(3, 28, 1)
    for image, of_image in zip(plain, windows, strict=True):
        assert (of_image == image[:, None, None]).all(dim=4).all(dim=3).all(dim=0).any()


def test_crops_are_equal_for_all_candidates_and_differ_between_seeds():
    def logits_of(batch):
        return batch.float().mean((2, 3))

    rotated = (Step(operation="rotate", probability=1, magnitude=0.4),)
    first, second, other = (scorer(logits_of, seed=seed) for seed in (0, 0, 1))
    assert first.loss(rotated, 6) == second.loss(rotated, 6) != other.loss(rotated, 6)


def test_the_classes_come_in_turn_while_they_last():
    assert in_turn(np.array([0, 0, 0, 1, 1, 2])).tolist() == [0, 3, 5, 1, 4, 2]
    assert in_turn(LABELS).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("candidates", "held_out", "expected"),
    [
        (100, 1000, [(100, 250), (50, 500), (25, 1000)]),
        (15, 1000, [(15, 250), (10, 500), (10, 1000)]),
        (4, 1000, [(4, 250), (4, 500), (4, 1000)]),
        (100, 40, [(100, 24), (50, 24), (25, 40)]),
        (100, 10, [(100, 10), (50, 10), (25, 10)]),
    ],
)
def test_rounds_halve_candidates_and_double_images(candidates, held_out, expected):
    rounds = plan_rounds(candidates, held_out, 3, kept=10)
    assert [(one.candidates, one.images) for one in rounds] == expected


def test_the_better_half_goes_on():
    candidates = [(Step(operation="rotate", probability=1, magnitude=number / 20),) for number in range(20)]
    asked = []

    def loss(steps, count):
        asked.append(count)
        return (steps[0].magnitude - 0.3) ** 2 + 1 / count

    tried = halve(candidates, plan_rounds(20, 400, 2, kept=3), loss)
    assert asked == [100] * 20 + [200] * 10 + [400] * 5
    assert [one.images for one in tried] == [400] * 5 + [200] * 5 + [100] * 10
    assert tried[0].steps[0].magnitude == pytest.approx(0.3)
    assert {one.steps for one in tried} == set(candidates)
    assert [one.loss for one in tried[:5]] == sorted(one.loss for one in tried[:5])


def test_finished_rounds_are_not_scored_again():
    candidates = [(Step(operation="rotate", probability=1, magnitude=number / 10),) for number in range(8)]
    rounds = plan_rounds(8, 80, 2, kept=2)
    heard, asked = [], []

    def loss(steps, count):
        asked.append(count)
        return abs(steps[0].magnitude - 0.45) + 1 / count

    whole = halve(candidates, rounds, loss, on_round=heard.append)
    assert [len(losses) for losses in heard[-1]] == [8, 4, 2]
    before = len(asked)
    assert halve(candidates, rounds, loss, finished=heard[-1][:2]) == whole
    assert len(asked) == before + 2
    assert halve(candidates, rounds, loss, finished=heard[-1]) == whole
    assert len(asked) == before + 2
