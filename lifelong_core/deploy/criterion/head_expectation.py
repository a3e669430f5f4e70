"""Metric of a head's decision rule in its population: kept in the head's provenance, and put in words."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from lifelong_core.decision_rules.rules import MetricRule, TargetValue, needs_cut_off
from lifelong_core.decision_rules.wording import METRIC_NAMES, describe_rule
from lifelong_core.deploy.criterion.expected_criterion import ExpectedCriterion, expected_criterion
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.arrays import LARGEST_NUMBER
from lifelong_core.values.errors import LifelongError

KEY = "expected_criterion"
"""of the provenance"""


def with_expectation(head: PostProcessingHead, calibration: LabeledLogits) -> PostProcessingHead:
    """Add the expected metric of the head's rule, in a population of the assumed prevalence, to the provenance.

    Heads whose cut-off was not searched stay as they are; digests do not change.

    Args:
        head: fitted on these samples.
        calibration: labelled logits.
    """
    found = expected_criterion(head, calibration, head.assumed_prevalence)
    if found is None:
        return head
    return replace(head, provenance={**head.provenance, KEY: found.to_document()})


def expectation_of(head: PostProcessingHead) -> ExpectedCriterion | None:
    """The expectation in the provenance of a head; None: there is none that can be read.

    People may publish heads with any provenance, so that an unreadable one is no error.
    """
    document, rule = head.provenance.get(KEY), head.decision_rule
    if not isinstance(document, Mapping) or not needs_cut_off(rule):
        return None
    try:
        found = ExpectedCriterion.from_document(cast("Mapping[str, Any]", document))
    except (LifelongError, TypeError):
        return None
    numbers = (found.value, found.low, found.high, found.cases, found.needed_cases or 0)
    is_readable = all(_is_number(one) for one in numbers)
    return found if is_readable and found.metric == rule.metric else None


def _is_number(value: object) -> bool:
    """Whether it is a number that a float can hold; integers of a document have any size."""
    return isinstance(value, int | float) and abs(value) <= LARGEST_NUMBER


def describe_head_rule(head: PostProcessingHead) -> str:
    """The rule as a phrase, with the cut-off that the head found for it.

    Examples:
        >>> names, rule = ("benign", "malignant"), TargetValue("TPR", 0.9)
        >>> costs = [[0, 1], [1, 0]]
        >>> head = PostProcessingHead(1.0, [0, 0], costs, [0.5, 0.5], names, decision_rule=rule, cut_off=0.21)
        >>> describe_head_rule(head)
        'sensitivity of malignant at least 0.9, then the best specificity (cut-off 0.21)'
    """
    phrase = describe_rule(head.decision_rule, head.class_names)
    return phrase if head.cut_off is None else f"{phrase} (cut-off {head.cut_off:.3g})"


def describe_expectation(head: PostProcessingHead) -> str | None:
    """Describe the expected metric of the rule in the head's population; None: the head holds no expectation.

    Examples:
        >>> import numpy as np
        >>> from lifelong_core.deploy import LabeledLogits, fit_head
        >>> from lifelong_core.deploy.criterion.head_expectation import with_expectation
        >>> labels = np.arange(2000) % 2
        >>> logits = 2 * np.eye(2)[labels] + np.random.default_rng(0).normal(size=(2000, 2))
        >>> calibration, names = LabeledLogits(logits, labels), ("benign", "malignant")
        >>> head = fit_head(
        ...     calibration, [[0, 1], [1, 0]], class_names=names, decision_rule=TargetValue("TPR", 0.9)
        ... )
        >>> describe_expectation(with_expectation(head, calibration))
        'sensitivity of malignant 0.90 (0.88 to 0.92) expected at prevalence 0.5'
    """
    found, rule = expectation_of(head), head.decision_rule
    if found is None or not needs_cut_off(rule):
        return None
    name, share = head.class_names[rule.positive_class], head.assumed_prevalence[rule.positive_class]
    interval = f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"
    text = f"{_metric(rule, name)} {interval} expected at prevalence {share:.2g}"
    if not found.is_reachable:
        text += "; no cut-off reaches the target on the calibration set"
    if found.needed_cases is not None:
        kind = f"of {name}" if found.metric in ("TPR", "NPV") else f"without {name}"
        text += (
            f"; {found.needed_cases:,} calibration cases {kind} would narrow this to 0.05 on either side"
            f" (there are {found.cases:,})"
        )
    return text


def _metric(rule: MetricRule, name: str) -> str:
    if isinstance(rule, TargetValue):
        return f"{METRIC_NAMES[rule.metric]} of {name}"
    return f"F{rule.beta:g} score of {name}" if rule.metric == "F_beta" else rule.metric
