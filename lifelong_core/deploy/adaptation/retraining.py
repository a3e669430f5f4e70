"""Should another model be trained? Judged from successive looks at a population; a person decides.

A look counts only with data of its own, so that a burst of unusual samples that stays in sliding windows for many
cycles counts once.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.head_fitting import held_out_output
from lifelong_core.deploy.labeled import LabeledLogits, class_means
from lifelong_core.deploy.quantification.prevalence_estimate import PrevalenceEstimate
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import t_quantile

RetrainingReason: TypeAlias = Literal["estimated_performance", "realised_performance", "repeated_refusals"]

LOOK_FIRST: Final[Mapping[RetrainingReason, str]] = MappingProxyType(
    {
        "estimated_performance": "Compare the estimated prevalence with what is known of the patients there. If it is"
        " right, the model is not good enough for this mix of classes, and a swap of the head does not help.",
        "realised_performance": "Check a sample of the labels: a changed labelling habit, or labels of difficult cases"
        " only, look like a worse model.",
        "repeated_refusals": "Look at recent images and their way here first: a broken or new scanner, another"
        " protocol or a changed preprocessing is corrected at its source. Retraining needs labelled images of this"
        " place.",
    }
)
"""Checks for a person before a retraining."""


@dataclass(frozen=True)
class MissedThreshold:
    """A figure whose whole interval is on the wrong side of its threshold."""

    metric: str
    """its label; `assumption_p_value`: of the test that only the prevalence has changed"""
    class_index: int | None
    """None: of all classes"""
    value: float
    low: float | None
    high: float | None
    """ends of the interval; None: the figure has none"""
    threshold: float

    @property
    def key(self) -> tuple[str, int | None]:
        """What is compared with the threshold."""
        return self.metric, self.class_index


@dataclass(frozen=True)
class Look:
    """Results of one cycle of a population that count for a retraining."""

    cycle: str
    """id of the cycle"""
    at: datetime
    later: int
    """samples that came after those of this look, up to the newest look"""
    span: int
    """samples that lie between the end of an earlier look and the end of this one, if they share none"""
    missed: tuple[MissedThreshold, ...] | None
    """empty: nothing is missed; None: this look cannot tell"""
    is_fine: bool = False
    """whether the figures themselves reach their thresholds, not only one end of their intervals"""


@dataclass(frozen=True)
class RetrainingNeed:
    """Why a model should be trained again, seen in successive looks."""

    reason: RetrainingReason
    missed: tuple[MissedThreshold, ...]
    """of the newest look"""
    since: datetime
    """time of the first look that counts"""
    cycles: tuple[str, ...]
    """of the looks that count for the first figure, oldest first"""

    def to_document(self) -> dict[str, Any]:
        """All but the reason as JSON values, with what a person should look at first."""
        return {
            "missed": [_finite(asdict(figure)) for figure in self.missed],
            "since": self.since.isoformat(),
            "cycles": list(self.cycles),
            "look_first": LOOK_FIRST[self.reason],
        }


def judge_retraining(reason: RetrainingReason, looks: Iterable[Look], cycles: int) -> RetrainingNeed | None:
    """Propose a retraining if a figure misses its threshold in so many successive looks that share no sample.

    Going back from the newest look, a look that misses the figure counts if it shares no sample with the one counted
    before; one that reaches the threshold, or whose interval contains it, ends the search. Looks that cannot tell are
    passed over; without a verdict of the newest look nothing is proposed.

    Args:
        reason: what the looks are about.
        looks: newest first; no more are taken than needed.
        cycles: looks that have to count, at least 1.

    Returns:
        None: there is no such figure.

    Raises:
        InvalidInputError: `cycles` is not positive.

    Examples:
        >>> missed = (MissedThreshold("AC", None, 0.7, 0.65, 0.75, 0.8),)
        >>> looks = [Look(str(i), datetime(2026, 1, 9 - i), later=50 * i, span=100, missed=missed) for i in range(5)]
        >>> judge_retraining("estimated_performance", looks, cycles=3).cycles
        ('4', '2', '0')
        >>> judge_retraining("estimated_performance", looks, cycles=4) is None
        True
    """
    if cycles < 1:
        raise InvalidInputError(f"expected at least 1 cycle, got {cycles}.", field="cycles")
    remaining = iter(looks)
    newest = next(remaining, None)
    if newest is None or not newest.missed:
        return None
    counted = {figure.key: [newest] for figure in newest.missed}
    ongoing = set(counted)
    while any(len(counted[key]) < cycles for key in ongoing):
        look = next(remaining, None)
        if look is None:
            break
        if look.missed is None:
            continue
        ongoing &= {figure.key for figure in look.missed}
        for key in ongoing:
            last = counted[key][-1]
            if len(counted[key]) < cycles and look.later - last.later >= last.span:
                counted[key].append(look)
    lasting = tuple(figure for figure in newest.missed if len(counted[figure.key]) == cycles)
    if not lasting:
        return None
    first = min(chain.from_iterable(counted[figure.key] for figure in lasting), key=lambda look: look.at)
    shown = tuple(look.cycle for look in reversed(counted[lasting[0].key]))
    return RetrainingNeed(reason, lasting, first.at, shown)


def _finite(figures: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity; such an end of an interval is None."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in figures.items()
    }


@dataclass(frozen=True)
class ExpectedFigure:
    """An expected performance with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class ClassPerformance:
    """Mean of a figure per class on the calibration set, with the influence of each of its groups."""

    means: Floats
    """shape (C,)"""
    covariance: Floats
    """shape (C, C), of the means"""

    def expected(self, estimate: PrevalenceEstimate) -> ExpectedFigure | None:
        """The mean in a population with the estimated prevalence (thesis Prop. 2.25), under a pure prevalence shift.

        The errors of prevalence and class means come partly from the same calibration samples, so their standard
        errors are added as if they were fully correlated: the interval is rather too wide.

        Args:
            estimate: of the population; the interval has its confidence.

        Returns:
            None: the spread of the estimate is unknown.
        """
        freedom = float(estimate.degrees_of_freedom.min())
        if freedom <= 0:
            return None
        prevalence = estimate.prevalence
        spread = np.sqrt(max(float(self.means @ estimate.covariance @ self.means), 0.0))
        error = spread + np.sqrt(float(prevalence @ self.covariance @ prevalence))
        reach = error * float(t_quantile(freedom, (1 + estimate.confidence) / 2))
        value = float(prevalence @ self.means)
        return ExpectedFigure(value, value - reach, value + reach)


