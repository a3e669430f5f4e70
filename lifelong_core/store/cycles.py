"""Cycles: what each pass over a window found and did, and the swap itself, in one transaction."""

from dataclasses import asdict, replace
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.errors import ConflictError, InvalidInputError, NotFoundError
from lifelong_core.store import activations, tables
from lifelong_core.store.engine import Database
from lifelong_core.store.heads import publish_head
from lifelong_core.store.models import model_with_id
from lifelong_core.store.records import Cycle, Model
from lifelong_core.store.registry import bump_revision
from lifelong_core.store.rows import cycle_of

_cycles = tables.cycles


class Cycles:
    """Finishes and lists cycles."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def finish(
        self,
        cycle: Cycle,
        *,
        candidate: PostProcessingHead | None,
        expected_sequence: int | None,
        actor: str = "monitor",
    ) -> Cycle:
        """Record a cycle and, if its outcome is swap, publish its candidate: both or neither.

        Args:
            cycle: what happened; `published_version` is filled in here.
            candidate: the head to publish; given exactly when the outcome is swap.
            expected_sequence: the newest activation of (model, environment) that the cycle saw (0: none);
                None: only the serving head itself is compared.
            actor: who runs the cycle.

        Returns:
            The cycle as recorded.

        Raises:
            ConflictError: the cycle that was due then has been recorded already, or another head serves by now
                than the one that was judged; nothing is written.
            InvalidInputError: outcome and candidate do not agree, or the candidate does not fit the model.
        """
        if (cycle.outcome == "swap") != (candidate is not None):
            raise InvalidInputError(
                f"a cycle that ends in {cycle.outcome} has another candidate.", field="candidate"
            )
        with self._database.write() as connection:
            if candidate is not None:
                # Before anything is read: whoever else changes a head waits for us, or we for them.
                bump_revision(connection)
            model = model_with_id(connection, cycle.model_id)
            _refuse_repetition(connection, model, cycle)
            published = None
            if candidate is not None:
                _refuse_other_head(connection, model, cycle, expected_sequence)
                published = publish_head(
                    connection, model, candidate, environment=cycle.environment, actor=actor, reason="swap"
                ).version
            recorded = replace(cycle, published_version=published)
            connection.execute(sa.insert(_cycles), asdict(recorded))
        return recorded

    def get(self, cycle_id: UUID) -> Cycle:
        """The cycle with that id.

        Raises:
            NotFoundError: there is none.
        """
        with self._database.read() as connection:
            row = (
                connection.execute(sa.select(_cycles).where(_cycles.c.id == cycle_id))
                .mappings()
                .one_or_none()
            )
        if row is None:
            raise NotFoundError(f"there is no cycle {cycle_id}.", field="cycle")
        return cycle_of(row)

    def last(self, model_id: int, environment: str) -> Cycle | None:
        """The cycle of (model, environment) that was due last; None if none has run."""
        found = self.list(model_id, environment, limit=1)
        return found[0] if found else None

    def list(
        self, model_id: int | None = None, environment: str | None = None, limit: int = 100
    ) -> list[Cycle]:
        """The newest cycles, newest first, of one model or environment if named."""
        query = sa.select(_cycles).order_by(_cycles.c.due_at.desc(), _cycles.c.id.desc()).limit(limit)
        if model_id is not None:
            query = query.where(_cycles.c.model_id == model_id)
        if environment is not None:
            query = query.where(_cycles.c.environment == environment)
        with self._database.read() as connection:
            return [cycle_of(row) for row in connection.execute(query).mappings()]


def _refuse_repetition(connection: sa.Connection, model: Model, cycle: Cycle) -> None:
    """The unique key would refuse it too; this says it in words."""
    ran = sa.select(_cycles.c.id).where(
        _cycles.c.model_id == cycle.model_id,
        _cycles.c.environment == cycle.environment,
        _cycles.c.due_at == cycle.due_at,
    )
    if connection.execute(ran).first() is not None:
        raise ConflictError(
            f"the cycle of {model.reference}/{cycle.environment} that was due {cycle.due_at} has run.",
            field="due_at",
        )


def _refuse_other_head(
    connection: sa.Connection, model: Model, cycle: Cycle, expected_sequence: int | None
) -> None:
    if expected_sequence is not None:
        activations.expect_sequence(connection, model, cycle.environment, expected_sequence)
    serving = activations.serving_version(connection, model.id, cycle.environment)
    if serving != cycle.head_version:
        raise ConflictError(
            f"head {serving} of {model.reference} serves {cycle.environment} by now, not head {cycle.head_version}.",
            field="head_version",
            mend="The next cycle judges the present head.",
        )
