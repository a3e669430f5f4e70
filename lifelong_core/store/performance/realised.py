"""Accuracy and expected cost of labelled predictions: the rows that count together, and the figures with intervals."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.performance.labelled.agreement import LEAST_LABELS
from lifelong_core.deploy.performance.labelled.weighted import weighted_estimate
from lifelong_core.entities.performance import METRICS, Realised
from lifelong_core.store.log.records import LabelledPredictions
from lifelong_core.values.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of labelled predictions that count together."""

    rows: Integers
    """shape (m,), indices"""
    propensities: Floats | None
    """shape (m,), probability with which each was chosen for labelling; None: unknown, all count equally"""


def select_rows(labelled: LabelledPredictions, rows: Integers) -> LabelledRows:
    """Select the rows that count together.

    Labels with a known labelling probability are a sample of the predictions; others came by an unknown choice. Where
    both occur, only the former count if there are at least LEAST_LABELS of them; else all count equally.

    Args:
        labelled: the predictions.
        rows: shape (n,), indices to select from.
    """
    if labelled.propensities is None:
        return LabelledRows(rows, None)
    propensities = labelled.propensities[rows]
    is_known = np.isfinite(propensities)
    if not is_known.all() and is_known.sum() < LEAST_LABELS:
        return LabelledRows(rows, None)
    return LabelledRows(rows[is_known], propensities[is_known])


def realised_figures(
    labelled: LabelledPredictions,
    rows: Integers,
    costs: Floats,
    *,
    error_rates: ArrayLike | None,
    confidence: float,
) -> Realised | None:
    """Compute accuracy and expected cost of some labelled predictions, as they were answered.

    Args:
        labelled: the predictions.
        rows: shape (n,), indices of the predictions that count.
        costs: shape (C, D), that weigh the mistakes.
        error_rates: shape (C,), largest share of wrong labels of each class; None: no label is wrong.
        confidence: nominal coverage of the intervals.

    Returns:
        None without a row.
    """
    chosen = select_rows(labelled, rows)
    if not chosen.rows.size:
        return None
    estimates = weighted_estimate(
        labelled.decisions[chosen.rows],
        labelled.labels[chosen.rows],
        classes=costs.shape[0],
        costs=costs,
        metrics=METRICS,
        propensities=chosen.propensities,
        groups=None if labelled.groups is None else labelled.groups[chosen.rows],
        error_rates=error_rates,
        confidence=confidence,
    )
    return Realised(estimates.labelled, {name: estimates.estimates[name] for name in METRICS})
