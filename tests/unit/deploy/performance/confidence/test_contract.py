"""The contract of every confidence method."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.performance.confidence.registry import CONFIDENCE_METHODS, COUNTERPARTS
from lifelong_core.values.errors import InvalidInputError
from tests.unit.costly import costly

CLASS_SPECIFIC = list(COUNTERPARTS)
MATCHING = ["TS", "DoC", "CS-TS", "CS-DoC"]
"""methods whose mean confidence on the calibration set is the accuracy wherever that lies between 1/C and 1"""
SCALING = ["TS", "VS", "CS-TS", "TS-ATC", "CS-TS-ATC"]
"""methods that fit a temperature"""

every_method = pytest.mark.parametrize("name", CONFIDENCE_METHODS)
tasks = given(
    seed=st.integers(0, 10_000),
    classes=st.sampled_from([2, 3, 5]),
    samples=st.integers(1, 60),
    scale=st.sampled_from([1e-3, 1.0, 1e4]),
    whole=st.booleans(),
)


def draw(classes, samples, *, seed=0, scale=1.0, whole=False):
    """Labelled logits of a decent network; whole numbers have many ties."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=samples)
    logits = 2 * np.eye(classes)[labels] + 1.5 * rng.normal(size=(samples, classes))
    return LabeledLogits(scale * (np.round(logits) if whole else logits), labels)


def fit(name, calibration):
    return CONFIDENCE_METHODS[name].fit(calibration)


def accuracy(data):
    return (data.logits.argmax(axis=1) == data.labels).mean()


def estimated_accuracy(method, logits):
    predicted = np.asarray(logits).argmax(axis=1)
    return method.class_probabilities(logits)[np.arange(len(predicted)), predicted].mean()


def test_the_methods_are_those_of_table_1():
    assert list(CONFIDENCE_METHODS) == [
        "AC", "TS", "VS", "NORCAL", "CS-TS", "DoC", "CS-DoC", "ATC", "CS-ATC", "TS-ATC", "CS-TS-ATC",
    ]  # fmt: skip
    assert dict(COUNTERPARTS) == {
        "CS-TS": "TS",
        "CS-DoC": "DoC",
        "CS-ATC": "ATC",
        "CS-TS-ATC": "TS-ATC",
    }
    assert len({kind.assumption for kind in CONFIDENCE_METHODS.values()}) == len(CONFIDENCE_METHODS)


@every_method
@tasks
def test_rows_sum_to_one(name, seed, classes, samples, scale, whole):
    method = fit(name, draw(classes, samples, seed=seed, scale=scale, whole=whole))
    window = draw(classes, 40, seed=seed + 1, scale=scale, whole=whole).logits
    probabilities = method.class_probabilities(window)
    assert probabilities.shape == (40, classes)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(40), abs=1e-9)
    if not name.endswith("DoC"):
        assert probabilities.min() >= 0


@every_method
def test_an_empty_window_has_no_rows(name):
    assert fit(name, draw(3, 20)).class_probabilities(np.zeros((0, 3))).shape == (0, 3)


@every_method
def test_each_row_by_itself_has_the_same_probabilities(name):
    method, window = fit(name, draw(4, 50)), draw(4, 20, seed=1).logits
    together = method.class_probabilities(window)
    alone = np.vstack([method.class_probabilities(row[np.newaxis]) for row in window])
    assert alone == pytest.approx(together, abs=1e-12)


@every_method
@costly
@given(seed=st.integers(0, 10_000), whole=st.booleans())
def test_the_order_of_the_samples_does_not_matter(name, seed, whole):
    data, window = draw(4, 70, seed=seed, whole=whole), draw(4, 20, seed=seed + 1).logits
    order = np.random.default_rng(seed).permutation(70)
    one = fit(name, data).class_probabilities(window)
    assert fit(name, data.select(order)).class_probabilities(window) == pytest.approx(one, abs=1e-6)