def class_performances(
    calibration: LabeledLogits, head: PostProcessingHead
) -> dict[Literal["AC", "EC"], ClassPerformance]:
    """Performance of a head per class, held out where it was fitted on these samples.

    Args:
        calibration: with every class.
        head: its decisions are judged.

    Returns:
        AC: share of right decisions, to abstain is not right. EC: mean cost of the decisions.
    """
    decisions, labels = held_out_output(calibration, head).decisions, calibration.labels
    right = (decisions == labels).astype(np.float64)
    extremes = np.stack([head.costs.min(axis=1), head.costs.max(axis=1)], axis=1)
    return {
        "AC": _of_values(right, calibration, np.tile([0.0, 1.0], (calibration.classes, 1))),
        "EC": _of_values(head.costs[labels, decisions], calibration, extremes),
    }


def _of_values(values: Floats, calibration: LabeledLogits, extremes: Floats) -> ClassPerformance:
    """Means per class, and their covariance.

    Two pseudo samples per class, with the smallest and the largest possible value, widen the spread: without an error
    among a few samples it would be 0 (Agresti and Coull 1998). They do not move the means.

    Args:
        values: shape (M,), one for each calibration sample.
        calibration: samples of one group depend on each other.
        extremes: shape (C, 2), the possible range per class.
    """
    counts, labels = calibration.counts, calibration.labels
    means = class_means(values, calibration)
    influence = np.zeros((calibration.samples, calibration.classes))
    influence[np.arange(labels.size), labels] = (values - means[labels]) / (counts[labels] + 2)
    if calibration.groups is not None:
        _, group = np.unique(calibration.groups, return_inverse=True)
        summed = np.zeros((int(group.max()) + 1, calibration.classes))
        np.add.at(summed, group, influence)
        influence = summed
    pseudo = ((extremes - means[:, np.newaxis]) / (counts + 2)[:, np.newaxis]) ** 2
    return ClassPerformance(means, influence.T @ influence + np.diag(pseudo.sum(axis=1)))
