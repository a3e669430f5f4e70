"""Which side of a target is right: for the share of positives the other one than for the rest."""

from math import nan

import numpy as np
import pytest

from lifelong_core.decision_rules.rules import TARGET_METRICS, Target, TargetValue

RISING = [metric for metric in TARGET_METRICS if metric != "PPR"]


@pytest.mark.parametrize("metric", RISING)
def test_a_metric_reaches_at_least_its_target(metric: str):
    target = Target(metric, 0.9)
    assert str(target) == "at least 0.9"
    assert target.reaches(np.array([0.89, 0.9 - 1e-14, 0.9, 0.95, nan])).tolist() == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert [target.is_kept(*ends) for ends in [(0.9, 0.95), (0.89, 0.95), (nan, 0.95)]] == [
        True,
        False,
        False,
    ]
    assert [target.is_missed(*ends) for ends in [(0.8, 0.89), (0.8, 0.9), (nan, 0.8)]] == [True, False, False]
    assert [target.progress(value) for value in (0.5, 0.9, 0.95, nan)] == [0.5, 0.9, 0.9, 0.9]


def test_the_share_of_positives_reaches_at_most_its_target():
    target = TargetValue("PPR", 0.2).target
    assert str(target) == "at most 0.2"
    assert target.reaches(np.array([0.1, 0.2 + 1e-14, 0.21, nan])).tolist() == [True, True, False, False]
    assert [target.is_kept(*ends) for ends in [(0.1, 0.2), (0.1, 0.21), (0.1, nan)]] == [True, False, False]
    assert [target.is_missed(*ends) for ends in [(0.21, 0.3), (0.2, 0.3), (0.3, nan)]] == [True, False, False]
    assert [target.progress(value) for value in (0.5, 0.2, 0.1, nan)] == [-0.5, -0.2, -0.2, -0.2]
