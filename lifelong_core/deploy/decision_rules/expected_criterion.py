"""What the metric of a decision rule will be in a population, from the calibration set."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.arrays import Floats, Integers, as_prevalence
from lifelong_core.deploy.checks import as_parameter
from lifelong_core.deploy.decision_rules.operating_points import OperatingPoints, best_point, reaches_target
from lifelong_core.deploy.decision_rules.rates import metric_of
from lifelong_core.deploy.decision_rules.rules import MetricRule, TargetValue, needs_cut_off
from lifelong_core.deploy.documents import FlatDocument
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.numerics.grouping import independent_cases
from lifelong_core.errors import InvalidInputError

MOST_DRAWS = 400
FEWEST_DRAWS = 100
_WEIGHTS = 4_000_000
"""weights of all draws together: draws get fewer where the calibration set is large"""
_SMALLEST_SHARE = 1e-6
_WANTED_WIDTH = 0.05
_NORMAL = 1.96
_PSEUDO = 0.5
"""pseudo samples on either side of a cut-off (Jeffreys' prior)"""


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
    """value that the rule demands, at most for PPR, else at least; None: the metric is optimised"""
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
    def is_missed(self) -> bool:
        """Whether the whole interval is on the wrong side of the target."""
        if self.target is None:
            return False
        return self.low > self.target if self.metric == "PPR" else self.high < self.target


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
    sample = _Sample.of(rule, head, calibration)
    generator = np.random.default_rng(rng)
    number = int(np.clip(_WEIGHTS // calibration.samples, FEWEST_DRAWS, MOST_DRAWS))
    drawn = _drawn_prevalences(shares, covariance, number, generator)
    fitted_here = head.provenance.get("calibration_digest") == calibration.digest
    resampled = _bootstrap(
        sample, calibration, drawn, shares, head.assumed_prevalence if fitted_here else None, generator
    )
    posterior = _posterior(sample, calibration, drawn, generator) + resampled.optimism
    stated = sample.linked(sample.rates(None, sample.at_cut_off), shares) + resampled.differences
    tail = (1 - confidence) / 2
    ends = np.quantile(np.stack([posterior, stated]), [tail, 0.5, 1 - tail], axis=1)
    low, value, high = (sample.unlink(one) for one in (ends[0].min(), ends[1].mean(), ends[2].max()))
    return ExpectedCriterion(
        metric=rule.metric,
        value=value,
        low=low,
        high=high,
        confidence=confidence,
        target=rule.value if isinstance(rule, TargetValue) else None,
        is_reachable=sample.is_reachable(shares),
        cut_off=head.cut_off,
        cases=sample.limiting_cases(calibration),
        needed_cases=sample.needed_cases(calibration, shares),
    )


@dataclass(frozen=True, eq=False)
class _Sample:
    """The calibration samples, ordered by their probability of the rule's class, from the highest on."""

    rule: MetricRule
    points: OperatingPoints
    labels: Integers
    """shape (M,), ordered"""
    counts: Integers
    """shape (C,)"""
    at_cut_off: int
    """samples that the head's cut-off calls positive"""

    @classmethod
    def of(cls, rule: MetricRule, head: PostProcessingHead, calibration: LabeledLogits) -> Self:
        scores = head.apply(calibration.logits).probabilities[:, rule.positive_class]
        points = OperatingPoints.of(scores)
        positive = int((scores >= (head.cut_off or 0.0)).sum())
        return cls(rule, points, calibration.labels[points.order], calibration.counts, positive)

    def rates(self, weights: Floats | None, end: int) -> Floats:
        """Share of each class among the first `end` samples, shape (C,), with weights of the ordered samples, (M,)."""
        classes, head = self.counts.size, None if weights is None else weights[:end]
        above = np.bincount(self.labels[:end], head, minlength=classes)
        total = np.bincount(self.labels, weights, minlength=classes)
        return (above + _PSEUDO) / (total + 2 * _PSEUDO)

    def choose(self, weights: Floats | None, prevalence: Floats) -> int:
        """Samples that the cut-off of the rule calls positive, with weights of the ordered samples, (M,)."""
        given = np.ones(self.labels.size) if weights is None else weights
        total = np.maximum(np.bincount(self.labels, given, minlength=self.counts.size), 1.0)
        share = given * (prevalence / total)[self.labels]
        is_positive = self.labels == self.rule.positive_class
        last = self.points.ends - 1
        tp, fp = np.cumsum(share * is_positive)[last], np.cumsum(share * ~is_positive)[last]
        own = prevalence[self.rule.positive_class]
        return int(self.points.ends[best_point(self.rule, tp, fp, own)])

    def linked(self, rates: Floats, prevalence: Floats) -> float:
        """Logit of the rule's metric where these rates of the classes, (C,), are called positive."""
        joint, k = rates * prevalence, self.rule.positive_class
        return float(self.link(joint[k], joint.sum() - joint[k], prevalence[k]))

    def link(self, tp: Floats, fp: Floats, share: Floats) -> Floats:
        """Logit of the rule's metric (of MCC: as a part of its range), shape (...), from shares of all cases."""
        value = metric_of(self.rule)(np.asarray(tp), np.asarray(fp), np.asarray(share))
        part = (value + 1) / 2 if self.rule.metric == "MCC" else value
        part = np.clip(np.where(np.isnan(part), 0.5, part), _SMALLEST_SHARE, 1 - _SMALLEST_SHARE)
        return np.log(part / (1 - part))

    def unlink(self, value: float) -> float:
        """The metric of which this is the link."""
        share = float(1 / (1 + np.exp(-value)))
        return 2 * share - 1 if self.rule.metric == "MCC" else share

    def is_reachable(self, prevalence: Floats) -> bool:
        """Whether a cut-off reaches the target on these samples."""
        if not isinstance(self.rule, TargetValue):
            return True
        k = self.rule.positive_class
        above = np.bincount(self.labels[: self.choose(None, prevalence)], minlength=self.counts.size)
        joint = prevalence * above / np.maximum(self.counts, 1)
        value = metric_of(self.rule)(joint[k], joint.sum() - joint[k], prevalence[k])
        return bool(reaches_target(self.rule, value))

    def limiting_cases(self, calibration: LabeledLogits) -> int:
        """Independent cases of the class, or of the others, by the metric."""
        cases, k = independent_cases(calibration), self.rule.positive_class
        return int(cases[k] if self.rule.metric in ("TPR", "NPV") else cases.sum() - cases[k])

    def needed_cases(self, calibration: LabeledLogits, prevalence: Floats) -> int | None:
        """Limiting cases for an interval of +-_WANTED_WIDTH, by the variance of a share: of the rate itself, or, for a
        predictive value v, of the logarithm of the small rate, on which it depends by v (1 - v).
        """
        rates, k = self.rates(None, self.at_cut_off), self.rule.positive_class
        value = self.unlink(self.linked(rates, prevalence))
        others = float(np.delete(prevalence * rates, k).sum() / max(1 - prevalence[k], _SMALLEST_SHARE))
        if self.rule.metric in ("TPR", "TNR"):
            needed = _NORMAL**2 * value * (1 - value) / _WANTED_WIDTH**2
        elif self.rule.metric in ("PPV", "NPV"):
            small = others if self.rule.metric == "PPV" else 1 - float(rates[k])
            needed = (_NORMAL * value * (1 - value) / _WANTED_WIDTH) ** 2 / max(small, _SMALLEST_SHARE)
        else:
            return None
        return int(np.ceil(needed)) if needed > self.limiting_cases(calibration) else None


@dataclass(frozen=True)
class _Resampled:
    """What draws of the calibration set and of the prevalence show, in the link's scale."""

    differences: Floats
    """shape (B,): what the calibration set shows at the draw's cut-off, less what the draw shows there"""
    optimism: float
    """median of the differences, less their median where the cut-off is not chosen anew; negative: it looks better"""


def _bootstrap(
    sample: _Sample,
    calibration: LabeledLogits,
    drawn: Floats,
    prevalence: Floats,
    chosen_for: Floats | None,
    generator: np.random.Generator,
) -> _Resampled:
    """Draw the calibration set; `chosen_for` is the prevalence for which each draw chooses its cut-off; None: it keeps
    the cut-off of the head.
    """
    anew, fixed = list[float](), list[float]()
    here = sample.linked(sample.rates(None, sample.at_cut_off), prevalence)
    for weights, shares in zip(_weights(sample, calibration, len(drawn), generator), drawn, strict=True):
        fixed.append(here - sample.linked(sample.rates(weights, sample.at_cut_off), shares))
        if chosen_for is None:
            continue
        end = sample.choose(weights, chosen_for)
        shown = sample.linked(sample.rates(weights, end), shares)
        anew.append(sample.linked(sample.rates(None, end), prevalence) - shown)
    if not anew:
        return _Resampled(np.array(fixed), 0.0)
    return _Resampled(np.array(anew), float(np.median(anew) - np.median(fixed)))


def _weights(
    sample: _Sample, calibration: LabeledLogits, draws: int, generator: np.random.Generator
) -> Iterator[Floats]:
    """How often each ordered sample is drawn, (M,), within its class, or with its group."""
    if calibration.groups is not None:
        _, member = np.unique(calibration.groups[sample.points.order], return_inverse=True)
        groups = int(member.max()) + 1
        for _ in range(draws):
            yield generator.multinomial(groups, np.full(groups, 1 / groups))[member].astype(np.float64)
        return
    rows = [np.flatnonzero(sample.labels == k) for k in range(sample.counts.size)]
    for _ in range(draws):
        weights: Floats = np.zeros(sample.labels.size)
        for own in filter(len, rows):
            weights[own] = np.bincount(generator.integers(own.size, size=own.size), minlength=own.size)
        yield weights


def _posterior(
    sample: _Sample, calibration: LabeledLogits, drawn: Floats, generator: np.random.Generator
) -> Floats:
    """Draws of the metric at the head's cut-off, (B,) in the link's scale, from Jeffreys posteriors of two rates: of
    the rule's class, and of the others together, which are worth as many cases as have the same variance.
    """
    k, cases = sample.rule.positive_class, independent_cases(calibration)
    above = np.bincount(sample.labels[: sample.at_cut_off], minlength=cases.size) / np.maximum(
        sample.counts, 1
    )
    others: Floats = np.delete(drawn, k, axis=1)
    others = others / others.sum(axis=1, keepdims=True)
    worth: Floats = 1 / (others**2 / np.maximum(np.delete(cases, k), 1)).sum(axis=1)
    rate: Floats = others @ np.delete(above, k)
    true = generator.beta(cases[k] * above[k] + _PSEUDO, cases[k] * (1 - above[k]) + _PSEUDO, len(drawn))
    false: Floats = generator.beta(worth * rate + _PSEUDO, worth * (1 - rate) + _PSEUDO)
    share = drawn[:, k]
    return sample.link(share * true, (1 - share) * false, share)


def _drawn_prevalences(
    prevalence: Floats, covariance: ArrayLike | None, draws: int, generator: np.random.Generator
) -> Floats:
    """Draws of the prevalence, shape (B, C), on the simplex."""
    if covariance is None:
        return np.tile(prevalence, (draws, 1))
    matrix = as_parameter(covariance, field="covariance")
    if matrix.shape != (prevalence.size, prevalence.size):
        raise InvalidInputError(
            f"expected shape {(prevalence.size, prevalence.size)}, got {matrix.shape}.", field="covariance"
        )
    drawn = generator.multivariate_normal(prevalence, matrix, size=draws, check_valid="ignore", method="eigh")
    # A prevalence estimated as 0 is positive in half of the draws; none becomes smaller than the smallest share.
    drawn = np.maximum(drawn, np.minimum(prevalence, _SMALLEST_SHARE))
    return drawn / drawn.sum(axis=1, keepdims=True)
