"""The closing words of the demo say of what each figure is."""

from dataclasses import replace

import pytest

from lifelong.demo.figures import Figures
from lifelong.demo.report import describe_outcome

FIGURES = Figures(
    seed=0,
    classes=("harmless", "other"),
    true_prevalence=(0.9, 0.1),
    estimated_prevalence=(0.888, 0.112),
    estimated_low=(0.87, 0.09),
    estimated_high=(0.91, 0.13),
    prevalence_error_l1=0.024,
    accuracy_before=0.85,
    accuracy_after=0.93,
    accuracy_argmax=0.9,
    expected_cost_before=0.26,
    expected_cost_after=0.13,
    expected_cost_argmax=0.2,
    accuracy_development=0.88,
    compared_images=700,
    seconds_to_ready=6.0,
    seconds_to_swap=10.1,
    seconds_in_all=70.0,
    cycles_before_shift=2,
    swaps_before_shift=0,
    swaps=1,
    head_before=1,
    head_after=2,
    answered=3000,
    refused=0,
    logged=3000,
    mixed_heads=0,
)


def test_the_time_is_that_of_the_swap_and_the_error_that_of_a_later_window():
    said = " ".join(describe_outcome(FIGURES))
    assert (
        "10.1 s later the monitor had noticed it without a label, refitted the head and swapped it." in said
    )
    assert "from the first window of new images only" in said
    assert "an error of 0.024 (L1)" in said
    assert "swaps" not in said


@pytest.mark.parametrize(("before", "swaps", "told"), [(0, 2, "2"), (0, 3, "3"), (1, 3, "2")])
def test_every_swap_after_the_shift_is_told(before, swaps, told):
    said = " ".join(describe_outcome(replace(FIGURES, swaps_before_shift=before, swaps=swaps)))
    assert f"10.1 s later the monitor had made the first of {told} swaps, without a label." in said
