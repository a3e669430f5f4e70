"""Pooling of patches: transcriptions of the equations, and the torch modules against the numpy functions."""

import math

import numpy as np
import pytest
import torch

from lifelong_core.develop.localization.patch_head import POOLINGS, LogSumExpPooling
from lifelong_core.develop.localization.pooling import (
    log_sum_exp_pooling,
    max_pooling,
    mean_pooling,
    noisy_or_pooling,
)
from lifelong_core.values.errors import InvalidInputError

FUNCTIONS = {
    "max": max_pooling,
    "mean": mean_pooling,
    "log_sum_exp": log_sum_exp_pooling,
    "noisy_or": noisy_or_pooling,
}
NAMES = list(FUNCTIONS)
R = 10


def unmarked(name, scores):
    """Eqs. 1, 2, 4 and 5, patch by patch."""
    match name:
        case "max":
            return max(scores)
        case "mean":
            return sum(scores) / len(scores)
        case "log_sum_exp":
            return math.log(sum(math.exp(R * y) for y in scores) / len(scores)) / R
    negative = 1.0
    for y in scores:
        negative *= 1 - y
    return 1 - negative


def supervised(name, scores, marked):
    """Section III-D; eq. 23 with the second product over 1 - y."""
    inside = [y for y, is_inside in zip(scores, marked, strict=True) if is_inside]
    outside = [y for y, is_inside in zip(scores, marked, strict=True) if not is_inside]
    size = len(scores)
    match name:
        case "max":
            return max(inside)
        case "mean":
            return (sum(inside) + sum(1 - y for y in outside)) / size
        case "log_sum_exp":
            total = sum(math.exp(R * y) for y in inside) + sum(math.exp(R * (1 - y)) for y in outside)
            return math.log(total / size) / R
    return math.prod(inside) * math.prod(1 - y for y in outside)


@pytest.mark.parametrize("name", NAMES)
def test_are_the_published_equations(name):
    rng = np.random.default_rng(0)
    scores, marked = rng.random((3, 5, 7)), rng.random((3, 5, 7)) < 0.4
    marked[0] = False
    found, plain = FUNCTIONS[name](scores, marked), FUNCTIONS[name](scores)
    assert found.shape == plain.shape == (3, 5)
    for index in np.ndindex(3, 5):
        own = scores[index].tolist()
        assert plain[index] == pytest.approx(unmarked(name, own), abs=1e-12)
        if marked[index].any():
            assert found[index] == pytest.approx(supervised(name, own, marked[index]), abs=1e-12)
        else:
            assert found[index] == plain[index]


def test_log_sum_exp_lies_between_mean_and_maximum():
    scores = np.random.default_rng(1).normal(size=(20, 9)) * 100
    low, high = mean_pooling(scores), max_pooling(scores)
    np.testing.assert_allclose(log_sum_exp_pooling(scores, sharpness=1e-8), low, rtol=1e-4)
    np.testing.assert_allclose(log_sum_exp_pooling(scores, sharpness=1e4), high, atol=1e-3)
    for sharpness in (0.01, 1, 10):
        found = log_sum_exp_pooling(scores, sharpness=sharpness)
        assert ((low <= found) & (found <= high)).all()
    # Eq. 3 is eq. 4 with r = 1.
    few = [0.2, 0.9, 0.5]
    expected = math.log(sum(math.exp(y) for y in few) / 3)
    assert log_sum_exp_pooling(few, sharpness=1) == pytest.approx(expected)


def test_extreme_scores():
    assert noisy_or_pooling([1.0, 0.0]) == 1
    assert noisy_or_pooling([0.0, 0.0]) == 0
    assert noisy_or_pooling([1e-20] * 4) == pytest.approx(4e-20)
    assert log_sum_exp_pooling([1000.0, -1000.0]) == pytest.approx(1000 - math.log(2) / R)


