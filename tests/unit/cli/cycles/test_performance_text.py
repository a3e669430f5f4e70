from dataclasses import replace

import numpy as np
import pytest

from lifelong.commands.cycles.report_text import print_performance
from lifelong_core.deploy.performance.performance_estimate import (
    EstimatedMetric,
    PerformanceEstimate,
    PerformanceWarning,
)

CURRENT = PerformanceEstimate(
    method="matched",
    estimates={
        "AC": EstimatedMetric(0.8, 0.75, 0.85),
        "TPR[2]": EstimatedMetric(0.6, 0.5, 0.7),
        "PPV[0]": EstimatedMetric(float("nan"), float("nan"), float("nan")),
    },
    confusion_matrix=np.eye(3) / 3,
    prevalence=np.full(3, 1 / 3),
    confidence=0.95,
    samples=500,
    effective_samples=321.4,
    validated_error=0.0123,
    assumptions=("Only the prevalence has changed.",),
    warnings=(),
    head_digest="a",
)
REJECTED = replace(CURRENT, warnings=(PerformanceWarning("assumption_rejected", "More has changed."),))
NAMES = ("benign", "unclear", "malignant")


def printed(capsys: pytest.CaptureFixture[str], *estimates: PerformanceEstimate | None) -> str:
    current, candidate = estimates
    assert current is not None
    print_performance(current, candidate, NAMES)
    return capsys.readouterr().out


def test_each_metric_has_its_interval_and_the_method_its_validated_error_and_assumptions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = printed(capsys, CURRENT, None)
    rows = {line.split("  ")[0].strip(): line for line in text.splitlines()}
    assert "0.800, 0.750 to 0.850" in rows["Accuracy (AC)"]
    assert "0.600, 0.500 to 0.700" in rows["Sensitivity (TPR) of malignant"]
    assert "undefined" in rows["Precision (PPV) of benign"]
    flat = " ".join(text.split())
    assert "95 % intervals; method matched: mean error of the accuracy in simulated windows 0.012" in flat
    assert "500 samples, worth 321 independent ones" in flat
    assert "It assumes: Only the prevalence has changed." in flat
    assert "Warning" not in text
    assert "new head" not in text


def test_a_rejected_assumption_test_is_stated_beside_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, REJECTED, replace(REJECTED, validated_error=None))
    (row,) = [line for line in text.splitlines() if line.strip().startswith("Accuracy (AC)")]
    assert row.count("0.800, 0.750 to 0.850 (assumption rejected)") == 2
    assert "with the new head" in text
    assert text.count("Warning: More has changed.") == 1


def test_an_error_that_was_not_simulated_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, replace(CURRENT, validated_error=None), None)
    assert "its error was not simulated" in " ".join(text.split())
