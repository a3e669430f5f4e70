"""The report of the demo names the window and the swap of each figure."""

from dataclasses import replace

import pytest

from lifelong.demo.figures import EstimatedAccuracy, Figures
from lifelong.demo.report import describe_outcome

FIGURES = Figures(
    seed=0,
    classes=("harmless", "other"),
    true_prevalence=(0.9, 0.1),
    estimated_prevalence=(0.888, 0.112),
    estimated_low=(0.87, 0.09),
    estimated_high=(0.91, 0.13),
    prevalence_error_l1=0.024,
    prevalence_error_l1_whole_window=0.41,
    images_before_change=800,
    images_before_change_found=803,
    images_before_change_low=790,
    images_before_change_high=811,
    accuracy_before=0.85,
    accuracy_after=0.93,
    accuracy_argmax=0.9,
    expected_cost_before=0.26,
    expected_cost_after=0.13,
    expected_cost_argmax=0.2,
    accuracy_development=0.88,
    estimated_accuracy_before=EstimatedAccuracy(0.846, 0.81, 0.88),
    estimated_accuracy_after=EstimatedAccuracy(0.921, 0.9, 0.94),
    realised_accuracy_before=0.857,
    realised_accuracy_after=0.936,
    labelled=600,
    compared_images=700,
    compared_decisions=700,
    affected_decisions=84,
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


def test_the_time_is_that_of_the_swap_and_the_error_that_of_the_first_cycle():
    said = " ".join(describe_outcome(FIGURES))
    assert (
        "10.1 s later the monitor had noticed it without a label, refitted the head and swapped it." in said
    )
    assert (
        "The first cycle found the change after 803 images (95 % interval 790 to 811; it was after 800)"
        in said
    )
    assert "an error of 0.024 (L1); the mix of the whole window is 0.410 off" in said
    assert "swaps" not in said


def test_a_cycle_that_found_no_change_is_not_said_to_have_found_one():
    missed = replace(
        FIGURES,
        images_before_change_found=None,
        images_before_change_low=None,
        images_before_change_high=None,
    )
    said = " ".join(describe_outcome(missed))
    assert "The first cycle found no change in its window" in said
    assert "an error of 0.024 (L1)" in said


def test_the_decisions_that_the_new_head_makes_otherwise_are_told():
    said = " ".join(describe_outcome(FIGURES))
    assert "the new head makes 84 of them (12%) otherwise" in said


def test_the_estimated_accuracy_is_told_beside_the_true_one():
    said = " ".join(describe_outcome(FIGURES))
    assert "old head 0.846 (0.810 to 0.880), new head 0.921 (0.900 to 0.940). It was 0.850 and 0.930." in said


def test_a_cycle_without_an_estimate_is_told():
    said = " ".join(describe_outcome(replace(FIGURES, estimated_accuracy_before=None)))
    assert "old head no estimate, new head 0.921" in said


@pytest.mark.parametrize(("before", "swaps", "told"), [(0, 2, "2"), (0, 3, "3"), (1, 3, "2")])
def test_every_swap_after_the_shift_is_told(before, swaps, told):
    said = " ".join(describe_outcome(replace(FIGURES, swaps_before_shift=before, swaps=swaps)))
    assert f"10.1 s later the monitor had made the first of {told} swaps, without a label." in said
