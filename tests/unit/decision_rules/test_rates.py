"""Metrics of one class against the rest, against lifelong_core.metrics and scikit-learn."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from lifelong_core import metrics
from lifelong_core.decision_rules.operating_points import METRICS, metric_of
from lifelong_core.deploy import OptimisedMetric, TargetValue
from lifelong_core.values.errors import InvalidInputError

RULES = [
    *(TargetValue(metric, 0.5) for metric in ("TPR", "TNR", "PPV", "NPV", "PPR")),
    OptimisedMetric("MCC"),
    OptimisedMetric("AC"),
    OptimisedMetric("BA"),
    *(OptimisedMetric("F_beta", beta=beta) for beta in (0.5, 1, 2)),
]
Y = np.array([0, 0, 1, 1])
DECIDED = np.array([0, 1, 0, 1])


def of_ours(rule: Any, counts: np.ndarray) -> float:
    confusion = counts.reshape(2, 2)
    one = {
        "TPR": lambda: metrics.sensitivity(confusion)[1],
        "TNR": lambda: metrics.specificity(confusion)[1],
        "PPV": lambda: metrics.precision(confusion)[1],
        "NPV": lambda: metrics.negative_predictive_value(confusion)[1],
        "PPR": lambda: confusion[:, 1].sum() / confusion.sum(),
        "MCC": lambda: metrics.matthews_correlation(confusion),
        "F_beta": lambda: metrics.f_beta(confusion, beta=rule.beta)[1],
        "AC": lambda: metrics.accuracy(confusion),
        "BA": lambda: metrics.balanced_accuracy(confusion),
    }
    return float(one[rule.metric]())


def of_sklearn(rule: Any, counts: np.ndarray) -> float:
    given = {"sample_weight": counts.astype(float), "zero_division": np.nan}
    one = {
        "TPR": lambda: sklearn_metrics.recall_score(Y, DECIDED, **given),
        "TNR": lambda: sklearn_metrics.recall_score(Y, DECIDED, pos_label=0, **given),
        "PPV": lambda: sklearn_metrics.precision_score(Y, DECIDED, **given),
        "NPV": lambda: sklearn_metrics.precision_score(Y, DECIDED, pos_label=0, **given),
        "PPR": lambda: np.average(DECIDED, weights=counts),
        "MCC": lambda: sklearn_metrics.matthews_corrcoef(Y, DECIDED, sample_weight=counts),
        "F_beta": lambda: sklearn_metrics.fbeta_score(Y, DECIDED, beta=rule.beta, **given),
        "AC": lambda: sklearn_metrics.accuracy_score(Y, DECIDED, sample_weight=counts),
        "BA": lambda: sklearn_metrics.balanced_accuracy_score(Y, DECIDED, sample_weight=counts),
    }
    return float(one[rule.metric]())


def here(rule: Any, counts: np.ndarray) -> float:
    _, fp, fn, tp = counts / counts.sum()
    return float(metric_of(rule)(np.array(tp), np.array(fp), np.array(tp + fn)))


@given(counts=st.lists(st.integers(1, 500), min_size=4, max_size=4))
def test_values_are_those_of_the_metrics(counts: list[int]):
    numbers = np.array(counts)
    for rule in RULES:
        assert here(rule, numbers) == pytest.approx(of_ours(rule, numbers), abs=1e-9), rule


@pytest.mark.parametrize("counts", [[40, 10, 3, 17], [1, 500, 250, 2]])
def test_values_are_those_of_scikit_learn(counts: list[int]):
    for rule in RULES:
        numbers = np.array(counts)
        assert here(rule, numbers) == pytest.approx(of_sklearn(rule, numbers), abs=1e-9), rule


@pytest.mark.parametrize(
    ("rule", "counts"),
    [
        (TargetValue("TPR", 0.5), [5, 5, 0, 0]),
        (TargetValue("TNR", 0.5), [0, 0, 5, 5]),
        (TargetValue("PPV", 0.5), [5, 0, 5, 0]),
        (TargetValue("NPV", 0.5), [0, 5, 0, 5]),
        (OptimisedMetric("F_beta"), [5, 0, 0, 0]),
        (OptimisedMetric("MCC"), [5, 0, 5, 0]),
    ],
)
def test_an_undefined_value_is_not_a_number(rule: Any, counts: list[int]):
    assert np.isnan(here(rule, np.array(counts)))


@pytest.mark.parametrize("positive", [0, 1])
def test_the_metric_of_the_best_expected_cost_is_minus_the_cost(positive: int):
    costs = np.array([[-0.5, 1.0], [20.0, 0.25]])
    confusion = np.array([[40, 10], [3, 17]])
    own, shares = confusion[positive], confusion / confusion.sum()
    tp, fp = shares[positive, positive], shares[1 - positive, positive]
    metric = metric_of(OptimisedMetric("EC", positive_class=positive), costs)
    found = float(metric(np.array(tp), np.array(fp), np.array(own.sum() / confusion.sum())))
    assert found == pytest.approx(-metrics.expected_cost(confusion, costs=costs))
    with pytest.raises(InvalidInputError):
        metric_of(OptimisedMetric("EC"))


def test_values_broadcast_together():
    tp, fp, share = np.full((3, 1), 0.1), np.full((1, 4), 0.05), np.array(0.3)
    for metric in METRICS.values():
        assert np.broadcast_to(metric(tp, fp, share), (3, 4)).shape == (3, 4)


def test_a_complex_step_gives_the_derivatives():
    point, step = np.array([0.22, 0.08, 0.3]), 1e-7
    for rule, move in product(RULES, np.eye(3)):
        exact = np.imag(metric_of(rule)(*(point + 1e-20j * move))) / 1e-20
        ends = (float(metric_of(rule)(*(point + sign * step * move))) for sign in (1, -1))
        numeric = (next(ends) - next(ends)) / (2 * step)
        assert exact == pytest.approx(numeric, abs=1e-6), rule
