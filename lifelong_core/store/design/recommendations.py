"""Recommendations attached to tasks: metrics, acceptance thresholds, costs and decision rule for their models."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from lifelong_core.entities.design.recommendations import AttachedRecommendation
from lifelong_core.entities.entity import text_digest
from lifelong_core.entities.registry import Task
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.documents import as_bytes, document_text
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.registry.registry import change_registry
from lifelong_core.store.registry.tasks import replace_costs, replace_decision_rule, task_named
from lifelong_core.store.schema import tables
from lifelong_core.values.arrays import Floats, as_costs
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError

if TYPE_CHECKING:
    from lifelong_core.design import Recommendation
    from lifelong_core.design.validation.acceptance import AcceptanceThreshold

_TEXTS = ("document", "thresholds")
_recommendations = tables.recommendations


class Recommendations(Repository):
    """Attaches and finds recommendations. They never change; the newest one of a task is in force."""

    def attach(
        self,
        task: str,
        recommendation: "Recommendation",
        *,
        thresholds: "Sequence[AcceptanceThreshold]" = (),
        expected_version: int | None = None,
        force_reason: str | None = None,
        actor: str,
    ) -> AttachedRecommendation:
        """Put a recommendation in force for a task, and give the task the costs and the decision rule that it states.

        Costs and decision rule of the fingerprint become those of the task, in the same transaction, unless no part of
        the recommendation depends on them (`unused`) or no head can execute the rule (`recommended_rule`). Published
        heads, and the heads that cycles derive from them, keep theirs: `attach_and_refit` also refits them.

        Args:
            task: the task.
            recommendation: for the classes of the task, in their order.
            thresholds: acceptance thresholds of models.
            expected_version: of the recommendation in force that the caller read (0: none); None: any.
            force_reason: reason for new costs that are implausible.
            actor: name for the audit log.

        Raises:
            NotFoundError: there is no such task.
            InvalidInputError: another number of classes, costs of another shape, new costs that are implausible and no
                reason, or thresholds of metrics that are not recommended.
            PayloadTooLargeError: the document is too large to be stored.
            ConflictError: another recommendation is in force than expected, or the costs have another number of
                decisions than the published heads.
        """
        with change_registry(self._database) as connection:
            return attach_recommendation(
                connection,
                task,
                recommendation,
                thresholds=thresholds,
                expected_version=expected_version,
                force_reason=force_reason,
                actor=actor,
            )

    def current(self, task: str) -> AttachedRecommendation | None:
        """The recommendation in force; None: the task has none.

        Raises:
            NotFoundError: there is no such task.
        """
        with self._database.read() as connection:
            found = task_named(connection, task)
            query = _of(connection, found).order_by(_recommendations.c.version.desc()).limit(1)
            row = connection.execute(query).one_or_none()
        return None if row is None else _attached(row, found)

    def required_accuracies(self) -> dict[int, float]:
        """The strictest acceptance threshold of accuracy in force of each task that has one, by task id."""
        table, newest = _recommendations, _recommendations.alias()
        of_task = sa.select(sa.func.max(newest.c.version)).where(newest.c.task_id == table.c.task_id)
        query = sa.select(table.c.task_id, table.c.thresholds).where(
            table.c.version == of_task.scalar_subquery()
        )
        accuracies: dict[int, float] = {}
        for row in self._rows(query):
            values = [one["value"] for one in json.loads(row.thresholds) if one["metric"] == "AC"]
            if values:
                accuracies[row.task_id] = max(values)
        return accuracies

    def get(self, task: str, version: int) -> AttachedRecommendation:
        """One recommendation of a task.

        Raises:
            NotFoundError: there is no such task or version.
        """
        with self._database.read() as connection:
            found = task_named(connection, task)
            query = _of(connection, found).where(_recommendations.c.version == version)
            row = connection.execute(query).one_or_none()
        if row is None:
            raise NotFoundError(f"the task {task} has no recommendation {version}.", field="version")
        return _attached(row, found)

    def list(self, task: str) -> list[AttachedRecommendation]:
        """All recommendations of a task, oldest first; a damaged one raises an error when it is read.

        Raises:
            NotFoundError: there is no such task.
        """
        with self._database.read() as connection:
            found = task_named(connection, task)
            rows = connection.execute(_of(connection, found).order_by(_recommendations.c.version)).all()
        return [_attached(row, found) for row in rows]


def attach_recommendation(
    connection: sa.Connection,
    task: str,
    recommendation: "Recommendation",
    *,
    thresholds: "Sequence[AcceptanceThreshold]",
    expected_version: int | None,
    force_reason: str | None,
    actor: str,
) -> AttachedRecommendation:
    """`Recommendations.attach` within a transaction that changes the registry."""
    if thresholds:
        from lifelong_core.design.validation.acceptance import check_thresholds

        check_thresholds(recommendation, thresholds)
    document = document_text(recommendation.to_json, field="recommendation")
    limits = document_text(lambda: _thresholds_text(thresholds), field="thresholds")
    task_found = task_named(connection, task)
    after = task_after(recommendation, task_found)
    version = _newest_version(connection, task_found)
    if expected_version not in (None, version):
        raise ConflictError(
            f"another recommendation was attached to {task} meanwhile (version {version},"
            f" expected {expected_version}).",
            field="expected_version",
            hint="Look at the present one and decide again.",
        )
    values = {
        "task_id": task_found.id,
        "version": version + 1,
        "document": document,
        "thresholds": limits,
        "digest": text_digest(document, limits),
        "created_at": now(),
        "created_by": actor,
    }
    insert = sa.insert(_recommendations).values(values).returning(_recommendations)
    attached = _attached(connection.execute(insert).one(), task_found)
    details: dict[str, Any] = {"version": attached.version, "digest": attached.digest}
    replace_costs(
        connection, task_found, after.costs, force_reason=force_reason, actor=actor, details=details
    )
    replace_decision_rule(connection, task_found, after.decision_rule, actor=actor, details=details)
    write_audit(connection, actor, "recommendations.attach", task, details)
    return attached


def task_after(recommendation: "Recommendation", task: Task) -> Task:
    """The task with the costs and the decision rule that a recommendation states, else its own.

    Raises:
        InvalidInputError: the recommendation or its costs are for another number of classes.
    """
    from lifelong_core.design.recommendation.stated_rule import recommended_rule

    costs, rule = _recommended_costs(recommendation, task), recommended_rule(recommendation).rule
    return replace(
        task,
        costs=task.costs if costs is None else costs,
        decision_rule=task.decision_rule if rule is None else rule,
    )


def _recommended_costs(recommendation: "Recommendation", task: Task) -> Floats | None:
    """The costs that a recommendation depends on; None: it depends on none."""
    fingerprint, classes = recommendation.fingerprint, len(task.class_names)
    if fingerprint.number_of_classes != classes:
        raise InvalidInputError(
            f"the recommendation is for {fingerprint.number_of_classes} classes, the task {task.name} has {classes}.",
            field="number_of_classes",
            hint="Hold an interview for the classes of this task.",
        )
    unused = {answer.item for answer in recommendation.unused}
    if fingerprint.costs is None or "costs" in unused:
        return None
    return as_costs(fingerprint.costs, classes=classes)


def _thresholds_text(thresholds: "Sequence[AcceptanceThreshold]") -> str:
    return f"[{','.join(threshold.model_dump_json() for threshold in thresholds)}]"


def _newest_version(connection: sa.Connection, task: Task) -> int:
    newest = sa.select(sa.func.coalesce(sa.func.max(_recommendations.c.version), 0))
    return connection.execute(newest.where(_recommendations.c.task_id == task.id)).scalar_one()


def _of(connection: sa.Connection, task: Task) -> sa.Select[Any]:
    columns = (
        as_bytes(connection, column) if column.name in _TEXTS else column for column in _recommendations.c
    )
    return sa.select(*columns).where(_recommendations.c.task_id == task.id)


def _attached(row: Row, task: Task) -> AttachedRecommendation:
    return AttachedRecommendation(
        task=task.name,
        version=row.version,
        document=_text(row.document),
        thresholds_document=_text(row.thresholds),
        digest=row.digest,
        created_at=row.created_at,
        created_by=row.created_by,
    )


def _text(kept: str | bytes) -> str:
    """The stored text; bytes that are not UTF-8 become a text with another digest than the attached one."""
    return kept if isinstance(kept, str) else kept.decode(errors="replace")
