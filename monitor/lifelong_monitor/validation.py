"""Realised performance: how good the decisions were, where labels have come in."""

from lifelong_core.metrics import accuracy, confusion_matrix, expected_cost
from lifelong_core.store import Store
from lifelong_core.store.records import Model, Task
from lifelong_monitor.status import RealisedPerformance


def realised_performance(
    store: Store, task: Task, model: Model, environment: str, *, limit: int
) -> RealisedPerformance | None:
    """Accuracy and expected cost of the decisions as they were made, by whichever head served then.

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
    return RealisedPerformance(
        samples=int(labelled.labels.size),
        accuracy=accuracy(confusion),
        expected_cost=expected_cost(confusion, task.costs),
    )
