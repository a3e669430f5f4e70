"""The calibration set as the rule of a head sees it: the rates of each class at a cut-off, and the rule's metric."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.decision_rules.operating_points import ChosenPoint, OperatingPoints
from lifelong_core.decision_rules.rates import metric_of
from lifelong_core.decision_rules.rules import MetricRule
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.labeled import LabeledLogits, independent_cases
from lifelong_core.values.arrays import Floats, Integers

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
