"""Cycles: results of the passes over windows. A cycle and its swap are one transaction."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.configuration.policy_fields import Mode
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.entities.cycles import Cycle, Outcome, Rejection
from lifelong_core.entities.registry import Model
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.cycles.rows import REJECTION_COLUMNS, cycle_of, cycle_row
from lifelong_core.store.cycles.swaps import add_swap
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.leases import Lease, hold_lease
from lifelong_core.store.engine.statements import Repository, batched, id_with_beginning
from lifelong_core.store.heads import activations
from lifelong_core.store.heads.activations import refuse_pinned
from lifelong_core.store.heads.heads import publish_head, subject_of
from lifelong_core.store.log.records import Population
from lifelong_core.store.notifications.events import cycle_before, note_cycle, note_swap
from lifelong_core.store.registry.models import model_with_id
from lifelong_core.store.registry.registry import bump_revision, change_registry
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from lifelong_core.values.names import check_reason

MONITOR = "monitor"
"""Actor of the heads that due cycles publish."""

_cycles = tables.cycles
_OLDEST_FIRST = _cycles.c.log_position, _cycles.c.due_at, _cycles.c.id
"""Order of the cycles: by log position first, because a clock may be wrong."""
_LIST = "List them: `lifelong cycles list`."
_NEWEST_FIRST = [column.desc() for column in _OLDEST_FIRST]


class Cycles(Repository):
    """Finishes, approves, rejects and lists cycles."""

    def finish(
        self,
        cycle: Cycle,
        *,
        candidate: PostProcessingHead | None,
        expected_sequence: int | None,
        mode: Mode = "auto",
        requested_by: str | None = None,
        lease: Lease | None = None,
    ) -> Cycle:
        """Record a cycle and, if its outcome is swap, publish or propose its candidate; both or neither.

        Args:
            cycle: the result; this call fills in `published_version` and `proposal`.
            candidate: the head that the cycle selected; given exactly when the outcome is swap.
            expected_sequence: the newest activation of a population that the cycle saw (0: none);
                None: only the serving head itself is compared.
            mode: auto publishes the candidate, propose stores it for approval, shadow does neither.
            requested_by: the actor that requested the cycle, named in the audit log; None: the cycle was due,
                and the actor of a published head is `monitor`.
            lease: required for the record; None: no lease is needed.

        Returns:
            The cycle as recorded.

        Raises:
            ConflictError: a cycle with this due time is recorded already, the judged head is not in force any more or
                is pinned, or the lease was lost; nothing is written.
            InvalidInputError: outcome and candidate do not agree, the candidate does not fit the model, or the
                report is no JSON document.
        """
        if (cycle.outcome == "swap") != (candidate is not None):
            raise InvalidInputError(
                f"a cycle that ends in {cycle.outcome} has another candidate.", field="candidate"
            )
        _check_report(cycle)
        publishes = candidate is not None and mode == "auto"
        actor = requested_by or MONITOR
        with self._database.write() as connection:
            if publishes:
                # Before any read: this serialises all changes of heads.
                bump_revision(connection)
            if lease is not None:
                hold_lease(connection, lease)
            model = model_with_id(connection, cycle.model_id)
            _refuse_repetition(connection, model, cycle)
            recorded = replace(cycle, proposal=candidate if mode == "propose" else None)
            if candidate is not None and publishes:
                if expected_sequence is not None:
                    activations.expect_sequence(connection, model, cycle.environment, expected_sequence)
                _refuse_other_head(connection, model, cycle)
                refuse_pinned(connection, model, cycle.environment)
                recorded = _published(connection, model, recorded, candidate, actor=actor)
            before = cycle_before(connection, recorded)
            connection.execute(sa.insert(_cycles), cycle_row(recorded))
            if publishes:
                add_swap(connection, recorded)
            note_cycle(connection, model, recorded, before, actor=actor)
            if requested_by is not None:
                details = {"cycle": str(cycle.id), "outcome": recorded.effect}
                subject = subject_of(model, cycle.environment)
                write_audit(connection, requested_by, "cycles.run", subject, details)
        return recorded

    def approve(self, cycle_id: UUID, *, actor: str) -> Cycle:
        """Publish exactly the head that a cycle proposed, for its environment.

        Returns:
            The cycle with the version that was published.

        Raises:
            NotFoundError: there is no such cycle.
            ConflictError: it proposed no head, the proposal was approved or rejected before, a newer cycle judged the
                population, or the judged head is not in force any more or is pinned; nothing is written.
        """
        with change_registry(self._database) as connection:
            cycle = _cycle(connection, cycle_id)
            model = model_with_id(connection, cycle.model_id)
            proposal = _proposed(cycle)
            _refuse_closed(connection, model, cycle)
            approved = _published(connection, model, cycle, proposal, actor=actor)
            connection.execute(
                sa.update(_cycles)
                .where(_cycles.c.id == cycle_id)
                .values(published_version=approved.published_version)
            )
            add_swap(connection, approved)
            note_swap(connection, model, approved, actor=actor)
            details = {"cycle": str(cycle_id), "version": approved.published_version}
            write_audit(connection, actor, "cycles.approve", subject_of(model, cycle.environment), details)
            return approved

    def reject(self, cycle_id: UUID, *, reason: str, actor: str) -> Cycle:
        """Close a proposal that `approve` would publish now.

        While the judged head stays in force, no cycle proposes or publishes a head for an estimate whose intervals
        overlap the rejected ones.

        Args:
            cycle_id: of the cycle that proposed.
            reason: for the history, 1 to 200 printable characters.
            actor: name for the history and the audit log.

        Returns:
            The cycle with its rejection.

        Raises:
            NotFoundError: there is no such cycle.
            InvalidInputError: the reason is empty, too long or cannot be printed.
            ConflictError: it proposed no head, or the proposal is not open any more; nothing is written.
        """
        check_reason(reason, hint="Say in a few words why this head must not come in force.")
        # As in `approve`: of simultaneous answers to a proposal, one succeeds.
        with change_registry(self._database) as connection:
            cycle = _cycle(connection, cycle_id)
            model = model_with_id(connection, cycle.model_id)
            _proposed(cycle)
            _refuse_closed(connection, model, cycle)
            rejection = Rejection(reason, now(), actor)
            values = dict(zip(REJECTION_COLUMNS, vars(rejection).values(), strict=True))
            connection.execute(sa.update(_cycles).where(_cycles.c.id == cycle_id).values(values))
            details = {"cycle": str(cycle_id), "reason": reason}
            write_audit(connection, actor, "cycles.reject", subject_of(model, cycle.environment), details)
            return replace(cycle, rejection=rejection)

    def list_rejected(
        self, model_id: int, environment: str, *, head_version: int, since: datetime
    ) -> list[Cycle]:
        """The cycles whose proposals were rejected since then, of one population and against one head, newest first."""
        chosen = sa.select(_cycles.c.id).where(
            *_at(model_id, environment),
            _cycles.c.head_version == head_version,
            _cycles.c.rejected_at >= since,
        )
        with self._database.read() as connection:
            return _read(connection, chosen)

    def proposals(self, model_id: int | None = None, environment: str | None = None) -> list[Cycle]:
        """The cycles whose proposals `approve` would publish now, newest first."""
        with self._database.read() as connection:
            newest = _newest_of_each_place(connection, model_id, environment)
            return [cycle for cycle in newest if _is_open(connection, cycle)]

    def get(self, cycle_id: UUID) -> Cycle:
        """The cycle with that id.

        Raises:
            NotFoundError: there is none.
        """
        with self._database.read() as connection:
            return _cycle(connection, cycle_id)

    def get_all(self, cycle_ids: Sequence[UUID]) -> list[Cycle]:
        """The existing cycles with these ids, newest first; each report has some 10 kB."""
        found = list[Cycle]()
        with self._database.read() as connection:
            for some in batched(cycle_ids):
                found += _read(connection, sa.select(_cycles.c.id).where(_cycles.c.id.in_(some)))
        return found

    def last(self, model_id: int, environment: str) -> Cycle | None:
        """The cycle of a population with the highest log position; None if none has run.

        It is the one with the latest due time, unless a clock was wrong.
        """
        found = self.list(model_id, environment, limit=1)
        return found[0] if found else None

    def find(self, beginning: str) -> Cycle:
        """The only cycle whose id has this beginning.

        Args:
            beginning: first characters of an id, or all of them, with or without dashes.

        Raises:
            InvalidInputError: no id has this beginning, or several have.
            NotFoundError: there is no such cycle.
        """
        with self._database.read() as connection:
            chosen = id_with_beginning(connection, _cycles.c.id, beginning, kind="cycle", hint=_LIST)
            return _read(connection, sa.select(_cycles.c.id).where(_cycles.c.id == chosen))[0]

    def list(
        self,
        model_id: int | None = None,
        environment: str | None = None,
        limit: int = 100,
        *,
        outcome: Outcome | None = None,
        before: Cycle | None = None,
    ) -> list[Cycle]:
        """The newest cycles by log position, newest first; of one model, environment or outcome if named.

        With `before` only those that come after it in this list.
        """
        newest = sa.select(_cycles.c.id).where(*_at(model_id, environment))
        if outcome is not None:
            newest = newest.where(_cycles.c.outcome == outcome)
        if before is not None:
            place = (sa.literal(getattr(before, column.name), column.type) for column in _OLDEST_FIRST)
            newest = newest.where(sa.tuple_(*_OLDEST_FIRST) < sa.tuple_(*place))
        with self._database.read() as connection:
            return _read(connection, newest.order_by(*_NEWEST_FIRST).limit(limit))

    def finished(self, model_id: int, environment: str, *, limit: int) -> dict[UUID, datetime]:
        """When the newest cycles of a population ended, newest first; without their reports."""
        query = (
            sa.select(_cycles.c.id, _cycles.c.finished_at)
            .where(*_at(model_id, environment))
            .order_by(*_NEWEST_FIRST)
            .limit(limit)
        )
        return {row.id: row.finished_at for row in self._rows(query)}


def _check_report(cycle: Cycle) -> None:
    """Refuse NaN and infinity: PostgreSQL rejects them, SQLite stores them, and JSON answers cannot hold them."""
    try:
        json.dumps(cycle.report, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"expected a JSON document: {error}.", field="report") from error


def _refuse_repetition(connection: sa.Connection, model: Model, cycle: Cycle) -> None:
    """Refuse a second cycle with one due time, with a clearer message than that of the unique key."""
    ran = sa.select(_cycles.c.id).where(
        _cycles.c.model_id == cycle.model_id,
        _cycles.c.environment == cycle.environment,
        _cycles.c.due_at == cycle.due_at,
    )
    same_id = sa.select(_cycles.c.id).where(_cycles.c.id == cycle.id)
    if connection.execute(same_id).first() is not None:
        raise ConflictError(f"the cycle {cycle.id} is recorded already.", field="cycle")
    if connection.execute(ran).first() is not None:
        raise ConflictError(
            f"the cycle of {model.reference}/{cycle.environment} that was due {cycle.due_at} has run.",
            field="due_at",
        )


def _proposed(cycle: Cycle) -> PostProcessingHead:
    if cycle.proposal is None:
        raise ConflictError(
            f"the cycle proposed no head: it ended in {cycle.effect!r}, and only proposed heads wait for"
            " approval.",
            field="cycle",
        )
    return cycle.proposal


def _refuse_closed(connection: sa.Connection, model: Model, cycle: Cycle) -> None:
    """Refuse a proposal that was answered, or whose judged head is not in force any more or is pinned."""
    if cycle.published_version is not None:
        raise ConflictError(
            f"the proposal was approved already: it is head {cycle.published_version}.", field="cycle"
        )
    if cycle.rejection is not None:
        at = cycle.rejection.rejected_at.isoformat(timespec="seconds")
        raise ConflictError(
            f"the proposal was rejected by {cycle.rejection.rejected_by} at {at}: {cycle.rejection.reason!r}.",
            field="cycle",
            hint="To publish that head all the same, take its document from `lifelong cycles show --json`.",
        )
    newer = sa.select(_cycles.c.id).where(
        _cycles.c.model_id == cycle.model_id,
        _cycles.c.environment == cycle.environment,
        sa.tuple_(*_OLDEST_FIRST)
        > sa.tuple_(*(sa.literal(getattr(cycle, c.name), c.type) for c in _OLDEST_FIRST)),
    )
    if connection.execute(newer.limit(1)).first() is not None:
        raise ConflictError(
            f"a newer cycle has judged {model.reference} in {cycle.environment} since.",
            field="cycle",
            hint="Look at what it proposes: `lifelong heads proposals`.",
        )
    _refuse_other_head(connection, model, cycle)
    refuse_pinned(connection, model, cycle.environment)


def _refuse_other_head(connection: sa.Connection, model: Model, cycle: Cycle) -> None:
    serving = activations.serving_version(connection, model.id, cycle.environment)
    if serving != cycle.head_version:
        raise ConflictError(
            f"head {serving} of {model.reference} serves {cycle.environment} by now, not head {cycle.head_version}.",
            field="head_version",
            hint="The next cycle judges the present head.",
        )


def _published(
    connection: sa.Connection, model: Model, cycle: Cycle, head: PostProcessingHead, *, actor: str
) -> Cycle:
    record = publish_head(connection, model, head, environment=cycle.environment, actor=actor, reason="swap")
    return replace(cycle, published_version=record.version)


def _is_open(connection: sa.Connection, cycle: Cycle) -> bool:
    if cycle.proposal is None:
        return False
    try:
        _refuse_closed(connection, model_with_id(connection, cycle.model_id), cycle)
    except ConflictError:
        return False
    return True


def _cycle(connection: sa.Connection, cycle_id: UUID) -> Cycle:
    row = connection.execute(sa.select(_cycles).where(_cycles.c.id == cycle_id)).mappings().one_or_none()
    if row is None:
        raise NotFoundError(f"there is no cycle {cycle_id}.", field="cycle")
    return cycle_of(row)


def _newest_of_each_place(
    connection: sa.Connection, model_id: int | None, environment: str | None
) -> list[Cycle]:
    population = _cycles.c.model_id, _cycles.c.environment
    furthest = sa.select(*population, sa.func.max(_cycles.c.log_position)).where(*_at(model_id, environment))
    chosen = sa.select(_cycles.c.id).where(
        sa.tuple_(*population, _cycles.c.log_position).in_(furthest.group_by(*population))
    )
    newest: dict[Population, Cycle] = {}
    for cycle in _read(connection, chosen):
        newest.setdefault((cycle.model_id, cycle.environment), cycle)
    return list(newest.values())


def _at(model_id: int | None, environment: str | None) -> list[sa.ColumnElement[bool]]:
    """Conditions: this model and this environment; None: any."""
    named = ((_cycles.c.model_id, model_id), (_cycles.c.environment, environment))
    return [column == value for column, value in named if value is not None]


def _read(connection: sa.Connection, chosen: sa.Select[tuple[Any]]) -> list[Cycle]:
    """The cycles with these ids, newest first; reports are long, so no others are read."""
    query = sa.select(_cycles).where(_cycles.c.id.in_(chosen)).order_by(*_NEWEST_FIRST)
    return [cycle_of(row) for row in connection.execute(query).mappings()]
