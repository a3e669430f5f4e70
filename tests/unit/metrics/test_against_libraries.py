"""Metrics against scikit-learn and netcal: equal values, and values that differ by definition.

Where a metric is undefined, these libraries give 0 or another number: `test_undefined_reasons` has our cases. More
differences of scores: `test_scoring_rules`. MetricsReloaded is not installed here; where it differs is in the reference
file of the golden test.
"""

import importlib

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from lifelong_core.metrics import compute_metrics, linear_costs
from tests.unit.metrics.labelled_cases import simulated

CLASSES = 4
LABELS, PROBABILITIES = simulated(400, classes=CLASSES, sharpness=2.0)
DECISIONS = PROBABILITIES.argmax(axis=1)


def found(name, **parameters):
    return compute_metrics([name], labels=LABELS, probabilities=PROBABILITIES, **parameters)[name]


def test_agrees_with_scikit_learn():
    truth = np.eye(CLASSES, dtype=int)[LABELS]
    both = LABELS, DECISIONS
    precision, recall, f2, _ = sklearn_metrics.precision_recall_fscore_support(*both, beta=2)
    theirs = {
        "AC": sklearn_metrics.accuracy_score(*both),
        "ER": sklearn_metrics.zero_one_loss(*both),
        "BA": sklearn_metrics.balanced_accuracy_score(*both),
        "CK": sklearn_metrics.cohen_kappa_score(*both),
        "MCC": sklearn_metrics.matthews_corrcoef(*both),
        "PPV": precision,
        "TPR": recall,
        "F_beta": f2,
        "JAC": sklearn_metrics.jaccard_score(*both, average=None),
        "AUROC": sklearn_metrics.roc_auc_score(truth, PROBABILITIES, average=None),
        "AP": sklearn_metrics.average_precision_score(truth, PROBABILITIES, average=None),
        "BS": sklearn_metrics.brier_score_loss(LABELS, PROBABILITIES),
        "BSS": sklearn_metrics.d2_brier_score(LABELS, PROBABILITIES),
        "NLL": sklearn_metrics.log_loss(LABELS, PROBABILITIES),
    }
    for name, expected in theirs.items():
        assert found(name, beta=2) == pytest.approx(expected), name
    weighted = sklearn_metrics.cohen_kappa_score(*both, weights="linear")
    assert found("WCK", costs=linear_costs(CLASSES)) == pytest.approx(weighted)
    binary = compute_metrics(["LR+", "LR-"], labels=LABELS == 1, decisions=DECISIONS == 1)
    expected = sklearn_metrics.class_likelihood_ratios(LABELS == 1, DECISIONS == 1)
    assert (binary["LR+"][1], binary["LR-"][1]) == pytest.approx(expected)


def test_values_where_torchmetrics_differs():
    """It calls balanced accuracy accuracy, loses small correlations, and bins a confidence of one apart."""
    ours = compute_metrics(["AC", "BA"], labels=[0, 0, 0, 1], decisions=[0, 0, 0, 0])
    assert (ours["AC"], ours["BA"]) == (0.75, 0.5)
    labels, decisions = [0] + [1] * 10_001, [1, 0] + [1] * 10_000
    assert compute_metrics(["MCC"], labels=labels, decisions=decisions)["MCC"] == pytest.approx(
        -1e-4, abs=1e-6
    )
    probabilities = [[1.0, 0.0], [0.5, 0.5], [0.2, 0.8], [0.0, 1.0]]
    ours = compute_metrics(["ECE"], labels=[1, 0, 1, 1], probabilities=probabilities, bins=2)
    assert ours["ECE"] == pytest.approx(0.075)
    ours = compute_metrics(["ECE", "MCE"], labels=[0, 0], probabilities=[[0.8, 0.2], [0.2, 0.8]], bins=10)
    assert (ours["MCE"][1], ours["ECE"]) == pytest.approx((0.5, 0.3))


@pytest.fixture(scope="module")
def netcal():
    """Only here: it takes seconds to import."""
    return importlib.import_module("netcal.metrics")


@pytest.mark.parametrize("bins", [1, 7, 15])
def test_agrees_with_netcal(netcal, bins):
    assert found("ECE", bins=bins) == pytest.approx(netcal.ECE(bins).measure(PROBABILITIES, LABELS))
