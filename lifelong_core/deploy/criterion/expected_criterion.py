"""Value that the metric of a decision rule will have in a population, from the calibration set."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.decision_rules.rules import Target, TargetValue, needs_cut_off
from lifelong_core.decision_rules.wording import METRIC_NAMES
from lifelong_core.deploy.criterion.rule_sample import RuleSample, bootstrap, drawn_prevalences, posterior
from lifelong_core.deploy.documents import FlatDocument
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.arrays import as_prevalence

MOST_DRAWS = 400
FEWEST_DRAWS = 100
_WEIGHTS = 4_000_000
"""weights of all draws together: draws get fewer where the calibration set is large"""


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


def describe_criterion(found: ExpectedCriterion) -> str:
    """Describe the value that a rule will reach in a sentence.

    Examples:
        >>> describe_criterion(ExpectedCriterion("TPR", 0.9, 0.86, 0.93, 0.95, 0.9, True, 0.31, 200, None))
        'Sensitivity 0.900 (0.860 to 0.930) expected here, target at least 0.9; cut-off 0.310.'
        >>> describe_criterion(ExpectedCriterion("PPV", 0.5, 0.4, 0.6, 0.95, 0.8, False, 0.31, 200, None))
        'Precision 0.500 (0.400 to 0.600) expected here, target at least 0.8: missed, and no cut-off reaches it; cut-off 0.310.'
    """  # noqa: E501 - one printed line
    name = METRIC_NAMES.get(found.metric, found.metric)
    target = ""
    if found.requirement is not None:
        missed = ": missed" if found.is_missed else ""
        unreachable = "" if found.is_reachable else f"{', and' if missed else ':'} no cut-off reaches it"
        target = f", target {found.requirement}{missed}{unreachable}"
    reached = f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
    return f"{name[0].upper()}{name[1:]} {reached} expected here{target}; cut-off {found.cut_off:.3f}."
