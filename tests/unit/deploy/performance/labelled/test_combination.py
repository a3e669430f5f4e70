import numpy as np
import pytest

from lifelong_core.deploy.performance.estimate import EstimatedMetric
from lifelong_core.deploy.performance.labelled.combination import combined_with
from lifelong_core.deploy.performance.labelled.estimate import LabelledEstimate, MetricSpread


def labelled(value=0.8, labels=0.03**2, window=0.01**2):
    return LabelledEstimate(
        method="difference",
        estimates={"AC": EstimatedMetric(value, value - 0.06, value + 0.06)},
        spreads={"AC": MetricSpread(labels, window, 1e6)},
        bounds={"AC": (0.0, 1.0)},
        confusion_matrix=np.array([[0.4, 0.1], [0.1, 0.4]]),
        confidence=0.95,
        target="population",
        samples=2000,
        labelled=100,
        effective_labelled=80.0,
    )


def label_free(value, error):
    return {"AC": EstimatedMetric(value, value - 1.959964 * error, value + 1.959964 * error)}


def test_agreeing_estimates_are_weighted_by_their_own_variances():
    # Beside the window's variance and with the doubt, as certain as the labels.
    error = np.hypot(0.03 / np.sqrt(2), 0.01)
    found = combined_with(labelled(0.8), label_free(0.82, error), assumption_rejected=False)
    value, low, high = found.estimates["AC"]
    assert found.method == "combined"
    assert value == pytest.approx(0.81)
    assert found.spreads["AC"].labels == pytest.approx(0.03**2 / 2)
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(0.03**2 / 2 + 0.01**2), rel=0.02)


def test_a_rejected_assumption_leaves_the_label_free_estimate_out():
    found = combined_with(labelled(), label_free(0.82, 0.01), assumption_rejected=True)
    assert found.estimates == labelled().estimates
    assert "left out" in found.cautions[-1]


def test_a_contradicted_label_free_estimate_loses_its_weight():
    found = combined_with(labelled(0.8), label_free(0.95, 0.015), assumption_rejected=False)
    assert found.estimates["AC"].value < 0.81
    assert found.estimates["AC"].low < 0.8 < found.estimates["AC"].high


def test_metrics_without_label_free_value_stay_as_they_are():
    for others in ({}, {"AC": EstimatedMetric(float("nan"), float("nan"), float("nan"))}):
        assert combined_with(labelled(), others, assumption_rejected=False).estimates == labelled().estimates
