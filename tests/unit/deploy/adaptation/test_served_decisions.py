"""After a cycle the served decisions reach what the cycle states, whatever the prevalence; a frozen head does not."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from lifelong_core.deploy import (
    AdaptationPolicy,
    FittedQuantifier,
    LabeledLogits,
    OptimisedMetric,
    PostProcessingHead,
    TargetValue,
    adapt,
    fit_head,
    quantifier,
)
from lifelong_core.deploy.criterion.expected_criterion import expected_criterion

SEPARATION, SPREAD = 1.8, 1.2
"""scores of class 0 are N(0, 1), of class 1 N(SEPARATION, SPREAD^2)"""
PREVALENCES = (0.05, 0.15, 0.3, 0.6)
DRAWS = 32
"""of a calibration set and a window, for each rule: each prevalence comes 8 times"""
MOVING = ("PPV", "PPR")


def draw(size: int, prevalence: float, rng: np.random.Generator) -> LabeledLogits:
    labels = (rng.random(size) < prevalence).astype(int)
    scores = np.where(labels == 1, SEPARATION + SPREAD * rng.normal(size=size), rng.normal(size=size))
    return LabeledLogits(np.column_stack([np.zeros(size), 2 * scores]), labels)


def reached(rule: Any, head: PostProcessingHead, prevalence: float) -> float:
    """The metric in the population, by the normal distribution: the decisions are a cut-off of the score."""
    scores = np.linspace(-8, 10, 40_001)
    flagged = head.apply(np.column_stack([np.zeros(scores.size), 2 * scores])).decisions == 1
    cut = scores[flagged.argmax()] - (scores[1] - scores[0]) / 2 if flagged.any() else np.inf
    tp = prevalence * float(norm.sf(cut, SEPARATION, SPREAD))
    fp = (1 - prevalence) * float(norm.sf(cut))
    fn, tn = prevalence - tp, 1 - prevalence - fp
    ratios = {
        "TPR": (tp, prevalence),
        "PPV": (tp, tp + fp),
        "PPR": (tp + fp, 1.0),
        "MCC": (tp * tn - fp * fn, np.sqrt((tp + fp) * (tn + fn) * prevalence * (1 - prevalence))),
    }
    above, below = ratios[rule.metric]
    return above / below if below > 0 else float("nan")


@cache
def draws(seed: int) -> tuple[float, FittedQuantifier, np.ndarray]:
    """Prevalence, calibration set with its quantifier, and window; the same for each rule."""
    rng, prevalence = np.random.default_rng([1, seed]), PREVALENCES[seed % len(PREVALENCES)]
    calibration = draw(600, 0.3, rng)
    return prevalence, quantifier("MLLS").fit(calibration), draw(2000, prevalence, rng).logits


@pytest.mark.parametrize(
    "rule",
    [
        TargetValue("TPR", 0.9),  # does not depend on the prevalence
        TargetValue("PPV", 0.8),
        TargetValue("PPR", 0.2),  # at most
        OptimisedMetric("MCC"),
    ],
    ids=str,
)
def test_served_decisions_reach_what_the_cycle_states(rule: Any):
    kept, frozen_kept, swaps = [], [], 0
    for seed in range(DRAWS):
        prevalence, fitted, window = draws(seed)
        calibration = fitted.calibration
        frozen = fit_head(calibration, [[0, 1], [1, 0]], decision_rule=rule)
        report = adapt(fitted, window, frozen, AdaptationPolicy(), rng=seed)
        served, stated = frozen, report.criterion
        if report.candidate is not None:
            served, stated, swaps = report.candidate, report.candidate_criterion, swaps + 1
        assert stated is not None
        kept.append(stated.low <= reached(rule, served, prevalence) <= stated.high)
        if rule.metric in MOVING:
            first = expected_criterion(frozen, calibration, frozen.assumed_prevalence)
            assert first is not None
            frozen_kept.append(first.low <= reached(rule, frozen, prevalence) <= first.high)
    assert np.mean(kept) >= 0.93
    assert swaps >= DRAWS / 4
    if rule.metric in MOVING:
        assert np.mean(frozen_kept) < 0.75
