"""Eqs. 1 to 6 of Li et al. 2022, written down again sample by sample, as references of the methods."""

from decimal import Decimal, localcontext
from math import exp, inf, log

import numpy as np
import pytest
from scipy import optimize

from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.performance.confidence.registry import CONFIDENCE_METHODS

CLASSES, SAMPLES = 3, 80


def calibration(seed, *, confidence=3.0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(CLASSES, size=SAMPLES, p=[0.6, 0.3, 0.1])
    logits = 1.5 * np.eye(CLASSES)[labels] + rng.normal(size=(SAMPLES, CLASSES)) + [0.7, 0.3, 0]
    return LabeledLogits(confidence * logits, labels)


def softmax(row, temperature=1.0):
    parts = [exp((value - max(row)) / temperature) for value in row]
    return [part / sum(parts) for part in parts]


def predicted(row):
    return max(range(len(row)), key=lambda j: (row[j], -j))


def rows_of(data, one=None):
    """Rows and labels, of one predicted class (indicator 1_ij) or of all."""
    pairs = zip(data.logits.astype(float).tolist(), data.labels.tolist(), strict=True)
    return [(row, label) for row, label in pairs if one is None or predicted(row) == one]


def accuracy(pairs):
    return sum(predicted(row) == label for row, label in pairs) / len(pairs)


def temperature_objective(pairs, temperature):
    """Eqs. 1 and 2."""
    return abs(sum(max(softmax(row, temperature)) for row, _ in pairs) / len(pairs) - accuracy(pairs))


def doubt(row, temperature):
    """1 - max_j p_j, because small temperatures make the confidence itself 1 in float64."""
    with localcontext(prec=50):
        parts = [((Decimal(value) - Decimal(max(row))) / Decimal(temperature)).exp() for value in row]
        rest = sum(sorted(parts)[:-1]) / sum(parts)
    with localcontext(prec=40):  # equal confidences are equal
        return +rest


def threshold_objective(doubts, threshold, target):
    """Eqs. 5 and 6: confidence above a threshold is doubt below one."""
    return abs(sum(one < threshold for one in doubts) / len(doubts) - target)


def parts(name, data):
    """(class or None, its samples): what each parameter is fitted to."""
    return [(one, rows_of(data, one)) for one in (range(CLASSES) if name.startswith("CS") else [None])]


seeds = pytest.mark.parametrize("seed", range(4))


@seeds
@pytest.mark.parametrize("name", ["TS", "CS-TS"])
def test_no_other_temperature_is_better(name, seed):
    data = calibration(seed)
    method = CONFIDENCE_METHODS[name].fit(data)
    for one, pairs in parts(name, data):
        fitted = temperature_objective(pairs, method.temperatures[one or 0])
        best = min(temperature_objective(pairs, exp(power / 20)) for power in range(-120, 240))
        assert fitted <= best + 1e-9


@seeds
@pytest.mark.parametrize("name", ["TS", "CS-TS"])
def test_temperatures_divide_the_logits_by_predicted_class(name, seed):
    method, window = CONFIDENCE_METHODS[name].fit(calibration(seed)), calibration(seed + 100)
    expected = [softmax(row, method.temperatures[predicted(row)]) for row, _ in rows_of(window)]
    assert method.class_probabilities(window.logits) == pytest.approx(np.array(expected), abs=1e-12)
    if name == "TS":
        assert np.ptp(method.temperatures) == 0


@pytest.mark.parametrize(
    ("logits", "labels", "confidence"),
    [
        ([[2.0, 0, 0], [1.0, 0, 0]], [0, 0], 1.0),  # accuracy 1
        ([[2.0, 0, 0], [1.0, 0, 0]], [1, 2], 1 / 3),  # accuracy 0, below 1/C
        ([[2.0, 0, 0], [1.0, 0, 0], [3.0, 1, 0], [1.0, 0, 0]], [0, 1, 2, 1], 1 / 3),  # 1/4
        ([[2.0, 2, 0], [1.0, 1, 0]], [0, 0], 0.5),  # accuracy 1, but two largest logits each
    ],
)
def test_an_accuracy_out_of_reach_is_approached_as_far_as_possible(logits, labels, confidence):
    data = LabeledLogits(logits, labels)
    found = CONFIDENCE_METHODS["TS"].fit(data).class_probabilities(data.logits)
    assert found.max(axis=1) == pytest.approx(np.full(len(labels), confidence), abs=1e-5)


@seeds
@pytest.mark.parametrize("name", ["DoC", "CS-DoC"])
def test_differences_move_from_the_predicted_class_to_the_others(name, seed):
    data, window = calibration(seed), calibration(seed + 100)
    difference = {}
    for one, pairs in parts(name, data):
        mean = sum(max(softmax(row)) for row, _ in pairs) / len(pairs)
        difference[one] = mean - accuracy(pairs)
    expected = []
    for row, _ in rows_of(window):
        d = difference[predicted(row) if name.startswith("CS") else None]
        expected.append(
            [p - d if j == predicted(row) else p + d / (CLASSES - 1) for j, p in enumerate(softmax(row))]
        )
    found = CONFIDENCE_METHODS[name].fit(data).class_probabilities(window.logits)
    assert found == pytest.approx(np.array(expected), abs=1e-9)


@seeds
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("name", ["ATC", "CS-ATC", "TS-ATC", "CS-TS-ATC"])
def test_no_other_threshold_is_better(name, seed, whole):
    data = calibration(seed, confidence=1.0)
    if whole:  # many ties
        data = LabeledLogits(np.round(data.logits), data.labels)
    method = CONFIDENCE_METHODS[name].fit(data)
    for one, pairs in parts(name, data):
        temperature = method.temperatures[one or 0]
        doubts, target = [doubt(row, temperature) for row, _ in pairs], accuracy(pairs)
        best = min(threshold_objective(doubts, t, target) for t in [*doubts, 1])
        threshold = 1 / (1 + Decimal(method.thresholds[one or 0]).exp())
        found = threshold_objective(doubts, threshold, target)
        assert found == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(
    ("logits", "labels", "threshold"),
    [
        ([[3.0, 0], [2, 0], [1, 0]], [0, 1, 1], 2.5),  # in the middle
        ([[3.0, 0], [1, 0], [1, 0]], [0, 0, 1], 2),  # shares 1/3 and 1 are equally near 2/3: the smaller
        ([[3.0, 0], [1, 0]], [1, 1], inf),  # none is right
        ([[3.0, 0], [1, 0]], [0, 0], 0.5),  # all are right: between the smallest and the smallest possible
        ([[3.0, 0], [0, 0]], [0, 0], -inf),  # all are right, and no smaller confidence is possible
    ],
)
def test_the_threshold_lies_in_the_middle_of_its_interval(logits, labels, threshold):
    found = CONFIDENCE_METHODS["ATC"].fit(LabeledLogits(logits, labels))
    assert found.thresholds.tolist() == [threshold, threshold]


@seeds
@pytest.mark.parametrize("name", ["ATC", "CS-ATC", "TS-ATC", "CS-TS-ATC"])
def test_predictions_above_the_threshold_are_right_and_others_go_to_the_other_classes(name, seed):
    method, window = CONFIDENCE_METHODS[name].fit(calibration(seed)), calibration(seed + 100)
    expected = []
    for row, _ in rows_of(window):
        mine = predicted(row)
        p = softmax(row, method.temperatures[mine])
        rest = [0 if j == mine else p[j] / (sum(p) - p[mine]) for j in range(CLASSES)]
        right = log(p[mine] / (1 - p[mine])) > method.thresholds[mine]
        expected.append([float(j == mine) for j in range(CLASSES)] if right else rest)
    assert 0 < sum(max(row) == 1 for row in expected) < len(expected)
    assert method.class_probabilities(window.logits) == pytest.approx(np.array(expected), abs=1e-9)


def test_a_confidence_equal_to_the_threshold_is_not_above_it():
    method = CONFIDENCE_METHODS["ATC"].fit(LabeledLogits([[3.0, 0], [2, 0]], [0, 1]))
    assert method.class_probabilities([[2.5, 0], [2.75, 0]]).tolist() == [[0, 1], [1, 0]]


def test_saturated_confidences_are_still_told_apart():
    """In float64, both confidences are 1."""
    method = CONFIDENCE_METHODS["ATC"].fit(LabeledLogits([[900.0, 0], [100, 0]], [0, 1]))
    assert method.class_probabilities([[600.0, 0], [400, 0]]).tolist() == [[1, 0], [0, 1]]


def normalised(row, counts, exponent):
    """Pan et al. 2021."""
    weighted = [p / count**exponent for p, count in zip(softmax(row), counts, strict=True)]
    return [value / sum(weighted) for value in weighted]


@seeds
def test_norcal_takes_the_smallest_exponent_that_matches(seed):
    data, window = calibration(seed), calibration(seed + 100)
    pairs, counts = rows_of(data), data.counts.tolist()

    def excess(exponent):
        own = [normalised(row, counts, exponent)[predicted(row)] for row, _ in pairs]
        return sum(own) / len(own) - accuracy(pairs)

    method = CONFIDENCE_METHODS["NORCAL"].fit(data)
    signs = [excess(step / 20) > 0 for step in range(81)]
    first = signs.index(not signs[0]) / 20  # it is reached
    assert first - 0.05 <= method.exponent <= first
    assert excess(method.exponent) == pytest.approx(0, abs=1e-9)
    expected = [normalised(row, counts, method.exponent) for row, _ in rows_of(window)]
    assert method.class_probabilities(window.logits) == pytest.approx(np.array(expected), abs=1e-12)


def test_norcal_of_an_under_confident_network_comes_as_near_as_it_can():
    data = calibration(0, confidence=0.2)
    pairs, counts = rows_of(data), data.counts.tolist()

    def objective(exponent):
        own = [normalised(row, counts, exponent)[predicted(row)] for row, _ in pairs]
        return abs(sum(own) / len(own) - accuracy(pairs))

    fitted = CONFIDENCE_METHODS["NORCAL"].fit(data).exponent
    assert objective(fitted) <= min(objective(step / 50) for step in range(201)) + 1e-9


def test_norcal_needs_no_sample_of_a_class_and_no_imbalance():
    absent = LabeledLogits([[2.0, 0, 0], [1, 0, 0], [0, 1, 0]], [0, 0, 1])
    assert CONFIDENCE_METHODS["NORCAL"].fit(absent).log_counts.tolist() == [log(2), 0, 0]
    logits = np.random.default_rng(0).normal(size=(60, 3))
    balanced = LabeledLogits(logits, np.repeat([0, 1, 2], 20))
    assert CONFIDENCE_METHODS["NORCAL"].fit(balanced).exponent == 0


@seeds
def test_vector_scaling_has_the_smallest_cross_entropy(seed):
    data = calibration(seed)
    logits = data.logits.astype(float) - data.logits.astype(float).mean(axis=1, keepdims=True)

    def cross_entropy(parameters):
        scores = logits * np.exp(parameters[:CLASSES]) + parameters[CLASSES:]
        own = scores[np.arange(SAMPLES), data.labels]
        return float((np.log(np.exp(scores).sum(axis=1)) - own).mean())

    best = min(
        optimize.minimize(cross_entropy, start, method="BFGS").fun
        for start in np.random.default_rng(seed).normal(size=(5, 2 * CLASSES)) / 2
    )
    probabilities = CONFIDENCE_METHODS["VS"].fit(data).class_probabilities(data.logits)
    found = -np.log(probabilities[np.arange(SAMPLES), data.labels]).mean()
    assert found == pytest.approx(best, abs=1e-6)