@every_method
@costly
@given(seed=st.integers(0, 10_000))
def test_permuting_the_classes_permutes_the_columns(name, seed):
    data, window = draw(4, 70, seed=seed), draw(4, 20, seed=seed + 1).logits
    order = np.random.default_rng(seed).permutation(4)
    renamed = LabeledLogits(data.logits[:, order], np.argsort(order)[data.labels])
    one, other = fit(name, data), fit(name, renamed)
    expected = one.class_probabilities(window)[:, order]
    assert other.class_probabilities(window[:, order]) == pytest.approx(expected, abs=1e-6)
    assert set(order[list(other.fallback_classes)]) == set(one.fallback_classes)


@every_method
@costly
@given(seed=st.integers(0, 10_000))
def test_a_constant_added_to_a_row_changes_nothing(name, seed):
    data, window = draw(3, 60, seed=seed), draw(3, 20, seed=seed + 1).logits
    # Multiples of a power of two, so that float32 holds the sum exactly.
    rounded, constants = np.round(window * 2**10) / 2**10, np.arange(20)[:, np.newaxis] - 10.0
    method = fit(name, data)
    expected = method.class_probabilities(rounded)
    assert method.class_probabilities(rounded + constants) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", SCALING)
@costly
@given(seed=st.integers(0, 10_000), power=st.integers(-20, 20))
def test_a_fitted_temperature_makes_the_scale_of_the_logits_irrelevant(name, seed, power):
    data, window = draw(3, 80, seed=seed), draw(3, 20, seed=seed + 1).logits
    scaled = LabeledLogits(data.logits * np.float32(2.0**power), data.labels)
    expected = fit(name, data).class_probabilities(window)
    found = fit(name, scaled).class_probabilities(window * np.float32(2.0**power))
    assert found == pytest.approx(expected, abs=1e-6)


@every_method
def test_logits_in_single_and_double_precision_give_the_same(name):
    data, window = draw(4, 60), draw(4, 20, seed=1).logits
    method = fit(name, LabeledLogits(data.logits.astype(np.float64), data.labels))
    assert method == fit(name, data)
    expected = method.class_probabilities(window)
    assert method.class_probabilities(window.astype(np.float64)).tolist() == expected.tolist()


@every_method
@pytest.mark.parametrize("logits", [np.zeros((3, 2)), np.zeros(4), [[0.0, np.nan, 1.0, 2.0]]])
def test_other_logits_are_refused(name, logits):
    with pytest.raises(InvalidInputError, match="logits"):
        fit(name, draw(4, 60)).class_probabilities(logits)


@every_method
def test_equal_calibration_sets_give_equal_methods(name):
    assert fit(name, draw(4, 60)) == fit(name, draw(4, 60))
    if name != "AC":
        assert fit(name, draw(4, 60)) != fit(name, draw(4, 60, seed=1))


@every_method
def test_a_single_calibration_sample_is_enough(name):
    for label in (0, 1):
        method = fit(name, LabeledLogits([[2.0, 0.5, -1.0]], [label]))
        assert method.class_probabilities(draw(3, 10).logits).sum(axis=1) == pytest.approx(np.ones(10))


@every_method
@pytest.mark.parametrize("correct", [True, False])
def test_a_calibration_set_of_one_class(name, correct):
    """Predictions of class 0 on samples of one class are all right, or all wrong."""
    logits = draw(3, 30).logits - [0, 50, 50]
    method = fit(name, LabeledLogits(logits, np.full(30, 0 if correct else 2)))
    assert method.fallback_classes == ((1, 2) if name in CLASS_SPECIFIC else ())
    if name not in ("AC", "TS", "CS-TS", "NORCAL"):
        assert estimated_accuracy(method, logits) == pytest.approx(float(correct), abs=1e-6)
    elif name != "NORCAL":  # no temperature makes a confidence smaller than 1/3
        reached = 1.0 if correct or name == "AC" else 1 / 3
        assert estimated_accuracy(method, logits) == pytest.approx(reached, abs=1e-4)


