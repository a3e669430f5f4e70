from math import inf, nan

import pytest

from lifelong_core.deploy.adaptation.reasons import Reason, performance_below_acceptance
from lifelong_core.deploy.performance.acceptance import JudgedMetric, PerformanceThreshold
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric


@pytest.mark.parametrize(
    ("metric", "threshold", "acceptance"),
    [
        ((0.80, 0.75, 0.85), 0.80, "accepted"),
        ((0.80, 0.75, 0.85), 0.81, "at_risk"),
        ((0.80, 0.75, 0.85), 0.85, "at_risk"),
        ((0.80, 0.75, 0.85), 0.86, "missed"),
        ((0.80, nan, nan), 0.90, "at_risk"),
        ((0.80, nan, nan), 0.70, "accepted"),
        ((1.0, 0.5, inf), 9.0, "at_risk"),
        ((nan, nan, nan), 0.1, None),
    ],
)
def test_acceptance_of_a_metric_of_which_more_is_better(
    metric: tuple[float, float, float], threshold: float, acceptance: str | None
) -> None:
    value, low, high = metric
    up, down = (PerformanceThreshold(sign * threshold, is_minimum=sign > 0) for sign in (1, -1))
    assert up.judge(EstimatedMetric(value, low, high)) == acceptance
    assert down.judge(EstimatedMetric(-value, -high, -low)) == acceptance


def judged(name: str, *metric: float, at_least: float) -> JudgedMetric:
    return JudgedMetric(name, EstimatedMetric(*metric), PerformanceThreshold(at_least, is_minimum=True))


def test_a_reason_names_figures_interval_and_threshold() -> None:
    reason = performance_below_acceptance(
        [judged("TPR of malignant", 0.71, 0.66, 0.76, at_least=0.8)],
        is_missed=True,
        is_assumption_rejected=False,
    )
    assert reason.code == "performance_missed"
    assert reason.text.endswith("TPR of malignant 0.71 (0.66 to 0.76), at least 0.8.")
    assert Reason.from_document(reason.to_document()) == reason


def test_a_reason_states_a_rejected_assumption_test_and_counts_what_it_leaves_out() -> None:
    metrics = [judged(f"M{i}", 0.7, 0.6, 0.9, at_least=0.8) for i in range(8)]
    reason = performance_below_acceptance(metrics, is_missed=False, is_assumption_rejected=True)
    assert reason.code == "performance_at_risk"
    assert "M4 " in reason.text
    assert "M5 " not in reason.text
    assert "; and 3 more." in reason.text
    assert "assumption test is rejected" in reason.text
