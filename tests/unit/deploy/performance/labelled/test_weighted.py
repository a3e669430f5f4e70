import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy.performance.labelled.weighted import weighted_estimate
from lifelong_core.metrics import confusion_matrix
from lifelong_core.metrics.catalogue import counting_metric
from lifelong_core.values.errors import InvalidInputError

COSTS = [[0, 1, 2], [4, 0, 1], [2, 1, 0]]


def samples(rng, size):
    labels = rng.choice(3, size=size, p=[0.6, 0.3, 0.1])
    wrong = rng.random(size) < 0.2
    return labels, np.where(wrong, rng.integers(3, size=size), labels)


def test_values_are_those_of_the_confusion_matrix():
    labels, decisions = samples(np.random.default_rng(0), 300)
    found = weighted_estimate(decisions, labels, classes=3, costs=COSTS, metrics=("AC", "EC", "MCC", "TPR"))
    counts = confusion_matrix(labels, decisions, classes=3)
    for name in ("AC", "EC", "MCC"):
        right = counting_metric(name, costs=COSTS if name == "EC" else None)(counts)
        assert found.estimates[name].value == pytest.approx(float(right))
    recalls = counting_metric("TPR")(counts)
    assert [found.estimates[f"TPR[{k}]"].value for k in range(3)] == pytest.approx(recalls)


def test_the_interval_of_the_accuracy_is_that_of_wilson():
    labels, decisions = np.zeros(101, int), np.array([0] * 90 + [1] * 11)
    found = weighted_estimate(decisions, labels, classes=2).estimates["AC"]
    n, p, t = 100, 90 / 101, 1.983972  # the variance with n - 1, the t quantile with 100 degrees of freedom
    half = t * np.sqrt(p * (1 - p) / n + t**2 / (4 * n**2)) / (1 + t**2 / n)
    centre = (p + t**2 / (2 * n)) / (1 + t**2 / n)
    assert found[1:] == pytest.approx((centre - half, centre + half), abs=1e-5)


def test_weights_undo_a_known_selection():
    rng = np.random.default_rng(1)
    labels, decisions = samples(rng, 40_000)
    chances = np.where(decisions == labels, 0.1, 0.5)
    chosen = rng.random(labels.size) < chances
    found = weighted_estimate(
        decisions[chosen], labels[chosen], classes=3, propensities=chances[chosen]
    ).estimates["AC"]
    assert found.low < (decisions == labels).mean() < found.high
    fair = weighted_estimate(decisions[chosen], labels[chosen], classes=3).estimates["AC"]
    assert fair.high < (decisions == labels).mean()


@pytest.mark.parametrize("grouped", [False, True])
def test_intervals_cover_the_population(grouped):
    rng = np.random.default_rng(2)
    covered = []
    for _ in range(200):
        size = 40 if grouped else 80
        labels, decisions = samples(rng, size)
        groups = None
        if grouped:
            labels, decisions = labels.repeat(3), decisions.repeat(3)
            groups = np.arange(size).repeat(3)
        found = weighted_estimate(decisions, labels, classes=3, costs=COSTS, groups=groups).estimates
        truth = {"AC": 0.8 + 0.2 / 3, "EC": 0.2 / 3 * (0.6 * 3 + 0.3 * 5 + 0.1 * 3)}
        covered += [low <= truth[name] <= high for name, (_, low, high) in found.items()]
    assert np.mean(covered) >= 0.92


def test_labels_without_an_error_do_not_prove_a_perfect_classifier():
    labels = np.arange(50) % 2
    low = weighted_estimate(labels, labels, classes=2).estimates["AC"].low
    assert 0.9 < low < 0.97  # Clopper and Pearson: 0.929


def test_wrong_labels_widen_the_interval_to_what_they_can_hide():
    """A brute-force search over all ways to correct 2 of 20 labels finds no value outside the moved bounds."""
    labels = np.array([0] * 10 + [1] * 10)
    decisions = np.array([0] * 8 + [1] * 2 + [1] * 9 + [0])
    plain = weighted_estimate(
        decisions, labels, classes=2, metrics=("AC", "TPR", "EC"), costs=[[0, 1], [5, 0]]
    )
    wide = weighted_estimate(
        decisions, labels, classes=2, metrics=("AC", "TPR", "EC"), costs=[[0, 1], [5, 0]], error_rates=0.1
    )
    for name in ("AC", "TPR", "EC"):
        values = []
        for first in range(20):
            corrected = labels.copy()
            corrected[first] = 1 - corrected[first]
            one = weighted_estimate(decisions, corrected, classes=2, metrics=(name,), costs=[[0, 1], [5, 0]])
            values.append(one.estimates[name].value)
        reach_down = plain.estimates[name].value - min(values)
        reach_up = max(values) - plain.estimates[name].value
        assert wide.estimates[name].low <= max(0, plain.estimates[name].low - 0.99 * reach_down)
        bound = 5 if name == "EC" else 1
        assert wide.estimates[name].high >= min(bound, plain.estimates[name].high + 0.99 * reach_up)


@given(rate=st.floats(0, 0.5), more=st.floats(0, 0.5))
def test_higher_error_rates_never_narrow_the_interval(rate, more):
    labels, decisions = samples(np.random.default_rng(3), 100)
    low, high = (
        weighted_estimate(decisions, labels, classes=3, costs=COSTS, error_rates=[one, 0, one]).estimates
        for one in sorted((rate, more))
    )
    for name in ("AC", "EC"):
        assert high[name].low <= low[name].low + 1e-12
        assert high[name].high >= low[name].high - 1e-12


@pytest.mark.parametrize("biased", [False, True], ids=["independent errors", "labels repeat wrong decisions"])
def test_intervals_cover_the_truth_behind_wrong_labels(biased):
    rng = np.random.default_rng(4)
    covered = []
    for _ in range(150):
        labels, decisions = samples(rng, 200)
        wrong = rng.random(200) < 0.05
        if biased:
            wrong = (decisions != labels) & (rng.random(200) < 0.05 / (0.2 * 2 / 3))
        given_labels = np.where(wrong, decisions if biased else (labels + 1) % 3, labels)
        found = weighted_estimate(decisions, given_labels, classes=3, error_rates=0.05).estimates["AC"]
        covered.append(found.low <= 0.8 + 0.2 / 3 <= found.high)
    assert np.mean(covered) >= 0.95


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"labels": [], "decisions": []}, "labels"),
        ({"labels": [0, 2]}, "labels"),
        ({"decisions": [0]}, "decisions"),
        ({"propensities": [1, 2]}, "propensities"),
        ({"error_rates": 0.6}, "error_rates"),
        ({"error_rates": [0.1]}, "error_rates"),
        ({"classes": 1}, "classes"),
        ({"groups": [1]}, "groups"),
    ],
)
def test_errors_name_the_field(change, field):
    with pytest.raises(InvalidInputError) as caught:
        weighted_estimate(**{"decisions": [0, 1], "labels": [0, 1], "classes": 2, **change})
    assert caught.value.field == field
