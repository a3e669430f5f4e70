"""Value that the metric of a decision rule will have in a population, its estimate, and its place in provenance."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.decision_rules.rules import MetricRule, Target, TargetValue, needs_cut_off
from lifelong_core.decision_rules.wording import METRIC_NAMES, describe_rule
from lifelong_core.deploy.criterion.rule_sample import RuleSample, bootstrap, drawn_prevalences, posterior
from lifelong_core.deploy.documents import FlatDocument
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.arrays import LARGEST_NUMBER, as_prevalence
from lifelong_core.values.errors import LifelongError

MOST_DRAWS = 400
FEWEST_DRAWS = 100
_WEIGHTS = 4_000_000
"""weights of all draws together: draws get fewer where the calibration set is large"""

KEY = "expected_criterion"
"""of the provenance"""


@dataclass(frozen=True)
class ExpectedCriterion(FlatDocument):
    """Value that the metric of a decision rule will have in a population, with its interval."""

    metric: str
    """TPR, TNR, PPV, NPV, PPR, F_beta or MCC"""
    value: float
    low: float
    high: float
    """ends of the interval, which covers the sampling of the calibration set, the choice of the cut-off on it, and the
    doubt about the prevalence"""
    confidence: float
    target: float | None
    """value that the rule demands (`Target`); None: the metric is optimised"""
    is_reachable: bool
    """whether a cut-off of the calibration set reaches the target in this population"""
    cut_off: float
    """of the head"""
    cases: int
    """independent calibration cases that limit the interval: for sensitivity and negative predictive value those of the
    class, else the others"""
    needed_cases: int | None
    """such cases with which the interval would reach about 0.05 to either side; None: not known for the metric, or
    fewer than there are"""

    @property
    def requirement(self) -> Target | None:
        """Requirement of the rule on its metric; None: the metric is optimised."""
        return None if self.target is None else Target(self.metric, self.target)

    @property
    def is_missed(self) -> bool:
        """Whether the whole interval is on the wrong side of the target."""
        return self.requirement is not None and self.requirement.is_missed(self.low, self.high)

    @property
    def is_reached(self) -> bool:
        """Whether the value is on the right side of the target; True without a target."""
        return self.requirement is None or bool(self.requirement.reaches(self.value))


def expected_criterion(
    head: PostProcessingHead,
    calibration: LabeledLogits,
    prevalence: ArrayLike,
    *,
    covariance: ArrayLike | None = None,
    confidence: float = 0.95,
    rng: int = 0,
) -> ExpectedCriterion | None:
    """Estimate what the rule's metric will be in a population, assuming that only the prevalence differs.

    Two intervals are computed, and the result covers both. The first draws the rates at the cut-off from their Jeffreys
    posteriors (Brown, Cai and DasGupta 2001). The second is a bootstrap of the calibration samples, within classes or
    by group, in which each draw chooses its cut-off anew: on the samples that it was chosen on, a cut-off looks better
    than it is. The median of this optimism is taken off the first. Both draw the prevalence.

    Args:
        head: any head; if it was fitted on these samples, its cut-off was chosen on them.
        calibration: labelled logits with every class of a positive prevalence.
        prevalence: shape (C,), of the population; that of the rule's class between 0 and 1.
        covariance: shape (C, C), of the estimated prevalence; None: it is known.
        confidence: nominal coverage of the interval.
        rng: seed.

    Returns:
        None: the rule has no cut-off that is searched.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> from lifelong_core.deploy import fit_head
        >>> rng = np.random.default_rng(0)
        >>> labels = rng.integers(2, size=400)
        >>> calibration = LabeledLogits(2 * np.eye(2)[labels] + rng.normal(size=(400, 2)), labels)
        >>> head = fit_head(calibration, [[0, 1], [1, 0]], decision_rule=TargetValue("TPR", 0.9))
        >>> found = expected_criterion(head, calibration, [0.9, 0.1])
        >>> round(found.low, 2), round(found.value, 2), round(found.high, 2)
        (0.85, 0.9, 0.93)
    """
    rule = head.decision_rule
    if not needs_cut_off(rule) or head.cut_off is None:
        return None
    shares = as_prevalence(prevalence, classes=head.classes)
    sample = RuleSample.of(rule, head, calibration)
    generator = np.random.default_rng(rng)
    number = int(np.clip(_WEIGHTS // calibration.samples, FEWEST_DRAWS, MOST_DRAWS))
    drawn = drawn_prevalences(shares, covariance, number, generator)
    fitted_here = head.provenance.get("calibration_digest") == calibration.digest
    resampled = bootstrap(
        sample, calibration, drawn, shares, head.assumed_prevalence if fitted_here else None, generator
    )
    by_rates = posterior(sample, calibration, drawn, generator) + resampled.optimism
    stated = sample.linked(sample.rates(None, sample.at_cut_off), shares) + resampled.differences
    tail = (1 - confidence) / 2
    ends = np.quantile(np.stack([by_rates, stated]), [tail, 0.5, 1 - tail], axis=1)
    low, value, high = (sample.unlink(one) for one in (ends[0].min(), ends[1].mean(), ends[2].max()))
    return ExpectedCriterion(
        metric=rule.metric,
        value=value,
        low=low,
        high=high,
        confidence=confidence,
        target=rule.value if isinstance(rule, TargetValue) else None,
        is_reachable=sample.choose(None, shares).is_reachable,
        cut_off=head.cut_off,
        cases=sample.limiting_cases(calibration),
        needed_cases=sample.needed_cases(calibration, shares),
    )


def describe_criterion(criterion: ExpectedCriterion) -> str:
    """Describe the value that a rule will reach in a sentence.

    Examples:
        >>> describe_criterion(ExpectedCriterion("TPR", 0.9, 0.86, 0.93, 0.95, 0.9, True, 0.31, 200, None))
        'Sensitivity 0.900 (0.860 to 0.930) expected here, target at least 0.9; cut-off 0.310.'
        >>> describe_criterion(ExpectedCriterion("PPV", 0.5, 0.4, 0.6, 0.95, 0.8, False, 0.31, 200, None))
        'Precision 0.500 (0.400 to 0.600) expected here, target at least 0.8: missed, and no cut-off reaches it; cut-off 0.310.'
    """  # noqa: E501 - one printed line
    name = METRIC_NAMES.get(criterion.metric, criterion.metric)
    target = ""
    if criterion.requirement is not None:
        missed = ": missed" if criterion.is_missed else ""
        unreachable = "" if criterion.is_reachable else f"{', and' if missed else ':'} no cut-off reaches it"
        target = f", target {criterion.requirement}{missed}{unreachable}"
    reached = f"{criterion.value:.3f} ({criterion.low:.3f} to {criterion.high:.3f})"
    return f"{name[0].upper()}{name[1:]} {reached} expected here{target}; cut-off {criterion.cut_off:.3f}."


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
        criterion = ExpectedCriterion.from_document(cast("Mapping[str, Any]", document))
    except (LifelongError, TypeError):
        return None
    numbers = (criterion.value, criterion.low, criterion.high, criterion.cases, criterion.needed_cases or 0)
    is_readable = all(_is_number(one) for one in numbers)
    return criterion if is_readable and criterion.metric == rule.metric else None


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
        >>> from lifelong_core.deploy.criterion.expected_criterion import with_expectation
        >>> labels = np.arange(2000) % 2
        >>> logits = 2 * np.eye(2)[labels] + np.random.default_rng(0).normal(size=(2000, 2))
        >>> calibration, names = LabeledLogits(logits, labels), ("benign", "malignant")
        >>> head = fit_head(
        ...     calibration, [[0, 1], [1, 0]], class_names=names, decision_rule=TargetValue("TPR", 0.9)
        ... )
        >>> describe_expectation(with_expectation(head, calibration))
        'sensitivity of malignant 0.90 (0.88 to 0.92) expected at prevalence 0.5'
    """
    criterion, rule = expectation_of(head), head.decision_rule
    if criterion is None or not needs_cut_off(rule):
        return None
    name, share = head.class_names[rule.positive_class], head.assumed_prevalence[rule.positive_class]
    interval = f"{criterion.value:.2f} ({criterion.low:.2f} to {criterion.high:.2f})"
    text = f"{_metric(rule, name)} {interval} expected at prevalence {share:.2g}"
    if not criterion.is_reachable:
        text += "; no cut-off reaches the target on the calibration set"
    if criterion.needed_cases is not None:
        kind = f"of {name}" if criterion.metric in ("TPR", "NPV") else f"without {name}"
        text += (
            f"; {criterion.needed_cases:,} calibration cases {kind} would narrow this to 0.05 on either side"
            f" (there are {criterion.cases:,})"
        )
    return text


def _metric(rule: MetricRule, name: str) -> str:
    if isinstance(rule, TargetValue):
        return f"{METRIC_NAMES[rule.metric]} of {name}"
    return f"F{rule.beta:g} score of {name}" if rule.metric == "F_beta" else rule.metric
