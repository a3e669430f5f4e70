import numpy as np
import pytest

from lifelong_core.deploy.performance.labelled import difference
from lifelong_core.deploy.performance.labelled.calibration_drift import Recalibrated, recalibrate
from lifelong_core.deploy.performance.labelled.difference import combined_with, difference_estimate
from lifelong_core.deploy.performance.labelled.estimate import LabelledEstimate, MetricSpread
from lifelong_core.deploy.performance.labelled.planning import (
    decision_uncertainty,
    draw_sample,
    labelling_probabilities,
)
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.metrics import confusion_matrix
from lifelong_core.metrics.catalogue import counting_metric
from lifelong_core.values.errors import InvalidInputError

COSTS = np.array([[0.0, 1.0, 2.0], [4.0, 0.0, 1.0], [2.0, 1.0, 0.0]])


def window(rng, size=1000, *, temperature=1.0, moved=0.0):
    """Posteriors (right where nothing is changed), decisions and labels."""
    scores = rng.normal(size=(size, 3)) * 2
    labels = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    scores[:, 0] += moved
    posteriors = np.exp(scores / temperature)
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    return posteriors, posteriors.argmax(axis=1), labels


def drawn(rng, posteriors, decisions, size):
    chances = labelling_probabilities(decision_uncertainty(posteriors, decisions, COSTS), size)
    return draw_sample(chances, rng, strata=decisions), chances


def test_with_all_labels_it_is_the_performance_of_the_window():
    posteriors, decisions, labels = window(np.random.default_rng(0), 200)
    found = difference_estimate(
        posteriors,
        decisions,
        np.arange(200),
        labels,
        np.ones(200),
        costs=COSTS,
        metrics=("AC", "EC", "BA", "MCC", "PPV"),
        target="window",
    )
    counts = confusion_matrix(labels, decisions, classes=3)
    assert found.confusion_matrix == pytest.approx(counts / 200)
    for name in ("AC", "EC", "BA", "MCC"):
        right = counting_metric(name, costs=COSTS if name == "EC" else None)(counts)
        assert found.estimates[name] == pytest.approx([float(right)] * 3)
    precisions = [found.estimates[f"PPV[{k}]"].value for k in range(3)]
    assert precisions == pytest.approx(counting_metric("PPV")(counts))


def test_transcription_of_the_difference_estimator(monkeypatch):
    """Value and variance of the window's accuracy against the textbook, with posteriors as they are."""
    monkeypatch.setattr(
        difference, "recalibrate", lambda shares, sample, *_: Recalibrated(shares, shares[sample])
    )
    rng = np.random.default_rng(1)
    posteriors, decisions, labels = window(rng, 300)
    sample, chances = drawn(rng, posteriors, decisions, 150)
    pi = chances[sample]
    found = difference_estimate(posteriors, decisions, sample, labels[sample], pi, target="window")
    predicted = posteriors[np.arange(300), decisions]
    residuals = (labels == decisions)[sample] - predicted[sample]
    mean = (residuals / pi).sum() / (1 / pi).sum()
    assert found.estimates["AC"].value == pytest.approx(predicted.mean() + mean)
    u = (residuals - mean) / pi
    observed = 150 / 146 * ((1 - pi) * u**2).sum() / (1 / pi).sum() ** 2
    expected = ((1 - pi) / pi**2 * predicted[sample] * (1 - predicted[sample])).sum() / (1 / pi).sum() ** 2
    assert found.spreads["AC"].labels == pytest.approx(
        max(observed, 150 / 170 * observed + 20 / 170 * expected)
    )
    assert found.spreads["AC"].window == 0


@pytest.mark.parametrize(
    ("temperature", "moved"), [(1.0, 0.0), (0.4, 0.0), (1.0, 2.0)], ids=["right", "too sure", "moved class"]
)
@pytest.mark.parametrize("target", ["window", "population"])
def test_intervals_cover_under_every_shift_and_are_narrower_than_those_of_labels_alone(
    temperature, moved, target
):
    rng = np.random.default_rng(12)
    many = window(rng, 100_000, temperature=temperature, moved=moved)
    truth = {"AC": (many[1] == many[2]).mean(), "EC": COSTS[many[2], many[1]].mean()}
    covered, ratios = [], []
    for _ in range(80):
        posteriors, decisions, labels = window(rng, 600, temperature=temperature, moved=moved)
        sample, chances = drawn(rng, posteriors, decisions, 100)
        found = difference_estimate(
            posteriors, decisions, sample, labels[sample], chances[sample], costs=COSTS, target=target
        )
        paid = {"AC": decisions == labels, "EC": COSTS[labels, decisions]}
        for name, (_, low, high) in found.estimates.items():
            right = truth[name] if target == "population" else paid[name].mean()
            covered.append(low <= right <= high)
            correction = 1 if target == "population" else 1 - 100 / 600
            alone = 2 * 1.98 * np.sqrt(paid[name].var() / 100 * correction)
            ratios.append((high - low) / alone if name == "EC" else np.nan)  # the samples are drawn for EC
    assert np.mean(covered) >= 0.9
    assert np.nanmean(ratios) < (0.95 if target == "population" else 0.9)


