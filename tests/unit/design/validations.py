"""Recommendations of chosen metrics, and simulated models, for tests of validation."""

from functools import cache
from typing import Any

import numpy as np

from lifelong_core.design import ProblemFingerprint, Recommendation, RecommendedMetric, recommend
from lifelong_core.metrics import METRICS
from tests.unit.design.interviews import ALL_ALIKE

ANSWERS: dict[str, Any] = {"number_of_classes": 3, **ALL_ALIKE}

OF_USE: dict[str, Any] = {"prevalences_representative": True, "class_imbalance": False}
"""Answers by which the class mix of the data is that of use"""


def metric(acronym: str, **given: Any) -> RecommendedMetric:
    """A metric with `parameters`, `target_class` or `class_weights`."""
    return RecommendedMetric(metric=acronym, per_class=METRICS[acronym].is_per_class, **given)


@cache
def _recommended() -> Recommendation:
    return recommend(ProblemFingerprint(**ANSWERS))


def recommending(*metrics: RecommendedMetric | str, **answers: Any) -> Recommendation:
    """A recommendation of just these metrics, whatever the answers lead to."""
    found = _recommended()
    chosen = tuple(metric(item) if isinstance(item, str) else item for item in metrics)
    steps = [step.model_copy(update={"metrics": ()}) for step in found.steps]
    steps[0] = steps[0].model_copy(update={"metrics": chosen})
    fingerprint = ProblemFingerprint(**{**ANSWERS, **answers})
    return found.model_copy(update={"steps": tuple(steps), "fingerprint": fingerprint})


def simulated(samples: int, classes: int, *, seed: int = 0, skill: float = 1.5) -> tuple[Any, Any]:
    """Labels, all classes among them, and probabilities with some ties."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(samples) % classes)
    logits = rng.normal(size=(samples, classes))
    logits[np.arange(samples), labels] += skill
    logits = logits.round(1)
    powers = np.exp(logits)
    return labels, powers / powers.sum(axis=1, keepdims=True)
