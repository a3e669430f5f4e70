"""Periods whose predictions are compared with the head of a swap."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.entities.cycles import Cycle
from lifelong_core.store.engine.clock import now
from lifelong_core.store.heads import activations
from lifelong_core.store.heads.heads import head_of_version
from lifelong_core.store.log.identifiers import logged_at
from lifelong_core.store.registry.models import model_with_id
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError

_log = tables.predictions
LATE = timedelta(hours=1)
"""For this time after an activation, decisions of earlier heads belong to its period. Workers swap within a second; a
worker without the database, or with a fast clock, uses the old head for longer."""


@dataclass(frozen=True)
class AffectedPeriod:
    """The predictions that are compared with a head: of one model and environment, by time."""

    cycle_id: UUID
    model_id: int
    environment: str
    head: PostProcessingHead
    """that the cycle published, proposed or, in mode shadow, selected"""
    head_version: int | None
    """None: it was not published"""
    since: datetime
    """time of the change of prevalence in the cycle's report, else the beginning of its window"""
    activated_at: datetime | None
    """time of the head's activation; None: it was never in force"""
    until: datetime
    """end of the period, exclusive; of predictions after the activation, only decisions of older heads are compared"""
    is_whole: bool = True
    """False: `narrow` cut the period"""

    def narrow(self, since: datetime | None, until: datetime | None) -> Self:
        """The part of the period between these times; None: no bound.

        Raises:
            InvalidInputError: no part of the period lies between them.
        """
        if since is None and until is None:
            return self
        part = replace(
            self,
            since=max(self.since, since or self.since),
            until=min(self.until, until or self.until),
            is_whole=False,
        )
        if part.since >= part.until:
            bounds = (one.isoformat(timespec="seconds") for one in (self.since, self.until))
            raise InvalidInputError(
                f"nothing of the period, {' to '.join(bounds)}, lies between these times.", field="since"
            )
        return part


def period_of(connection: sa.Connection, cycle: Cycle) -> AffectedPeriod:
    """The period of a cycle that selected another head.

    It ends `LATE` after the activation of that head, or with the next activation if that is sooner. The period of a
    proposal ends now, or with its rejection; in mode shadow it ends with the cycle.

    Raises:
        ConflictError: the cycle selected no other head.
        DamagedHeadError: the published head is damaged.
    """
    version, activated_at = cycle.published_version, None
    if version is not None:
        model = model_with_id(connection, cycle.model_id)
        head = head_of_version(connection, model, version).head
        history = activations.history(connection, model, cycle.environment)
        step = next(i for i, one in enumerate(history) if one.head_version == version)
        activated_at = history[step].activated_at
        until = min([activated_at + LATE, *(one.activated_at for one in history[step + 1 : step + 2])])
    elif cycle.proposal is not None:
        head = cycle.proposal
        until = now() if cycle.rejection is None else cycle.rejection.rejected_at
    elif cycle.report.get("candidate") is not None:
        head = PostProcessingHead.from_document(cycle.report["candidate"])
        until = cycle.finished_at
    else:
        raise ConflictError(
            f"the cycle ended in {cycle.effect!r}: it wanted no other head.",
            field="cycle",
            hint="List those that did: `lifelong cycles list --outcome swap`.",
        )
    return AffectedPeriod(
        cycle_id=cycle.id,
        model_id=cycle.model_id,
        environment=cycle.environment,
        head=head,
        head_version=version,
        since=affected_since(connection, cycle, head),
        activated_at=activated_at,
        until=until,
    )


def affected_since(connection: sa.Connection, cycle: Cycle, head: PostProcessingHead) -> datetime:
    """Time of the latest change in the report of a cycle, else the beginning of its window.

    Args:
        connection: to the log.
        cycle: that selected the head.
        head: its provenance names the window if it was published or proposed.
    """
    changes: list[dict[str, Any]] = cycle.report.get("change_points") or []
    changed_at = changes[-1].get("changed_at") if changes else None
    if changed_at is not None:
        return datetime.fromisoformat(changed_at).astimezone(UTC)
    first = head.provenance.get("window", {}).get("first")
    if first:
        # The id of the window's first prediction, or its first hour.
        return datetime.fromisoformat(first).astimezone(UTC) if ":" in first else logged_at(UUID(first))
    oldest = _oldest_in_window(connection, cycle)
    return cycle.started_at if oldest is None else logged_at(oldest)


def _oldest_in_window(connection: sa.Connection, cycle: Cycle) -> UUID | None:
    """The oldest prediction of the window: its number of predictions, counted back from the cycle's log position; None:
    too few are left."""
    query = (
        sa.select(_log.c.id)
        .where(_log.c.model_id == cycle.model_id, _log.c.environment == cycle.environment)
        .where(_log.c.commit_order < cycle.log_position)
        .order_by(_log.c.id.desc())
        .offset(max(0, cycle.window_samples - 1))
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none()
