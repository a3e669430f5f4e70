"""Do estimated and realised performance agree?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from lifelong_core.deploy.checks import as_level
from lifelong_core.deploy.documents import FlatDocument
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import normal_probability, normal_quantile

Verdict: TypeAlias = Literal["agree", "disagree", "too_few_labels"]

LEAST_LABELS = 30
"""Default number of labelled samples below which nothing is stated."""


@dataclass(frozen=True)
class Agreement(FlatDocument):
    """Comparison of an estimated metric with the realised one."""

    verdict: Verdict
    difference: float | None
    """realised minus estimated; None: one of them is undefined"""
    statistic: float | None
    """difference over its standard error, approximately normal where the two agree; None: unknown"""
    p_value: float | None
    """two-sided; None: unknown"""
    level: float
    """the two disagree where the p-value is below"""
    text: str
    """one sentence"""


def agreement(
    estimated: EstimatedMetric,
    realised: EstimatedMetric,
    *,
    labelled: int,
    name: str = "AC",
    confidence: float = 0.95,
    level: float = 0.05,
    least_labels: int = LEAST_LABELS,
) -> Agreement:
    """Compare an estimated metric with the realised one.

    The standard error of the difference adds up those of both, as for independent data. Where the labelled samples are
    part of the window of the estimate, this is an approximation: the two share samples, so that the true error is
    smaller, and a disagreement is stated less often than the level allows.

    Args:
        estimated: value and interval without labels.
        realised: value and interval with labels.
        labelled: samples with label.
        name: key of the metric, for the sentence.
        confidence: nominal coverage of both intervals.
        level: largest probability of "disagree" where the two agree.
        least_labels: labelled samples from which on a verdict is stated.

    Raises:
        InvalidInputError: a value does not fit.

    Examples:
        >>> close = agreement(EstimatedMetric(0.9, 0.86, 0.94), EstimatedMetric(0.88, 0.8, 0.96), labelled=80)
        >>> close.verdict, close.text
        ('agree', 'AC: the realised 0.880 agrees with the estimated 0.900 (p = 0.66).')
    """
    accepted, certainty = as_level(level, "level"), as_level(confidence, "confidence")
    if labelled < 0:
        raise InvalidInputError("expected a number that is not negative.", field="labelled")
    if labelled < least_labels or not np.isfinite([*estimated, *realised]).all():
        text = f"{name}: {labelled} labelled samples are too few for a comparison (at least {least_labels})."
        if labelled >= least_labels:
            text = f"{name}: no comparison, because one of the two values is undefined."
        return Agreement("too_few_labels", None, None, None, accepted, text)
    difference = realised.value - estimated.value
    quantile = float(normal_quantile((1 + certainty) / 2))
    # The half of each interval that points to the other value: intervals of shares are not symmetric.
    ours = estimated.high - estimated.value if difference > 0 else estimated.value - estimated.low
    theirs = realised.value - realised.low if difference > 0 else realised.high - realised.value
    error = float(np.hypot(ours, theirs)) / quantile
    statistic = difference / error if error > 0 else (0.0 if difference == 0 else float("inf"))
    statistic = float(np.copysign(abs(statistic), difference))
    p_value = float(2 * normal_probability(-abs(statistic)))
    if not np.isfinite(statistic):
        statistic = float(np.copysign(np.finfo(np.float64).max, difference))
    found = Agreement("agree", difference, statistic, p_value, accepted, "")
    return _judged(found, name, estimated.value, realised.value)


def adjust_for_number(agreements: Sequence[Agreement]) -> tuple[Agreement, ...]:
    """Judge several comparisons together, e.g. time buckets: p-values by Holm (1979).

    The probability that any comparison of values that agree says "disagree" is then at most the level, whatever the
    dependence of the comparisons. Comparisons with too few labels stay as they are and do not count.
    """
    judged = [index for index, one in enumerate(agreements) if one.p_value is not None]
    found = list(agreements)
    largest = 0.0
    for rank, index in enumerate(sorted(judged, key=lambda place: agreements[place].p_value or 0.0)):
        one = agreements[index]
        largest = max(largest, min(1.0, (len(judged) - rank) * (one.p_value or 0.0)))
        verdict: Verdict = "disagree" if largest < one.level else "agree"
        text = one.text
        if verdict != one.verdict:
            text += f" Among {len(judged)} comparisons this is not unusual (adjusted p = {largest:.2g})."
        found[index] = replace(one, verdict=verdict, p_value=largest, text=text)
    return tuple(found)


def _judged(agreement: Agreement, name: str, estimated: float, realised: float) -> Agreement:
    disagrees = agreement.p_value is not None and agreement.p_value < agreement.level
    verb = "differs from" if disagrees else "agrees with"
    text = f"{name}: the realised {realised:.3f} {verb} the estimated {estimated:.3f} (p = {agreement.p_value:.2g})."
    return replace(agreement, verdict="disagree" if disagrees else "agree", text=text)
