"""Swaps: heads that cycles published. Of each, the period whose predictions are compared with its head, and the counts
of earlier decisions that it would change."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.deploy.adaptation.affected_decisions import AffectedCounts
from lifelong_core.entities.cycles import Cycle
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.statements import Repository, batched
from lifelong_core.store.heads import activations
from lifelong_core.store.heads.activations import activated_at
from lifelong_core.store.heads.heads import head_of_version
from lifelong_core.store.log.identifiers import EPOCH, first_id_at, logged_at, logged_on
from lifelong_core.store.log.records import Population
from lifelong_core.store.registry.models import model_with_id
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError

_log = tables.predictions
LATE = timedelta(hours=1)
"""For this time after an activation, decisions of earlier heads belong to its period. Workers swap within a second; a
worker without the database, or with a fast clock, uses the old head for longer."""

_TIMES = "since", "until", "counted_at"


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
    oldest = oldest_in_window(connection, cycle)
    return cycle.started_at if oldest is None else logged_at(oldest)


def oldest_in_window(
    connection: sa.Connection, cycle: Cycle | Row, *, since: UUID | None = None
) -> UUID | None:
    """The oldest prediction of the window: its number of predictions, counted back from the cycle's log position; None:
    too few are left, or it is older than `since`."""
    # The log position alone would read all later predictions; clocks of workers differ by less than LATE.
    first, end = since or first_id_at(EPOCH), first_id_at(cycle.finished_at + LATE)
    query = (
        sa.select(_log.c.id)
        .where(_log.c.model_id == cycle.model_id, _log.c.environment == cycle.environment)
        .where(_log.c.commit_order < cycle.log_position, _log.c.id >= first, _log.c.id < end)
        .where(_log.c.logged_on >= logged_on(first), _log.c.logged_on <= logged_on(end))
        .order_by(_log.c.id.desc())
        .offset(max(0, cycle.window_samples - 1))
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none()


_swaps = tables.swaps


@dataclass(frozen=True)
class AffectedFigures:
    """Counts of the decisions of a period that the new head would change, and of the predictions left out."""

    since: datetime
    """beginning of the period"""
    until: datetime
    """end of the period, exclusive"""
    counts: AffectedCounts
    groups: int | None
    """number of groups of the affected predictions; None: none of them has a group"""
    quarantined: int
    """predictions that were left out because their logits, or their decisions, cannot be judged"""
    other_models: int
    """predictions of other models in this environment and period, which are not judged"""
    gone: int | None
    """predictions of the period that retention or an erasure deleted after they were counted; None: unknown"""
    log_position: int
    """commit order up to which the log was read"""
    counted_at: datetime

    def to_document(self) -> dict[str, Any]:
        """The figures as JSON values."""
        times = {name: getattr(self, name).isoformat() for name in _TIMES}
        return {"schema_version": 2, **vars(self), **times, "counts": self.counts.to_document()}


@dataclass(frozen=True)
class UncountedSwap:
    """A swap whose affected decisions are not counted over its whole period yet."""

    cycle_id: UUID
    activated_at: datetime
    is_counted: bool
    """whether a part of its decisions was counted before"""


class Swaps(Repository):
    """Finds swaps and stores the figures of their affected decisions."""

    def uncounted(self) -> list[UncountedSwap]:
        """The swaps whose figures are not final, oldest first."""
        query = sa.select(_swaps).where(_swaps.c.is_final.is_(False)).order_by(_swaps.c.activated_at)
        return [
            UncountedSwap(row.cycle_id, row.activated_at, is_counted=row.affected is not None)
            for row in self._rows(query)
        ]

    def record(self, cycle_id: UUID, figures: AffectedFigures | None, *, is_final: bool) -> None:
        """Store the figures of a swap; harmless to repeat.

        Args:
            cycle_id: of the cycle that published the head.
            figures: counts over its period; None: they cannot be counted.
            is_final: whether they cover the whole period.
        """
        values: dict[str, Any] = {"is_final": is_final}
        if figures is not None:
            values["affected"] = figures.to_document()
        with self._database.write() as connection:
            connection.execute(sa.update(_swaps).where(_swaps.c.cycle_id == cycle_id).values(values))

    def figures(self, cycle_ids: Collection[UUID]) -> dict[UUID, AffectedFigures]:
        """The stored figures of these cycles; cycles without figures are left out."""
        figures_of: dict[UUID, AffectedFigures] = {}
        with self._database.read() as connection:
            for some in batched(list(cycle_ids)):
                query = sa.select(_swaps.c.cycle_id, _swaps.c.affected).where(_swaps.c.cycle_id.in_(some))
                rows = connection.execute(query.where(_swaps.c.affected.is_not(None)))
                figures_of |= {row.cycle_id: _figures(row.affected) for row in rows}
        return figures_of

    def of_activation(
        self, model_id: int, head_version: int, activated_at: datetime
    ) -> AffectedFigures | None:
        """The figures of the swap at the time of this activation; None: it was no swap, or it is not counted yet."""
        query = sa.select(_swaps.c.affected).where(
            _swaps.c.model_id == model_id,
            _swaps.c.head_version == head_version,
            _swaps.c.activated_at == activated_at,
        )
        with self._database.read() as connection:
            document = connection.execute(query).scalar_one_or_none()
        return None if document is None else _figures(document)

    def newest(self) -> dict[Population, datetime]:
        """Time of the last swap of each population that had one."""
        cycles = tables.cycles
        population = _swaps.c.model_id, cycles.c.environment
        query = (
            sa.select(*population, sa.func.max(_swaps.c.activated_at))
            .join(cycles, cycles.c.id == _swaps.c.cycle_id)
            .group_by(*population)
        )
        return {(row[0], row[1]): row[2] for row in self._rows(query)}


def add_swap(connection: sa.Connection, cycle: Cycle) -> None:
    """Add a swap in the transaction that publishes the cycle's head; its affected decisions are counted later."""
    row = {
        "model_id": cycle.model_id,
        "head_version": cycle.published_version,
        "cycle_id": cycle.id,
        "activated_at": activated_at(connection, cycle.model_id, cycle.environment),
        "affected": None,
        "is_final": False,
    }
    connection.execute(sa.insert(_swaps), row)


def _figures(document: dict[str, Any]) -> AffectedFigures:
    """Figures from a document of `to_document`."""
    values = {key: value for key, value in document.items() if key != "schema_version"}
    values.update({name: datetime.fromisoformat(values[name]) for name in _TIMES})
    values["counts"] = AffectedCounts.from_document(values["counts"])
    return AffectedFigures(**values)