def test_groups_that_are_alike_widen_the_interval_of_the_population_only():
    rng = np.random.default_rng(3)
    posteriors, decisions, labels = (np.repeat(part, 10, axis=0) for part in window(rng, 60))
    groups = np.repeat(np.arange(60), 10)
    sample, chances = drawn(rng, posteriors, decisions, 100)
    arguments = (posteriors, decisions, sample, labels[sample], chances[sample])
    alone, together = (
        difference_estimate(*arguments, groups=keys, target="population").spreads["AC"]
        for keys in (None, groups)
    )
    assert together.window > 4 * alone.window
    window_only = difference_estimate(*arguments, groups=groups, target="window").spreads["AC"]
    assert window_only.window == 0


def test_the_confusion_matrix_keeps_the_decisions_of_the_window():
    rng = np.random.default_rng(4)
    posteriors, decisions, labels = window(rng, 500)
    sample, chances = drawn(rng, posteriors, decisions, 30)
    found = difference_estimate(posteriors, decisions, sample, labels[sample], chances[sample])
    assert (found.confusion_matrix >= 0).all()
    assert found.confusion_matrix.sum(axis=0) == pytest.approx(np.bincount(decisions) / 500)


def test_recalibration_finds_scaled_posteriors_and_does_not_know_the_label_it_predicts():
    rng = np.random.default_rng(5)
    posteriors, _, labels = window(rng, 4000, temperature=0.5)
    right = np.sqrt(posteriors) / np.sqrt(posteriors).sum(axis=1, keepdims=True)
    sample = rng.permutation(4000)[:2000]
    found = recalibrate(posteriors, sample, labels[sample], None)
    assert np.abs(found.all - right).mean() < 0.02
    changed = labels[sample].copy()
    changed[7] = (changed[7] + 1) % 3
    other = recalibrate(posteriors, sample, changed, None)
    assert (other.labelled[7] == found.labelled[7]).all()
    assert (other.labelled[8] != found.labelled[8]).any()


def test_groups_are_not_split_between_folds():
    rng = np.random.default_rng(6)
    posteriors, _, labels = window(rng, 100)
    groups = np.arange(100) // 4
    found = recalibrate(posteriors, np.arange(100), labels, groups)
    changed = labels.copy()
    changed[0] = (changed[0] + 1) % 3
    other = recalibrate(posteriors, np.arange(100), changed, groups)
    assert (other.labelled[:4] == found.labelled[:4]).all()


def test_abstaining_is_a_decision():
    rng = np.random.default_rng(7)
    posteriors, decisions, labels = window(rng, 300)
    decisions[::10] = 3
    sample = np.arange(0, 300, 3)
    found = difference_estimate(posteriors, decisions, sample, labels[sample], np.full(100, 1 / 3))
    assert found.confusion_matrix.shape == (3, 4)
    assert found.confusion_matrix[:, 3].sum() == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"sample": [0, 0]}, "sample"),
        ({"sample": [0]}, "sample"),
        ({"sample": [0, 99]}, "sample"),
        ({"labels": [0]}, "labels"),
        ({"labels": [0, 3]}, "labels"),
        ({"propensities": [0.5, 0.0]}, "propensities"),
        ({"decisions": [0, 4, 1]}, "decisions"),
        ({"costs": [[0, 1], [1, 0]]}, "costs"),
        ({"target": "all"}, "target"),
        ({"confidence": 1}, "confidence"),
    ],
)
def test_errors_name_the_field(change, field):
    arguments = {
        "posteriors": np.full((3, 3), 1 / 3),
        "decisions": [0, 1, 2],
        "sample": [0, 1],
        "labels": [0, 1],
        "propensities": [0.5, 0.5],
    }
    with pytest.raises(InvalidInputError) as caught:
        difference_estimate(**{**arguments, **change})
    assert caught.value.field == field


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
