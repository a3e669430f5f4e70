import json

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, PrevalenceEstimate, quantifier
from lifelong_core.deploy.quantification.cautions import find_cautions
from lifelong_core.values.errors import InvalidInputError


def calibrated(counts, *, mistaken=None):
    """The first case of each class is mistaken, or of those that are named."""
    labels = np.repeat(np.arange(len(counts)), counts)
    logits = np.eye(len(counts))[labels]
    chosen = range(len(counts)) if mistaken is None else mistaken
    first = np.searchsorted(labels, np.asarray(chosen, dtype=int))
    logits[first] = np.roll(logits[first], 1, axis=1)
    return LabeledLogits(logits, labels)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([140, 30, 30], []),
        ([139, 30, 30], ["199"]),
        ([140, 31, 29], ["class 2:"]),
        ([180, 29, 1], ["classes 1 and 2:"]),
        ([150, *[29] * 5], ["classes 1, 2, 3, 4 and 5:"]),
        ([150, *[29] * 6], ["6 classes:"]),
        ([100, 10], ["class 1:", "110"]),
    ],
)
def test_small_calibration_sets_are_named(counts, said):
    found = find_cautions(calibrated(counts), None)
    assert len(found) == len(said)
    for text, part in zip(found, said, strict=True):
        assert part in text


@pytest.mark.parametrize(
    ("counts", "mistaken", "said"),
    [
        ([150, 150], [1], ["of class 0 was mistaken in 150, so up to 2 % may be", "±0.02"]),
        ([150, 150], [], ["of classes 0 and 1 was mistaken in 150,", "up to 2 %"]),
        ([300, 150], [], ["was mistaken in 150 or more,", "up to 2 %"]),
        ([150, 3000], [0], ["of class 1 was mistaken in 3,000,", "up to 0.1 %", "±0.001"]),
    ],
)
def test_a_class_of_which_no_case_was_mistaken_is_named(counts, mistaken, said):
    (text,) = find_cautions(calibrated(counts, mistaken=mistaken), None)
    for part in said:
        assert part in text


def test_cases_of_one_patient_count_once_where_none_was_mistaken():
    data = calibrated([300, 300], mistaken=[])
    grouped = LabeledLogits(data.logits, data.labels, groups=np.arange(600) // 2)
    (text,) = find_cautions(grouped, None)
    assert "was mistaken in 150, so up to 2 % may be" in text


def test_classes_that_may_look_alike_are_named():
    blurred = np.array([[0.7, 0.02, -0.72], [0.5, 0.01, -0.51]])
    (text,) = find_cautions(calibrated([100, 100, 100]), blurred)
    assert "classes 0 and 2 look" in text
    assert find_cautions(calibrated([100, 100, 100]), np.zeros((0, 3))) == ()


@pytest.mark.parametrize("method", ["CC", "PACC", "MLLS", "auto"])
def test_every_estimate_carries_them(population, method):
    rng = np.random.default_rng(0)
    three = population(3, 1.5)
    for counts, sound in (([100] * 3, True), ([100, 90, 12], False)):
        estimate = (
            quantifier(method).fit(three.draw(counts, rng)).estimate(three.window([0.5, 0.3, 0.2], 300, rng))
        )
        assert (estimate.cautions == ()) == sound
        again = PrevalenceEstimate.from_document(json.loads(json.dumps(estimate.to_document())))
        assert again == estimate


def test_an_estimate_from_before_there_were_cautions_has_none(population):
    rng = np.random.default_rng(0)
    three = population(3, 1.5)
    document = (
        quantifier("PACC").fit(three.draw([50] * 3, rng)).estimate(three.window([0.5, 0.3, 0.2], 300, rng))
    )
    old = document.to_document()
    del old["cautions"]
    assert PrevalenceEstimate.from_document(old).cautions == ()
    for wrong in ("text", [1], None):
        with pytest.raises(InvalidInputError) as caught:
            PrevalenceEstimate.from_document({**old, "cautions": wrong})
        assert caught.value.field == "cautions"
