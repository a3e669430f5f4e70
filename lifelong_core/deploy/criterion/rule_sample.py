"""The calibration set as a decision rule sees it: rates of each class at a cut-off, the metric, and random draws."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.decision_rules.operating_points import ChosenPoint, OperatingPoints, metric_of
from lifelong_core.decision_rules.rules import MetricRule
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.labeled import LabeledLogits, independent_cases
from lifelong_core.values.arrays import Floats, Integers, as_parameter
from lifelong_core.values.errors import InvalidInputError

PSEUDO_SAMPLES = 0.5
"""on either side of a cut-off (Jeffreys' prior)"""
SMALLEST_SHARE = 1e-6
_WANTED_WIDTH = 0.05
_NORMAL = 1.96


@dataclass(frozen=True, eq=False)
class RuleSample:
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
        """The calibration samples of a head with this rule."""
        scores = head.apply(calibration.logits).probabilities[:, rule.positive_class]
        points = OperatingPoints.of(scores)
        positive = int((scores >= (head.cut_off or 0.0)).sum())
        return cls(rule, points, calibration.labels[points.order], calibration.counts, positive)

    def rates(self, weights: Floats | None, end: int) -> Floats:
        """Share of each class among the first `end` samples, shape (C,), with weights of the ordered samples, (M,)."""
        classes, head = self.counts.size, None if weights is None else weights[:end]
        above = np.bincount(self.labels[:end], head, minlength=classes)
        total = np.bincount(self.labels, weights, minlength=classes)
        return (above + PSEUDO_SAMPLES) / (total + 2 * PSEUDO_SAMPLES)

    def choose(self, drawn: Floats | None, prevalence: Floats) -> ChosenPoint:
        """The operating point that the rule chooses; `drawn`, (M,), is how often each ordered sample counts."""
        return self.points.choose(self.rule, self.labels, prevalence, drawn=drawn)

    def linked(self, rates: Floats, prevalence: Floats) -> float:
        """Logit of the rule's metric where these rates of the classes, (C,), are called positive."""
        joint, k = rates * prevalence, self.rule.positive_class
        return float(self.link(joint[k], joint.sum() - joint[k], prevalence[k]))

    def link(self, tp: Floats, fp: Floats, share: Floats) -> Floats:
        """Logit of the rule's metric (of MCC: as a part of its range), shape (...), from shares of all cases."""
        value = metric_of(self.rule)(np.asarray(tp), np.asarray(fp), np.asarray(share))
        part = (value + 1) / 2 if self.rule.metric == "MCC" else value
        part = np.clip(np.where(np.isnan(part), 0.5, part), SMALLEST_SHARE, 1 - SMALLEST_SHARE)
        return np.log(part / (1 - part))

    def unlink(self, value: float) -> float:
        """The metric of which this is the link."""
        share = float(1 / (1 + np.exp(-value)))
        return 2 * share - 1 if self.rule.metric == "MCC" else share

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
        others = float(np.delete(prevalence * rates, k).sum() / max(1 - prevalence[k], SMALLEST_SHARE))
        if self.rule.metric in ("TPR", "TNR"):
            needed = _NORMAL**2 * value * (1 - value) / _WANTED_WIDTH**2
        elif self.rule.metric in ("PPV", "NPV"):
            small = others if self.rule.metric == "PPV" else 1 - float(rates[k])
            needed = (_NORMAL * value * (1 - value) / _WANTED_WIDTH) ** 2 / max(small, SMALLEST_SHARE)
        else:
            return None
        return int(np.ceil(needed)) if needed > self.limiting_cases(calibration) else None


@dataclass(frozen=True)
class Resampled:
    """Values of the metric in draws of the calibration set and of the prevalence, in the link's scale."""

    differences: Floats
    """shape (B,): what the calibration set shows at the draw's cut-off, less what the draw shows there"""
    optimism: float
    """median of the differences, less their median where the cut-off is not chosen anew; negative: it looks better"""


def bootstrap(
    sample: RuleSample,
    calibration: LabeledLogits,
    drawn: Floats,
    prevalence: Floats,
    chosen_for: Floats | None,
    generator: np.random.Generator,
) -> Resampled:
    """Draw the calibration set; `chosen_for` is the prevalence for which each draw chooses its cut-off; None: it keeps
    the cut-off of the head.
    """
    anew, fixed = list[float](), list[float]()
    here = sample.linked(sample.rates(None, sample.at_cut_off), prevalence)
    for weights, shares in zip(_weights(sample, calibration, len(drawn), generator), drawn, strict=True):
        fixed.append(here - sample.linked(sample.rates(weights, sample.at_cut_off), shares))
        if chosen_for is None:
            continue
        end = sample.choose(weights, chosen_for).end
        shown = sample.linked(sample.rates(weights, end), shares)
        anew.append(sample.linked(sample.rates(None, end), prevalence) - shown)
    if not anew:
        return Resampled(np.array(fixed), 0.0)
    return Resampled(np.array(anew), float(np.median(anew) - np.median(fixed)))


def _weights(
    sample: RuleSample, calibration: LabeledLogits, draws: int, generator: np.random.Generator
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


def posterior(
    sample: RuleSample, calibration: LabeledLogits, drawn: Floats, generator: np.random.Generator
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
    true = generator.beta(
        cases[k] * above[k] + PSEUDO_SAMPLES, cases[k] * (1 - above[k]) + PSEUDO_SAMPLES, len(drawn)
    )
    false: Floats = generator.beta(worth * rate + PSEUDO_SAMPLES, worth * (1 - rate) + PSEUDO_SAMPLES)
    share = drawn[:, k]
    return sample.link(share * true, (1 - share) * false, share)


def drawn_prevalences(
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
    drawn = np.maximum(drawn, np.minimum(prevalence, SMALLEST_SHARE))
    return drawn / drawn.sum(axis=1, keepdims=True)
