"""The answered probabilities of labelled predictions, and two checks: their calibration, and the choice of the labels.

The log holds the logits but not the probabilities; the head that answered never changes, so it gives them again.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.deploy.performance.labelled.agreement import LEAST_LABELS
from lifelong_core.deploy.performance.labelled.calibration_drift import calibration_drift
from lifelong_core.deploy.performance.labelled.selection import selection_test
from lifelong_core.entities.performance import LabelCheck
from lifelong_core.store import LabelledPredictions, Window
from lifelong_core.store.heads.rows import DamagedHeadError
from lifelong_core.store.performance.realised import select_rows
from lifelong_core.values.arrays import Floats, Integers, Logits, Mask
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from lifelong_monitor.realised.records import LeftOutPredictions

HeadOf: TypeAlias = Callable[[int], PostProcessingHead]
"""The head of a version; raises NotFoundError or DamagedHeadError."""

_NO_PROBABILITIES = "have no probabilities for the metrics that judge these"


@dataclass(frozen=True, eq=False)
class AnsweredPredictions:
    """Probabilities that clients received, as far as they can be computed again."""

    is_known: Mask
    """shape (N,), of the predictions"""
    probabilities: Floats
    """shape (K, C), of the K that are known, calibrated for what the head assumed that answered"""
    unscored: tuple[LeftOutPredictions, ...]
    """the others"""


def compute_answers(
    logits: Logits, head_versions: Integers, head_of: HeadOf, *, classes: int
) -> AnsweredPredictions:
    """Compute the probabilities that each head answered.

    Args:
        logits: shape (N, C), as they were logged.
        head_versions: shape (N,), of the heads that answered.
        head_of: gives the heads.
        classes: number of classes C of the task.
    """
    is_known: Mask = np.asarray(np.isfinite(logits).all(axis=1))
    left_out = Counter({f"{_NO_PROBABILITIES}: their logits are not finite": int((~is_known).sum())})
    probabilities = np.empty((len(logits), classes))
    for version in np.unique(head_versions[is_known]).tolist():
        rows = np.flatnonzero(is_known & (head_versions == version))
        head = _head(head_of, version, classes)
        if isinstance(head, PostProcessingHead):
            probabilities[rows] = head.apply(logits[rows]).probabilities
        else:
            is_known[rows] = False
            left_out[f"{_NO_PROBABILITIES}: {head}"] += rows.size
    return AnsweredPredictions(
        is_known=is_known,
        probabilities=probabilities[is_known],
        unscored=tuple(
            LeftOutPredictions(samples, reason) for reason, samples in left_out.items() if samples
        ),
    )


def _head(head_of: HeadOf, version: int, classes: int) -> PostProcessingHead | str:
    """Return the head, or why it cannot be used."""
    try:
        head = head_of(version)
    except (NotFoundError, DamagedHeadError) as error:
        return str(error)
    return head if head.classes == classes else f"head {version} is for {head.classes} classes, not {classes}"


def check_calibration(
    labelled: LabelledPredictions, head_of: HeadOf, *, classes: int
) -> LabelCheck | str | None:
    """Test whether the probabilities that clients got are calibrated on the labelled predictions.

    Returns:
        The test; None: there are too few labels; a text: why it cannot be computed.
    """
    answers = compute_answers(labelled.logits, labelled.head_versions, head_of, classes=classes)
    known = np.flatnonzero(answers.is_known)
    chosen = select_rows(labelled, known)
    if chosen.rows.size < LEAST_LABELS:
        return None
    place = np.searchsorted(known, chosen.rows)
    try:
        drift = calibration_drift(
            answers.probabilities[place],
            labelled.labels[chosen.rows],
            propensities=chosen.propensities,
            groups=None if labelled.groups is None else labelled.groups[chosen.rows],
        )
    except InvalidInputError as error:
        return f"The calibration on labelled predictions is not tested: {error}"
    return LabelCheck(drift.p_value, drift.level, drift.rejected, drift.samples, drift.text)


def check_selection(labelled: LabelledPredictions, window: Window) -> LabelCheck | str | None:
    """Test whether the labelled predictions of a window differ from the unlabelled ones.

    Args:
        labelled: predictions with a label; predictions outside the window do not count.
        window: all predictions of a period.

    Returns:
        The test; None: there are too few of one kind; a text: why it cannot be computed.
    """
    place = {identifier: row for row, identifier in enumerate(labelled.ids)}
    inside = np.array([identifier in place for identifier in window.ids], dtype=bool)
    rows = np.array([place[identifier] for identifier in window.ids if identifier in place], dtype=np.int64)
    chosen = select_rows(labelled, rows)
    if min(chosen.rows.size, (~inside).sum()) < LEAST_LABELS:
        return None
    try:
        test = selection_test(
            labelled.logits[chosen.rows],
            window.logits[~inside],
            labelled_groups=None if labelled.groups is None else labelled.groups[chosen.rows],
            unlabelled_groups=None if window.groups is None else window.groups[~inside],
            weights=None if chosen.propensities is None else 1 / chosen.propensities,
        )
    except InvalidInputError as error:
        return f"The choice of the labelled predictions is not tested: {error}"
    return LabelCheck(test.p_value, test.level, test.rejected, test.labelled, test.text)