@pytest.mark.parametrize("name", CLASS_SPECIFIC)
def test_a_class_that_is_never_predicted_has_the_parameters_of_all_predictions(name):
    data = draw(4, 200)
    without = data.select(data.logits.argmax(axis=1) != 2)
    specific, agnostic = fit(name, without), fit(COUNTERPARTS[name], without)
    assert specific.fallback_classes == (2,)
    assert agnostic.fallback_classes == ()
    assert specific.parameters.values[2].tolist() == agnostic.parameters.values[2].tolist()
    rows = data.logits[data.logits.argmax(axis=1) == 2]
    expected = agnostic.class_probabilities(rows)
    assert specific.class_probabilities(rows).tolist() == expected.tolist()
    assert fit(name, data).fallback_classes == ()


@pytest.mark.parametrize("name", CLASS_SPECIFIC)
def test_a_class_specific_method_is_the_agnostic_one_on_each_predicted_class(name):
    data, window = draw(3, 150), draw(3, 60, seed=1).logits
    specific = fit(name, data).class_probabilities(window)
    for one in range(3):
        mine = window.argmax(axis=1) == one
        agnostic = fit(COUNTERPARTS[name], data.select(data.logits.argmax(axis=1) == one))
        if "TS" not in name:
            assert specific[mine].tolist() == agnostic.class_probabilities(window[mine]).tolist()
        else:  # the root is searched within another range
            expected = agnostic.class_probabilities(window[mine])
            assert specific[mine] == pytest.approx(expected, abs=1e-6)


@every_method
def test_equal_logits_in_every_row(name):
    """Every confidence is 1/2; the first class is predicted, and half of the predictions are right."""
    data = LabeledLogits(np.zeros((4, 2)), [0, 1, 1, 0])
    method = fit(name, data)
    probabilities = method.class_probabilities(np.zeros((3, 2)))
    if "ATC" in name:  # one threshold judges all alike; the smaller of two equally good shares counts
        assert probabilities[:, 0].tolist() == [0, 0, 0]
    else:
        assert probabilities[:, 0] == pytest.approx([0.5, 0.5, 0.5])


@pytest.mark.parametrize("name", MATCHING)
@costly
@given(seed=st.integers(0, 10_000))
def test_the_accuracy_of_the_calibration_set_itself_is_matched(name, seed):
    labels = np.random.default_rng(seed).choice(3, size=300, p=[0.5, 0.3, 0.2])
    noise = np.random.default_rng(seed + 1).normal(size=(300, 3))
    data = LabeledLogits(3 * (1.5 * np.eye(3)[labels] + noise + [0.5, 0, 0]), labels)
    assert estimated_accuracy(fit(name, data), data.logits) == pytest.approx(accuracy(data), abs=1e-9)


@pytest.mark.parametrize("name", ["ATC", "TS-ATC", "CS-ATC", "CS-TS-ATC"])
@costly
@given(seed=st.integers(0, 10_000))
def test_without_ties_as_many_predictions_are_judged_right_as_are(name, seed):
    data = draw(3, 200, seed=seed)
    method, predicted = fit(name, data), data.logits.argmax(axis=1)
    judged = method.class_probabilities(data.logits)[np.arange(200), predicted]
    assert judged.sum() == (predicted == data.labels).sum()
    if name in CLASS_SPECIFIC:
        correct = (predicted == data.labels).astype(float)
        assert (
            np.bincount(predicted, judged).tolist()
            == np.bincount(predicted, correct, minlength=predicted.max() + 1).tolist()
        )


@every_method
def test_a_calibrated_network_keeps_its_accuracy(name):
    """Labels are drawn from the softmax: every method finds the accuracy of another window of the population."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(40_000, 3)) * 2 + [1, 0, -1]
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (rng.random((40_000, 1)) > probabilities.cumsum(axis=1)).sum(axis=1)
    data = LabeledLogits(logits, labels)
    calibration, window = data.select(np.arange(20_000)), data.select(np.arange(20_000, 40_000))
    found = estimated_accuracy(fit(name, calibration), window.logits)
    assert found == pytest.approx(accuracy(window), abs=0.012)
