"""Proposed retrainings: at most one is open for each population and reason.

A reason that was proposed is not proposed again before a cycle has found it gone, whatever a person decided. Several
monitors may propose the same at once; one row is stored.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.deploy.adaptation.retraining import RetrainingNeed, RetrainingReason
from lifelong_core.entities.proposals import Decision, ProposalState, RetrainingProposal
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import read_record
from lifelong_core.store.engine.statements import Repository, id_with_beginning, upsert_into
from lifelong_core.store.heads.heads import subject_of
from lifelong_core.store.log.identifiers import new_prediction_id
from lifelong_core.store.log.records import Population
from lifelong_core.store.notifications.events import note_retraining
from lifelong_core.store.registry.models import model_with_id
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, NotFoundError
from lifelong_core.values.names import check_reason

MONITOR = "monitor"
"""Actor of the proposals."""
_LIST = "List them: `lifelong proposals list`."

_proposals = tables.retraining_proposals
_task_of_model = tables.models.c.task_id == tables.tasks.c.id


class RetrainingProposals(Repository):
    """Proposes retrainings and records what people decide."""

    def propose(self, model_id: int, environment: str, need: RetrainingNeed) -> RetrainingProposal | None:
        """Propose a retraining, unless its reason was proposed before and has held since.

        An open proposal whose reason was gone and is back gets the new details.

        Returns:
            The proposal; None: nothing new is proposed.
        """
        with self._database.write() as connection:
            newest = _newest(connection, model_id, environment, need.reason)
            if newest is not None and newest.fine_at is None:
                return None
            if newest is not None and newest.decision is None:
                _update(connection, newest.id, details=need.to_document(), fine_at=None)
                return None
            values = {
                "id": new_prediction_id(),
                "model_id": model_id,
                "environment": environment,
                "reason": need.reason,
                "details": need.to_document(),
                "proposed_at": now(),
            }
            insert = upsert_into(connection, _proposals).values(values)
            is_open = _proposals.c.decided_at.is_(None)
            places = [_proposals.c.model_id, _proposals.c.environment, _proposals.c.reason]
            insert = insert.on_conflict_do_nothing(index_elements=places, index_where=is_open)
            row = connection.execute(insert.returning(_proposals)).one_or_none()
            if row is None:  # another monitor was faster
                return None
            proposal = read_record(row, RetrainingProposal)
            note_retraining(connection, model_with_id(connection, model_id), proposal)
            _audit(connection, proposal, "propose", actor=MONITOR)
            return proposal

    def note_fine(self, model_id: int, environment: str, reason: RetrainingReason, at: datetime) -> None:
        """Record that a cycle found a reason gone; nothing happens if it was recorded, or never proposed."""
        with self._database.write() as connection:
            newest = _newest(connection, model_id, environment, reason)
            if newest is not None and newest.fine_at is None:
                _update(connection, newest.id, fine_at=at)

    def held_back(self, model_id: int, environment: str) -> frozenset[RetrainingReason]:
        """The reasons that `propose` would not propose for a population before a cycle has found them gone."""
        with self._database.read() as connection:
            query = sa.select(_proposals.c.reason).where(
                _proposals.c.model_id == model_id,
                _proposals.c.environment == environment,
                _proposals.c.fine_at.is_(None),
            )
            return frozenset(connection.execute(query).scalars())

    def open_reasons(self) -> Mapping[Population, Sequence[RetrainingReason]]:
        """The reasons of the open proposals of each population that has some."""
        query = sa.select(_proposals.c.model_id, _proposals.c.environment, _proposals.c.reason)
        found = defaultdict[Population, list[RetrainingReason]](list)
        for row in self._rows(query.where(_proposals.c.decided_at.is_(None)).order_by(_proposals.c.id)):
            found[row.model_id, row.environment].append(row.reason)
        return found

    def list(
        self,
        *,
        task: str | None = None,
        environment: str | None = None,
        reason: RetrainingReason | None = None,
        state: ProposalState | None = None,
        limit: int = 100,
    ) -> list[RetrainingProposal]:
        """The newest proposals, newest first; None selects any."""
        query = sa.select(_proposals)
        if task is not None:
            of_task = sa.select(tables.models.c.id).join(tables.tasks).where(tables.tasks.c.name == task)
            query = query.where(_proposals.c.model_id.in_(of_task))
        if environment is not None:
            query = query.where(_proposals.c.environment == environment)
        if reason is not None:
            query = query.where(_proposals.c.reason == reason)
        if state is not None:
            query = query.where(_proposals.c.decision == (None if state == "open" else state))
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(_proposals.c.id.desc()).limit(limit))
            return [read_record(row, RetrainingProposal) for row in rows]

    def count_open(self) -> Mapping[tuple[str, str, RetrainingReason], int]:
        """Number of open proposals by task, environment and reason."""
        query = (
            sa.select(tables.tasks.c.name, _proposals.c.environment, _proposals.c.reason)
            .select_from(_proposals.join(tables.models).join(tables.tasks, _task_of_model))
            .where(_proposals.c.decided_at.is_(None))
        )
        return Counter((name, environment, reason) for name, environment, reason in self._rows(query))

    def get(self, proposal_id: UUID) -> RetrainingProposal:
        """The proposal with this id.

        Raises:
            NotFoundError: there is none.
        """
        with self._database.read() as connection:
            return _proposal(connection, proposal_id)

    def find(self, beginning: str) -> RetrainingProposal:
        """The only proposal whose id has this beginning, with or without dashes.

        Raises:
            InvalidInputError: no id has this beginning, or several have.
            NotFoundError: there is no such proposal.
        """
        with self._database.read() as connection:
            chosen = id_with_beginning(connection, _proposals.c.id, beginning, kind="proposal", hint=_LIST)
            row = connection.execute(sa.select(_proposals).where(_proposals.c.id == chosen)).one()
        return read_record(row, RetrainingProposal)

    def accept(self, proposal_id: UUID, *, job_id: UUID | None, actor: str) -> RetrainingProposal:
        """Close an open proposal as accepted.

        Args:
            proposal_id: the proposal.
            job_id: the retraining that was started for it; None: it is started another way.
            actor: name for the audit log.

        Raises:
            NotFoundError: there is no such proposal.
            ConflictError: it is closed already.
        """
        with self._database.write() as connection:
            return accept_within(connection, proposal_id, job_id=job_id, actor=actor)

    def dismiss(self, proposal_id: UUID, *, reason: str, actor: str) -> RetrainingProposal:
        """Close an open proposal without a retraining.

        Raises:
            NotFoundError: there is no such proposal.
            ConflictError: it is closed already.
            InvalidInputError: the reason is empty, too long or cannot be printed.
        """
        check_reason(reason, hint="Say in a few words why no model is trained.")
        with self._database.write() as connection:
            return _decide(connection, proposal_id, "dismissed", actor=actor, decision_reason=reason)


def accept_within(
    connection: sa.Connection, proposal_id: UUID, *, job_id: UUID | None, actor: str
) -> RetrainingProposal:
    """`RetrainingProposals.accept` within the transaction of another change."""
    return _decide(connection, proposal_id, "accepted", actor=actor, job_id=job_id)


def check_open(proposal: RetrainingProposal) -> None:
    """Make sure that no person has decided on a proposal.

    Raises:
        ConflictError: it is closed.
    """
    if proposal.decision is not None:
        _refuse_closed(proposal)


def _refuse_closed(proposal: RetrainingProposal) -> None:
    at = proposal.decided_at.isoformat(timespec="seconds") if proposal.decided_at else "?"
    raise ConflictError(
        f"the proposal was {proposal.decision} by {proposal.decided_by} at {at}.",
        field="proposal",
        hint="To train a model all the same: `lifelong retrain`.",
    )


def _proposal(connection: sa.Connection, proposal_id: UUID) -> RetrainingProposal:
    row = connection.execute(sa.select(_proposals).where(_proposals.c.id == proposal_id)).one_or_none()
    if row is None:
        raise NotFoundError(f"there is no proposal {proposal_id}.", field="proposal", hint=_LIST)
    return read_record(row, RetrainingProposal)


def _decide(
    connection: sa.Connection, proposal_id: UUID, decision: Decision, *, actor: str, **values: Any
) -> RetrainingProposal:
    decided = {"decision": decision, "decided_at": now(), "decided_by": actor, **values}
    update = (
        sa.update(_proposals)
        .where(_proposals.c.id == proposal_id, _proposals.c.decided_at.is_(None))
        .values(decided)
        .returning(_proposals)
    )
    row = connection.execute(update).one_or_none()
    if row is None:
        _refuse_closed(_proposal(connection, proposal_id))
    proposal = read_record(row, RetrainingProposal)
    _audit(connection, proposal, decision.removesuffix("ed"), actor=actor)
    return proposal


def _newest(
    connection: sa.Connection, model_id: int, environment: str, reason: RetrainingReason
) -> RetrainingProposal | None:
    """The newest proposal of a population for a reason, locked until the transaction ends."""
    query = (
        sa.select(_proposals)
        .where(
            _proposals.c.model_id == model_id,
            _proposals.c.environment == environment,
            _proposals.c.reason == reason,
        )
        .order_by(_proposals.c.id.desc())
        .limit(1)
        .with_for_update()
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else read_record(row, RetrainingProposal)


def _update(connection: sa.Connection, proposal_id: UUID, **values: Any) -> None:
    connection.execute(sa.update(_proposals).where(_proposals.c.id == proposal_id).values(values))


def _audit(connection: sa.Connection, proposal: RetrainingProposal, verb: str, *, actor: str) -> None:
    details: dict[str, Any] = {"id": str(proposal.id), "reason": proposal.reason}
    if proposal.decision_reason is not None:
        details["decision_reason"] = proposal.decision_reason
    if proposal.job_id is not None:
        details["job"] = str(proposal.job_id)
    subject = subject_of(model_with_id(connection, proposal.model_id), proposal.environment)
    write_audit(connection, actor, f"proposals.{verb}", subject, details)
