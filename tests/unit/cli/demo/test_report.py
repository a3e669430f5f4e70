"""The demonstration: its report, late labels, figures, and its interruption."""

import signal
import subprocess
import sys
from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest

from lifelong.demo.figures import EstimatedAccuracy, Figures
from lifelong.demo.images import CLASS_NAMES
from lifelong.demo.report import describe_outcome
from lifelong.demo.traffic import LABELLED_SHARE, Answer, Answers, draw_labelled, send_labels
from lifelong_core.values.errors import LifelongError

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


class Service:
    """Stores labels; predictions of `unknown` are not in its log."""

    def __init__(self, unknown=()):
        self.labels = []
        self.unknown = unknown

    def post(self, path, document):
        assert path == "/v1/feedback"
        self.labels += document["labels"]
        ids = (one["prediction_id"] for one in document["labels"])
        return {
            "labels": [
                {"prediction_id": known, "outcome": "unknown" if known in self.unknown else "stored"}
                for known in ids
            ]
        }


def answers(count):
    labels = np.arange(count) % len(CLASS_NAMES)
    return Answers(tuple(Answer(UUID(int=i), 1, 0, (1.0, 0.0, 0.0), float(i)) for i in range(count)), labels)


def test_the_same_seed_draws_the_same_fifth():
    drawn = [draw_labelled(answers(2000), np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert drawn[0].answers == drawn[1].answers != drawn[2].answers
    assert len(drawn[0].answers) == pytest.approx(2000 * LABELLED_SHARE, rel=0.2)


def test_each_label_has_its_class_and_the_probability_of_its_draw():
    service, sent = Service(), []
    send_labels(service, answers(700), sent.append)
    assert sum(sent) == 700
    assert [one["prediction_id"] for one in service.labels] == [str(UUID(int=i)) for i in range(700)]
    assert [one["label"] for one in service.labels] == [CLASS_NAMES[i % 3] for i in range(700)]
    assert {one["propensity"] for one in service.labels} == {LABELLED_SHARE}


def test_an_unknown_prediction_is_an_error():
    with pytest.raises(LifelongError, match=f"{UUID(int=3)} was refused"):
        send_labels(Service(unknown={str(UUID(int=3))}), answers(9), lambda _: None)


def test_the_accuracy_is_read_from_the_estimated_performance():
    document = {"estimates": {"EC": [0.3, 0.2, 0.4], "AC": [0.83, 0.8, 0.86]}}
    assert EstimatedAccuracy.from_document(document) == EstimatedAccuracy(value=0.83, low=0.8, high=0.86)


@pytest.mark.parametrize("document", [None, {"estimates": {}}, {"estimates": {"AC": [None, None, None]}}])
def test_a_report_without_an_accuracy_has_none(document):
    assert EstimatedAccuracy.from_document(document) is None


INTERRUPTED = """
import os, signal, sys, time
from lifelong.demo.main import interruptible
number = int(sys.argv[1])
try:
    with interruptible():
        try:
            os.kill(os.getpid(), number)
            time.sleep(60)
        except BaseException:
            print("lost", flush=True)
        time.sleep(60)
finally:
    os.kill(os.getpid(), number)
    time.sleep(1.5)
    print("clean", flush=True)
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)])
def test_an_interruption_that_is_lost_comes_again_and_cleaning_up_is_not_interrupted(
    number: int, status: int
):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(int(number))], capture_output=True, text=True
    )
    assert done.stdout.split() == ["lost", "clean"]
    assert done.returncode == status