@pytest.mark.parametrize(
    ("name", "given", "field"),
    [
        ("max", ([],), "scores"),
        ("mean", (0.5,), "scores"),
        ("max", ([0.1, math.nan],), "scores"),
        ("max", (["a"],), "scores"),
        ("noisy_or", ([0.5, 1.1],), "scores"),
        ("noisy_or", ([-0.1, 0.5],), "scores"),
        ("mean", ([0.5, 2.0], [True, False]), "scores"),
        ("log_sum_exp", ([0.5, 2.0], [True, False]), "scores"),
        ("mean", ([0.5, 0.5], [True]), "marked"),
        ("max", ([0.5, 0.5], [1, 0]), "marked"),
    ],
)
def test_what_does_not_fit_is_named(name, given, field):
    with pytest.raises(InvalidInputError) as caught:
        FUNCTIONS[name](*given)
    assert caught.value.field == field


def test_sharpness_is_positive():
    for sharpness in (0, -1, math.inf, math.nan):
        for pooling in (lambda r=sharpness: log_sum_exp_pooling([0.5], sharpness=r), None):
            with pytest.raises(InvalidInputError) as caught:
                LogSumExpPooling(sharpness) if pooling is None else pooling()
            assert caught.value.field == "sharpness"


def drawn(scale, *, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(4, 3, 6, dtype=torch.float64, generator=generator)
    marked = torch.rand(4, 3, 6, generator=generator) < 0.4
    marked[0] = False
    return logits, marked


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [0.1, 3, 30, 1000])
def test_modules_are_the_functions_on_logits(name, scale):
    logits, marked = drawn(scale)
    module = POOLINGS[name]()
    for marks in (None, marked):
        found = module(logits, marks)
        expected = FUNCTIONS[name](logits.sigmoid().numpy(), None if marks is None else marks.numpy())
        assert found.shape == (4, 3)
        np.testing.assert_allclose(found.sigmoid().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_right(name):
    module = POOLINGS[name]()
    for scale in (1, 10):
        logits, marked = drawn(scale, seed=5)
        logits.requires_grad_()
        assert torch.autograd.gradcheck(module, (logits,))
        assert torch.autograd.gradcheck(lambda given, marks=marked: module(given, marks), (logits,))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients_stay_finite_for_logits_of_any_size(name, dtype):
    module = POOLINGS[name]()
    marks = torch.tensor([True, False, False])
    for centre in (-1e4, -100, -25, 0, 25, 100, 1e4):
        for spread in (0, 1, 1e4):
            logits = (centre + spread * torch.tensor([0.0, 1.0, -1.0])).to(dtype).requires_grad_()
            for marked in (None, marks):
                found = module(logits, marked)
                (gradient,) = torch.autograd.grad(found, logits)
                assert torch.isfinite(found)
                assert torch.isfinite(gradient).all()
                # The means of saturated patches truly have none.
                assert name in ("mean", "log_sum_exp") or (gradient != 0).any()


def test_equal_patches_far_from_0_keep_their_logit():
    """Probabilities of 1 +- 1e-40, whose differences no number keeps."""
    for logit in (-100.0, 100.0):
        patches = torch.tensor([logit, logit])
        for name in ("max", "mean", "log_sum_exp"):
            assert POOLINGS[name]()(patches).item() == pytest.approx(logit, rel=1e-6)
    none = POOLINGS["noisy_or"]()(torch.tensor([-100.0, -100.0])).item()
    assert none == pytest.approx(-100 + math.log(2), rel=1e-6)
    as_marked = POOLINGS["noisy_or"]()(torch.tensor([100.0, -100.0]), torch.tensor([True, False])).item()
    assert as_marked == pytest.approx(100 - math.log(2), rel=1e-6)


@pytest.mark.parametrize("logit", [-5.0, -9.9, -10.1, -19.9, -20.1, -30.0, 12.0])
def test_noisy_or_is_exact_on_both_sides_of_its_expansions(logit):
    for count in (1, 4):
        found = POOLINGS["noisy_or"]()(torch.full((count,), logit, dtype=torch.float64)).item()
        expected = math.log(math.expm1(count * math.log1p(math.exp(logit))))
        assert found == pytest.approx(expected, abs=1e-13)


def test_log_sum_exp_of_tiny_probabilities_is_their_mean():
    patches = torch.tensor([-200.0, -201.0])
    expected = -200 + math.log((1 + math.exp(-1)) / 2)
    assert LogSumExpPooling()(patches).item() == pytest.approx(expected, abs=1e-4)
    assert LogSumExpPooling()(-patches).item() == pytest.approx(201 - math.log((1 + math.e) / 2), abs=1e-4)
