"""Realised performance: how good the decisions were, where labels have come in."""

from lifelong_core.errors import LifelongError
from lifelong_core.metrics import accuracy, confusion_matrix, expected_cost
from lifelong_core.store import LabelledPredictions, Store
from lifelong_core.store.records import Model, Task
from lifelong_monitor.status import LeftOutMetric, RealisedMetric, RealisedPerformance


def realised_performance(
    store: Store, task: Task, model: Model, environment: str, *, limit: int
) -> RealisedPerformance | None:
    """Accuracy, expected cost and what the task's recommendation names, of the decisions as they were made, by
    whichever head served then.

    Args:
        store: holds the labels.
        task: of the model; its costs weigh the mistakes.
        model: whose decisions.
        environment: from where.
        limit: the newest labelled predictions that count.

    Returns:
        None while no prediction has a label.
    """
    labelled = store.labels.labelled(model.id, environment, limit=limit)
    if labelled.labels.size == 0:
        return None
    classes, decisions = task.costs.shape
    confusion = confusion_matrix(
        labelled.labels, labelled.decisions, classes=classes, decisions_count=decisions
    )
    metrics, left_out = _recommended(store, task, labelled)
    return RealisedPerformance(
        samples=int(labelled.labels.size),
        accuracy=accuracy(confusion),
        expected_cost=expected_cost(confusion, task.costs),
        metrics=metrics,
        left_out=left_out,
    )


def _recommended(
    store: Store, task: Task, labelled: LabelledPredictions
) -> tuple[tuple[RealisedMetric, ...], tuple[LeftOutMetric, ...]]:
    attached = store.recommendations.current(task.name)
    if attached is None:
        return (), ()
    # Takes a moment, and only where it is needed.
    from lifelong_monitor.recommended import realised_metrics

    classes, decisions = task.costs.shape
    try:
        return realised_metrics(attached, labelled, classes=classes, decisions=decisions)
    except LifelongError as error:
        # The other figures do not depend on it.
        return (), (LeftOutMetric(attached.name, str(error)),)
