from dataclasses import replace

import numpy as np
import pytest

from lifelong.commands.cycles.report_text import print_report
from lifelong_core.deploy import AdaptationPolicy, LabeledLogits, TargetValue, adapt, fit_head

NAMES = ("benign", "malignant")


def sample(*counts: int, seed: int = 0) -> LabeledLogits:
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat([0, 1], counts))
    return LabeledLogits(2 * np.eye(2)[labels] + rng.normal(size=(labels.size, 2)), labels)


def test_a_report_says_what_the_decision_rule_will_reach_now_and_with_a_new_head(
    capsys: pytest.CaptureFixture[str],
) -> None:
    calibration, window = sample(400, 400), sample(900, 100, seed=1)
    head = fit_head(calibration, [[0, 1], [1, 0]], class_names=NAMES, decision_rule=TargetValue("PPV", 0.8))
    report = adapt(calibration, window.logits, head, AdaptationPolicy(), method="ACC")
    assert report.criterion.is_missed
    print_report(report, NAMES)
    shown = " ".join(capsys.readouterr().out.split())
    for text in (
        f"Decision rule: Precision {report.criterion.value:.3f}",
        "expected here, target at least 0.8: missed",
        f"With a new head: Precision {report.candidate_criterion.value:.3f}",
        f"cut-off {report.candidate_criterion.cut_off:.3f}.",
    ):
        assert text in shown
    assert "No gain was computed" not in shown
    kept = adapt(calibration, sample(400, 400, seed=2).logits, head, AdaptationPolicy(), method="ACC")
    assert kept.outcome == "keep"
    print_report(kept, NAMES)
    assert "No gain was computed, because no other head was considered." in capsys.readouterr().out
    print_report(replace(report, criterion=None, candidate_criterion=None, reasons=()), NAMES)
    assert "Precision" not in capsys.readouterr().out
