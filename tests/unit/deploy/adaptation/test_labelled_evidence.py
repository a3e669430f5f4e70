"""Labels as evidence of the prevalence in a cycle."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from lifelong_core.deploy import (
    AdaptationContext,
    AdaptationPolicy,
    AdaptationReport,
    LabeledLogits,
    adapt,
    fit_head,
    quantifier,
)
from lifelong_core.deploy.adaptation.context import LabelledEvidence, add_labels
from lifelong_core.deploy.performance.labelled.prevalence_evidence import with_labels
from lifelong_core.deploy.quantification.prevalence_estimate import Analysis
from lifelong_core.values.errors import InvalidInputError

COSTS = [[0, 1, 2], [1, 0, 1], [5, 3, 0]]
USING_LABELS = AdaptationPolicy(labelled_evidence=True)


def sample(*counts: int, seed: int = 0) -> LabeledLogits:
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return LabeledLogits(
        1.5 * np.eye(len(counts))[labels] + rng.normal(size=(labels.size, len(counts))), labels
    )


CALIBRATION = sample(300, 300, 300)
FITTED = quantifier("MLLS").fit(CALIBRATION)
HEAD = fit_head(CALIBRATION, COSTS)
WINDOW = sample(350, 150, 100, seed=1)


def evidence(labels: Any, **more: Any) -> LabelledEvidence:
    return LabelledEvidence(np.asarray(labels), np.arange(len(labels), dtype=np.float64), **more)


def covariance(analysis: Analysis) -> np.ndarray:
    """The covariance that the parts of an analysis add up to."""
    return analysis.spread(analysis.influence).covariance + analysis.doubt + analysis.change_doubt


@pytest.mark.parametrize("number", [20, 120, 600])
def test_the_parts_of_the_covariance_add_up_to_that_of_the_combination(number: int):
    before = FITTED.analyse(WINDOW.logits)
    np.testing.assert_allclose(covariance(before), before.estimate.covariance, atol=1e-12)
    after = add_labels(before, evidence(WINDOW.labels[:number]))
    expected = with_labels(before.estimate, WINDOW.labels[:number])
    np.testing.assert_array_equal(after.estimate.prevalence, expected.prevalence)
    assert np.trace(expected.covariance) < np.trace(before.estimate.covariance)
    np.testing.assert_allclose(covariance(after), expected.covariance, atol=1e-7)
    assert after.estimate.effective_n == before.estimate.effective_n


def test_labels_that_replace_a_contradicted_estimate_leave_the_window_no_influence():
    before = FITTED.analyse(WINDOW.logits)
    labels = np.repeat([0, 1, 2], [20, 30, 250])
    after = add_labels(before, evidence(labels, propensities=np.full(300, 0.5)))
    assert not after.influence.window.any()
    assert not after.influence.calibration.any()
    np.testing.assert_allclose(covariance(after), after.estimate.covariance, atol=1e-9)
    assert after.estimate.prevalence[2] == pytest.approx(250 / 300)


def test_without_a_label_nothing_changes():
    before = FITTED.analyse(WINDOW.logits)
    assert add_labels(before, evidence([])) is before


def judged(
    context: AdaptationContext, policy: AdaptationPolicy = USING_LABELS, **more: Any
) -> AdaptationReport:
    return adapt(FITTED, WINDOW.logits, HEAD, policy, context=context, **more)


def test_a_cycle_reports_both_estimates_and_a_replay_of_its_document_is_equal():
    context = AdaptationContext(
        labelled=evidence(WINDOW.labels[:200], propensities=np.full(200, 1 / 3), groups=np.arange(200) // 2)
    )
    report = judged(context)
    plain = judged(AdaptationContext())
    assert plain.prevalence_without_labels is None
    assert report.prevalence_without_labels == plain.prevalence
    assert report.prevalence is not None
    assert plain.prevalence is not None
    assert (
        report.prevalence.high - report.prevalence.low < plain.prevalence.high - plain.prevalence.low
    ).all()
    assert "labels_combined" in [reason.code for reason in report.reasons]
    assert "200 labels of the window" in " ".join(reason.text for reason in report.reasons)
    read = AdaptationReport.from_json(report.to_json())
    assert judged(read.context, read.policy).to_json() == report.to_json()


def test_a_policy_that_does_not_use_labels_ignores_them():
    context = AdaptationContext(labelled=evidence(WINDOW.labels[:200]))
    report = judged(context, AdaptationPolicy())
    assert replace(report, context=AdaptationContext()) == judged(AdaptationContext(), AdaptationPolicy())


def test_only_labels_since_the_last_change_count():
    early, late = sample(500, 50, 50, seed=2), sample(50, 50, 500, seed=3)
    window = np.concatenate([early.logits, late.logits])
    times = np.arange(len(window), dtype=np.float64)
    labels = np.concatenate([early.labels, late.labels])
    context = AdaptationContext(labelled=LabelledEvidence(labels[::4], times[::4]))
    report = adapt(FITTED, window, HEAD, USING_LABELS, context=context, times=times)
    (change,) = report.change_points
    assert change.changed_at is not None
    number = int((times[::4] >= change.changed_at.timestamp()).sum())
    assert 120 < number < 180
    assert f"{number} labels of the window" in " ".join(reason.text for reason in report.reasons)
    assert datetime.fromtimestamp(600, UTC).timestamp() == pytest.approx(
        change.changed_at.timestamp(), abs=20
    )


def test_labels_of_suspicious_cases_that_contradict_the_window_are_left_out():
    report = judged(AdaptationContext(labelled=evidence([2] * 100)))
    assert report.prevalence is not None
    assert report.prevalence_without_labels is not None
    np.testing.assert_array_equal(report.prevalence.prevalence, report.prevalence_without_labels.prevalence)
    assert "are left out" in " ".join(reason.text for reason in report.reasons)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"labels": [0, 1]}, "labels"),
        ({"labels": [0, 1, -1]}, "labels"),
        ({"labels": [0, 1, 0.5]}, "labels"),
        ({"propensities": [0.5, 0.0, 1.0]}, "propensities"),
        ({"propensities": [0.5, 1.1, 1.0]}, "propensities"),
        ({"groups": [0, 1]}, "groups"),
    ],
)
def test_values_that_do_not_fit_are_refused(values: dict[str, Any], field: str):
    good: dict[str, Any] = {"labels": [0, 1, 2], "times": [0.0, 1.0, 2.0]}
    with pytest.raises(InvalidInputError) as caught:
        LabelledEvidence(**{name: np.array(value) for name, value in {**good, **values}.items()})
    assert caught.value.field == field
