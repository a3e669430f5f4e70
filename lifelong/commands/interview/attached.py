"""The recommendation of a task, in the local store or in the service that LIFELONG_URL names: read and attach it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lifelong.commands.connection import Connection, connect
from lifelong_core.design import AcceptanceThreshold, Recommendation
from lifelong_core.entities.design.recommendations import NewlyAttached
from lifelong_core.entities.registry import TaskAnswer
from lifelong_core.operations.design.recommendations import (
    AttachRecommendation,
    ListRecommendations,
    ShowCurrentRecommendation,
    Threshold,
)
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


def attach(
    recommendation: Recommendation, options: dict[str, Any], thresholds: list[AcceptanceThreshold]
) -> list[str]:
    """Attach the recommendation, and return what it changed, in sentences."""
    task = options["attach"]
    with connect() as connection:
        before = in_force(connection, task)
        thresholds, note = (thresholds, None) if thresholds else _earlier_thresholds(before, recommendation)
        attached = connection.send(
            AttachRecommendation(
                task=task,
                recommendation=recommendation.to_document(),
                thresholds=[Threshold(**threshold.model_dump()) for threshold in thresholds],
                expected_version=None if note is None or before is None else before.version,
                refit_head=options["refit_head"],
                force_reason=options["force_because"],
            )
        )
    said = f"Recommendation {attached.version} is attached to {options['attach']}"
    count = f"{len(thresholds)} threshold{'s' if len(thresholds) > 1 else ''}"
    limits = f" with {count}" if thresholds else ""
    return [f"{said}{limits}.", *([] if note is None else [note]), *_effects(attached)]


def _earlier_thresholds(
    before: InForce | None, recommendation: Recommendation
) -> tuple[list[AcceptanceThreshold], str | None]:
    """The thresholds to keep where no --threshold is given, and a sentence about the earlier ones.

    They stay where the recommendation in force is the same one, whatever its text and the names of its classes.
    """
    if before is None:
        return [], None
    if before.recommendation is None:  # a damaged document must not prevent a new one
        return [], f"Version {before.version} is damaged; its thresholds are no longer in force."
    kept = list(before.thresholds)
    if not kept:
        return [], None
    count = f"{len(kept)} acceptance threshold{'s' if len(kept) > 1 else ''}"
    if before.recommendation.is_same(recommendation):
        return (
            kept,
            f"It is the same recommendation as version {before.version}, so its {count} stay in force.",
        )
    verb = "are" if len(kept) > 1 else "is"
    return [], f"{count} of version {before.version} {verb} no longer in force: state them with --threshold."


def _effects(attached: NewlyAttached) -> Iterator[str]:
    """The rule of the task, the heads that were fitted again, and those that decide otherwise."""
    yield f"The task decides by this rule: {attached.decision_rule_text}."
    if attached.not_executed is not None:
        yield f"It is not that of the answers: {attached.not_executed}"
    for head in attached.published:
        place = "default head" if head.environment is None else f"head of {head.environment}"
        yield f"Published {place}, version {head.version}."
    for head in attached.kept:
        place = "Default head" if head.environment is None else f"Head of {head.environment}"
        yield f"{place}, version {head.version}, stays: {head.reason}"
    for head in attached.differing_heads:
        yield f"Note: {head.sentence}"
    if attached.hint is not None:
        yield attached.hint
