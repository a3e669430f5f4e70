"""Expected accuracy and cost of a head in a population whose prevalence was estimated, from the calibration set."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.head_fitting import held_out_output
from lifelong_core.deploy.labeled import LabeledLogits, class_means
from lifelong_core.deploy.quantification.prevalence_estimate import PrevalenceEstimate
from lifelong_core.values.arrays import Floats
from lifelong_core.values.scientific import t_quantile


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
