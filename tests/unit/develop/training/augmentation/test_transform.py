"""Windows of the image, one sub-policy for each image, and equal images for equal states of the generator."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.develop.training.augmentation.transform import (
    OPERATIONS,
    apply_policy,
    policy_transform,
    random_crop,
)
from lifelong_core.develop.training.recipe import AugmentationPolicy, Step

HARMFUL = AugmentationPolicy(
    sub_policies=(
        (
            Step(operation="rotate", probability=0.7, magnitude=0.6),
            Step(operation="equalize", probability=0.4),
        ),
        (Step(operation="solarize", probability=1, magnitude=0.4),),
        (Step(operation="translate_x", probability=0.5, magnitude=1),),
    )
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(count: int, size: tuple[int, int] = (16, 24), channels: int = 3) -> torch.Tensor:
    return torch.randint(256, (count, channels, *size), dtype=torch.uint8, generator=generator(99))


def policy(*steps: Step) -> AugmentationPolicy:
    return AugmentationPolicy(sub_policies=(steps,))


@given(st.integers(8, 12), st.integers(8, 12), st.integers(0, 5), st.integers(0, 5), st.integers(0, 9))
def test_a_crop_is_a_window_of_the_image(height, width, more_rows, more_columns, seed):
    """Without a margin, the image is padded by reflection first, as numpy does it."""
    given_images = images(5, (height + more_rows, width + more_columns))
    cropped = random_crop(given_images, (height, width), generator(seed))
    assert (cropped.dtype, cropped.shape) == (torch.uint8, (5, 3, height, width))
    around = given_images.numpy()
    if (more_rows, more_columns) == (0, 0):
        padding = ((0, 0), (0, 0), (height // 8,) * 2, (width // 8,) * 2)
        around = np.pad(around, padding, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(around, (height, width), axis=(2, 3))
    for image, of_image in zip(cropped.numpy(), windows, strict=True):
        assert (of_image == image[:, None, None]).all(axis=(0, 3, 4)).any()


def test_crops_of_a_batch_lie_at_all_places():
    places = images(1, (6, 9)).expand(400, -1, -1, -1)
    cropped = random_crop(places, (4, 8), generator())
    assert len(torch.unique(cropped.flatten(1), dim=0)) == 3 * 2


def test_equal_states_of_the_generator_give_equal_images():
    transform = policy_transform(HARMFUL, size=(12, 20))
    first, second, other = (transform(images(30), generator(seed)) for seed in (0, 0, 1))
    assert first.shape == (30, 3, 12, 20)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_the_given_images_are_not_changed():
    before = images(20)
    policy_transform(HARMFUL, size=(16, 24))(before, generator())
    assert torch.equal(before, images(20))


def test_without_sub_policies_nothing_changes():
    assert torch.equal(apply_policy(AugmentationPolicy(), images(4), generator()), images(4))
    assert apply_policy(HARMFUL, images(0), generator()).shape == (0, 3, 16, 24)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_a_probability_of_zero_changes_nothing_and_one_changes_each_image(name):
    never, always = (Step(operation=name, probability=share, magnitude=1) for share in (0, 1))
    before = images(12, (128, 128)) // 2
    assert torch.equal(apply_policy(policy(never), before, generator()), before)
    after = apply_policy(policy(always), before, generator())
    changed = (after != before).flatten(1).any(1)
    assert (not changed.any()) if name == "identity" else changed.all()


def test_a_probability_is_the_share_of_changed_images():
    step = Step(operation="horizontal_flip", probability=0.3)
    before = images(4000, (2, 2), 1)
    before[:, :, :, 0], before[:, :, :, 1] = 0, 1
    after = apply_policy(policy(step), before, generator())
    assert (after[:, 0, 0, 0] == 1).float().mean().item() == pytest.approx(0.3, abs=0.03)


def test_both_directions_of_a_strength_occur_equally_often():
    step = Step(operation="translate_x", probability=1, magnitude=0.5)
    before = images(400, (8, 20)).clamp(min=1)
    after = apply_policy(policy(step), before, generator())
    left, right = (
        (after[:, :, :, columns] == 0).flatten(1).all(1) for columns in (slice(-3, None), slice(0, 3))
    )
    assert (left ^ right).all()
    assert left.float().mean().item() == pytest.approx(0.5, abs=0.1)


def test_small_strengths_count():
    step = Step(operation="brightness", probability=1, magnitude=0.05)
    assert not torch.equal(apply_policy(policy(step), images(3), generator()), images(3))


def test_each_image_gets_one_sub_policy_and_all_of_them_occur():
    flips = tuple((Step(operation=name, probability=1),) for name in ("horizontal_flip", "vertical_flip"))
    before = images(200)
    after = apply_policy(AugmentationPolicy(sub_policies=flips), before, generator())
    across = (after == before.flip(-1)).flatten(1).all(1)
    down = (after == before.flip(-2)).flatten(1).all(1)
    assert (across ^ down).all()
    assert 60 < int(across.sum()) < 140


def test_the_steps_of_a_sub_policy_follow_one_another():
    steps = (
        Step(operation="horizontal_flip", probability=1),
        Step(operation="solarize", probability=1, magnitude=1),
    )
    after = apply_policy(policy(*steps), images(5), generator())
    assert torch.equal(after, 255 - images(5).flip(-1))


@pytest.mark.parametrize("size", [(8, 8), (10, 9)])
def test_grey_images_pass_through_every_operation(size):
    steps = tuple((Step(operation=name, probability=1, magnitude=0.7),) for name in OPERATIONS)
    transform = policy_transform(AugmentationPolicy(sub_policies=steps), size=(8, 8))
    assert transform(images(64, size, 1), generator()).shape == (64, 1, 8, 8)
