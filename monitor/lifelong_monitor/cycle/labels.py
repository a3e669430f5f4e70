"""The labels of a window as evidence of the prevalence."""

from datetime import datetime

import numpy as np

from lifelong_core.deploy.adaptation.context import LabelledEvidence
from lifelong_core.store import Store, logged_at
from lifelong_core.store.performance.realised import select_rows
from lifelong_monitor.cycle.window import CycleWindow

MOST_LABELS = 5_000
"""Largest number of labels that a cycle uses, the newest; its report holds them."""


def load_labelled_evidence(
    store: Store,
    model_id: int,
    environment: str,
    window: CycleWindow,
    *,
    classes: int,
    recorded_by: datetime,
    limit: int,
) -> LabelledEvidence | None:
    """Load the labels of the predictions of a window; None: there are none.

    Args:
        store: with the labels.
        model_id: of the population.
        environment: of the population.
        window: of the cycle.
        classes: number of classes of the model.
        recorded_by: only labels recorded up to then count.
        limit: largest number of labels, at most MOST_LABELS.
    """
    if not len(window.times):
        return None
    labelled = store.labels.newest_labelled(
        model_id, environment, limit=min(limit, MOST_LABELS), classes=classes, recorded_by=recorded_by
    )
    times = np.array([logged_at(one).timestamp() for one in labelled.ids])
    inside = np.flatnonzero(times >= window.times[0])
    chosen = select_rows(labelled, inside)
    if not chosen.rows.size:
        return None
    groups = None
    if labelled.groups is not None:
        groups = np.unique(labelled.groups[chosen.rows], return_inverse=True)[1]
    return LabelledEvidence(labelled.labels[chosen.rows], times[chosen.rows], chosen.propensities, groups)
