"""Checks of labelled predictions: are the answered probabilities calibrated, and which predictions got labels?"""

import numpy as np

from lifelong_core.deploy.performance.labelled.agreement import LEAST_LABELS
from lifelong_core.deploy.performance.labelled.calibration_drift import calibration_drift
from lifelong_core.deploy.performance.labelled.selection import selection_test
from lifelong_core.store import LabelledPredictions, Window
from lifelong_core.store.performance.records import LabelCheck
from lifelong_core.values.errors import InvalidInputError
from lifelong_monitor.realised.answered_predictions import HeadOf, compute_answers
from lifelong_monitor.realised.labelled_figures import select_rows


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
        found = calibration_drift(
            answers.probabilities[place],
            labelled.labels[chosen.rows],
            propensities=chosen.propensities,
            groups=None if labelled.groups is None else labelled.groups[chosen.rows],
        )
    except InvalidInputError as error:
        return f"The calibration on labelled predictions is not tested: {error}"
    return LabelCheck(found.p_value, found.level, found.rejected, found.samples, found.text)


def check_selection(labelled: LabelledPredictions, window: Window) -> LabelCheck | str | None:
    """Test whether the labelled predictions of a window differ from the unlabelled ones.

    Args:
        labelled: predictions with a label; those outside the window do not count.
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
        found = selection_test(
            labelled.logits[chosen.rows],
            window.logits[~inside],
            labelled_groups=None if labelled.groups is None else labelled.groups[chosen.rows],
            unlabelled_groups=None if window.groups is None else window.groups[~inside],
            weights=None if chosen.propensities is None else 1 / chosen.propensities,
        )
    except InvalidInputError as error:
        return f"The choice of the labelled predictions is not tested: {error}"
    return LabelCheck(found.p_value, found.level, found.rejected, found.labelled, found.text)
