"""The history of promotions and the trials that go on, within the caller's transaction.

Promotions are append-only. Each refers to the one that its roll-back restores, so repeated roll-backs go further back
and never forward.
"""

from collections.abc import Iterator

import sqlalchemy as sa

from lifelong_core.entities.develop.rollouts import Promotion, PromotionReason, Rollout, RolloutOutcome
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import Row, read_record
from lifelong_core.store.schema import tables

_promotions, _rollouts = tables.promotions, tables.rollouts


def list_promotions(connection: sa.Connection, task_id: int) -> list[Promotion]:
    """All promotions of a task, oldest first."""
    query = sa.select(_promotions).where(_promotions.c.task_id == task_id).order_by(_promotions.c.sequence)
    return [promotion_of(row) for row in connection.execute(query)]


def add_promotion(
    connection: sa.Connection, task_id: int, model_id: int, *, actor: str, reason: PromotionReason
) -> None:
    """Record that a model is promoted; a later roll-back restores the present one."""
    covered = _newest(connection, task_id)
    _append(connection, task_id, model_id, covered and covered.sequence, covered, actor=actor, reason=reason)


def add_rollback(connection: sa.Connection, target: Promotion, *, actor: str) -> None:
    """Record the roll-back to an earlier promotion; the next one goes further back."""
    newest = _newest(connection, target.task_id)
    _append(
        connection, target.task_id, target.model_id, target.previous, newest, actor=actor, reason="rollback"
    )


def rollback_target(connection: sa.Connection, task_id: int) -> Promotion | None:
    """The promotion that a roll-back of the task restores; None: there is none.

    Promotions of removed models, and those of the model that is in force, are passed over.
    """
    return _target(list_promotions(connection, task_id), _present_models(connection))


def rollback_models(connection: sa.Connection) -> dict[int, int]:
    """The model that a roll-back restores, by task; tasks without one are missing."""
    histories: dict[int, list[Promotion]] = {}
    query = sa.select(_promotions).order_by(_promotions.c.task_id, _promotions.c.sequence)
    for row in connection.execute(query):
        histories.setdefault(row.task_id, []).append(promotion_of(row))
    if not histories:
        return {}
    present = _present_models(connection)
    targets = {task_id: _target(promotions, present) for task_id, promotions in histories.items()}
    return {task_id: target.model_id for task_id, target in targets.items() if target is not None}


def promoted_before(connection: sa.Connection) -> frozenset[int]:
    """All models that are or were promoted."""
    return frozenset(connection.execute(sa.select(_promotions.c.model_id).distinct()).scalars())


def answering_models(connection: sa.Connection) -> dict[int, frozenset[int]]:
    """The models that are or were promoted or on trial, by task."""
    query = sa.union(
        sa.select(_promotions.c.task_id, _promotions.c.model_id),
        sa.select(_rollouts.c.task_id, _rollouts.c.model_id),
    ).order_by("task_id", "model_id")
    models: dict[int, set[int]] = {}
    for task_id, model_id in connection.execute(query):
        models.setdefault(task_id, set()).add(model_id)
    return {task_id: frozenset(ids) for task_id, ids in models.items()}


def open_rollouts(connection: sa.Connection) -> dict[int, Rollout]:
    """The trials that go on, by task."""
    query = sa.select(_rollouts).where(_rollouts.c.ended_at.is_(None)).order_by(_rollouts.c.task_id)
    return {row.task_id: rollout_of(row) for row in connection.execute(query)}


def open_rollout(connection: sa.Connection, task_id: int) -> Rollout | None:
    """The trial of a task that goes on; None: there is none."""
    query = sa.select(_rollouts).where(_rollouts.c.task_id == task_id, _rollouts.c.ended_at.is_(None))
    row = connection.execute(query).one_or_none()
    return None if row is None else rollout_of(row)


def close_rollout(
    connection: sa.Connection, rollout: Rollout, *, actor: str, outcome: RolloutOutcome
) -> Rollout:
    """End a trial; return it as ended."""
    values = {"ended_at": now(), "ended_by": actor, "outcome": outcome}
    statement = sa.update(_rollouts).where(_rollouts.c.id == rollout.id).values(values)
    return rollout_of(connection.execute(statement.returning(_rollouts)).one())


def _newest(connection: sa.Connection, task_id: int) -> Promotion | None:
    query = sa.select(_promotions).where(_promotions.c.task_id == task_id)
    row = connection.execute(query.order_by(_promotions.c.sequence.desc()).limit(1)).one_or_none()
    return None if row is None else promotion_of(row)


def _append(
    connection: sa.Connection,
    task_id: int,
    model_id: int,
    previous: int | None,
    newest: Promotion | None,
    *,
    actor: str,
    reason: PromotionReason,
) -> None:
    row = {
        "task_id": task_id,
        "sequence": 1 if newest is None else newest.sequence + 1,
        "model_id": model_id,
        "previous": previous,
        "promoted_at": now(),
        "promoted_by": actor,
        "reason": reason,
    }
    connection.execute(sa.insert(_promotions), row)


def _present_models(connection: sa.Connection) -> set[int]:
    query = sa.select(tables.models.c.id).where(tables.models.c.removed_at.is_(None))
    return set(connection.execute(query).scalars())


def _target(promotions: list[Promotion], present: set[int]) -> Promotion | None:
    if not promotions:
        return None
    in_force = promotions[-1].model_id
    earlier = _chain(promotions)
    return next((one for one in earlier if one.model_id in present and one.model_id != in_force), None)


def _chain(promotions: list[Promotion]) -> Iterator[Promotion]:
    """The promotions before the newest one, as repeated roll-backs restore them."""
    by_sequence = {promotion.sequence: promotion for promotion in promotions}
    sequence = promotions[-1].previous
    while sequence is not None:
        yield by_sequence[sequence]
        sequence = by_sequence[sequence].previous


def rollout_of(row: Row) -> Rollout:
    """A trial from a row of `rollouts`."""
    return read_record(row, Rollout)


def promotion_of(row: Row) -> Promotion:
    """A promotion from a row of `promotions`."""
    return read_record(row, Promotion)
