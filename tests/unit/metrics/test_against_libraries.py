"""Metrics against scikit-learn, torchmetrics and netcal: equal values, and values that differ by definition.

Where a metric is undefined, these libraries give 0 or another number: `test_undefined_reasons` has our cases. More
differences of scores: `test_scoring_rules`. MetricsReloaded is not installed here; where it differs is in the reference
file of the golden test.
"""

import importlib
import warnings

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from lifelong_core.develop.evaluation_transforms import declare_missing_operators
from lifelong_core.metrics import compute_metrics, linear_costs, reliability_diagram
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


@pytest.fixture(scope="module")
def torch():
    return importlib.import_module("torch")


@pytest.fixture(scope="module")
def torchmetrics(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it imports warns about optional parts
        declare_missing_operators()  # torchmetrics imports torchvision where it is installed
        return importlib.import_module("torchmetrics.functional.classification")


def test_agrees_with_torchmetrics_in_single_precision(torch, torchmetrics):
    labels = torch.tensor(LABELS)
    options = {"num_classes": CLASSES}
    each = {**options, "average": None}
    decisions, probabilities = torch.tensor(DECISIONS), torch.tensor(PROBABILITIES, dtype=torch.float32)
    theirs = {
        "AC": torchmetrics.multiclass_accuracy(decisions, labels, average="micro", **options),
        "BA": torchmetrics.multiclass_accuracy(decisions, labels, **options),
        "CK": torchmetrics.multiclass_cohen_kappa(decisions, labels, **options),
        "MCC": torchmetrics.multiclass_matthews_corrcoef(decisions, labels, **options),
        "TNR": torchmetrics.multiclass_specificity(decisions, labels, **each),
        "PPV": torchmetrics.multiclass_precision(decisions, labels, **each),
        "JAC": torchmetrics.multiclass_jaccard_index(decisions, labels, **each),
        "AUROC": torchmetrics.multiclass_auroc(probabilities, labels, **each),
        "AP": torchmetrics.multiclass_average_precision(probabilities, labels, **each),
        "ECE": torchmetrics.multiclass_calibration_error(probabilities, labels, n_bins=15, **options),
    }
    for name, expected in theirs.items():
        assert found(name) == pytest.approx(expected.numpy(), abs=1e-5), name


def test_torchmetrics_calls_balanced_accuracy_accuracy(torch, torchmetrics):
    labels, decisions = [0, 0, 0, 1], [0, 0, 0, 0]
    default = torchmetrics.multiclass_accuracy(torch.tensor(decisions), torch.tensor(labels), num_classes=2)
    ours = compute_metrics(["AC", "BA"], labels=labels, decisions=decisions)
    assert ours["AC"] == 0.75
    assert ours["BA"] == float(default) == 0.5


def test_torchmetrics_loses_small_correlations_to_single_precision(torch, torchmetrics):
    labels, decisions = [0] + [1] * 10_001, [1, 0] + [1] * 10_000
    theirs = torchmetrics.multiclass_matthews_corrcoef(
        torch.tensor(decisions), torch.tensor(labels), num_classes=2
    )
    assert float(theirs) == 0
    ours = compute_metrics(["MCC"], labels=labels, decisions=decisions)["MCC"]
    assert ours == pytest.approx(-1e-4, abs=1e-6)


def test_torchmetrics_puts_a_confidence_of_one_in_a_bin_of_its_own(torch, torchmetrics):
    labels, probabilities = [1, 0, 1, 1], [[1.0, 0.0], [0.5, 0.5], [0.2, 0.8], [0.0, 1.0]]
    theirs = torchmetrics.multiclass_calibration_error(
        torch.tensor(probabilities), torch.tensor(labels), num_classes=2, n_bins=2
    )
    assert float(theirs) == pytest.approx(0.425)
    ours = compute_metrics(["ECE"], labels=labels, probabilities=probabilities, bins=2)["ECE"]
    assert ours == pytest.approx(0.075)


def test_torchmetrics_binary_calibration_is_of_the_positive_class(torch, torchmetrics):
    scores = torch.tensor([0.2, 0.8])
    theirs = torchmetrics.binary_calibration_error(scores, torch.tensor([0, 0]), n_bins=10)
    ours = compute_metrics(["ECE", "MCE"], labels=[0, 0], probabilities=[[0.8, 0.2], [0.2, 0.8]], bins=10)
    assert ours["MCE"][1] == pytest.approx(float(theirs)) == pytest.approx(0.5)
    assert ours["ECE"] == pytest.approx(0.3)


@pytest.fixture(scope="module")
def netcal():
    """Only here: it takes seconds to import."""
    return importlib.import_module("netcal.metrics")


@pytest.mark.parametrize("bins", [1, 7, 15])
def test_agrees_with_netcal(netcal, bins):
    assert found("ECE", bins=bins) == pytest.approx(netcal.ECE(bins).measure(PROBABILITIES, LABELS))


def test_netcal_takes_two_classes_for_one(netcal):
    labels, probabilities = simulated(400, classes=2, sharpness=2.0)
    theirs = netcal.ECE(5).measure(probabilities, labels)
    ours = compute_metrics(["ECE", "CWCE"], labels=labels, probabilities=probabilities, bins=5)
    # The scores of the second class are binned, whichever class is the likelier: that is a class-wise error.
    assert theirs == pytest.approx(ours["CWCE"])
    assert theirs != pytest.approx(ours["ECE"], rel=0.01)


def test_what_netcal_calls_mce_is_the_largest_gap_of_any_bin(netcal):
    diagram = reliability_diagram(LABELS, PROBABILITIES, bins=10)
    gaps = np.abs(diagram.confidence - diagram.frequency)
    assert netcal.MCE(10).measure(PROBABILITIES, LABELS) == pytest.approx(np.nanmax(gaps))
    assert found("MCE", bins=10) != pytest.approx(np.nanmax(gaps))  # the marginal error of each class
