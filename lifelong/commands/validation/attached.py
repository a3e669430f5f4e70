"""What a task has, in the local store or in the service that LIFELONG_URL names: its classes and its recommendation."""

from dataclasses import dataclass

from lifelong.commands.connection import Connection
from lifelong_core.design import AcceptanceThreshold, Recommendation
from lifelong_core.entities.registry import TaskAnswer
from lifelong_core.operations.recommendations import ListRecommendations, ShowCurrentRecommendation
from lifelong_core.operations.tasks import ListTasks
from lifelong_core.values.errors import NotFoundError


@dataclass(frozen=True)
class InForce:
    """The recommendation in force of a task."""

    version: int
    recommendation: Recommendation | None
    """None: it is damaged"""
    thresholds: tuple[AcceptanceThreshold, ...] = ()


def find_task(connection: Connection, name: str) -> TaskAnswer:
    """The task of that name.

    Raises:
        NotFoundError: there is none.
    """
    for task in connection.send(ListTasks()).tasks:
        if task.name == name:
            return task
    raise NotFoundError(
        f"there is no task {name[:80]!r}.", field="task", hint="List them: GET /v1/admin/tasks."
    )


def in_force(connection: Connection, task: str) -> InForce | None:
    """The recommendation in force of a task, even if it is damaged; None: the task has none.

    Raises:
        NotFoundError: there is no such task.
    """
    attached = connection.send(ListRecommendations(task=task)).recommendations
    if attached and attached[-1].damaged is not None:
        return InForce(attached[-1].version, None)
    return readable(connection, task) if attached else None


def readable(connection: Connection, task: str) -> InForce | None:
    """The recommendation in force of a task; None: the task has none.

    Raises:
        NotFoundError: there is no such task.
        UnavailableError: the recommendation is damaged.
    """
    try:
        current = connection.send(ShowCurrentRecommendation(task=task))
    except NotFoundError as error:
        if error.field == "version":
            return None
        raise
    recommendation = Recommendation.from_document(current.recommendation["document"])
    thresholds = tuple(AcceptanceThreshold.model_validate(threshold) for threshold in current.thresholds)
    return InForce(current.version, recommendation, thresholds)
