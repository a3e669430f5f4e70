"""Environments of predictions; administrators or, up to a limit, first predictions create them."""

from datetime import datetime, timedelta

import sqlalchemy as sa

from lifelong_core.entities.registry import Environment
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import Row
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.registry.registry import bump_revision, change_registry
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, NotFoundError, TooManyRequestsError
from lifelong_core.values.names import DEFAULT_ENVIRONMENT, check_name

_NAMED = 20
"""Largest number of environments that a message lists; above it, the message has their number."""
_HOUR = timedelta(hours=1)
_table = tables.environments
_USES = (
    (tables.predictions, "predictions were logged there"),
    (tables.labels, "labels were recorded there"),
    (tables.cycles, "cycles have judged it"),
    (tables.head_activations, "heads were published there"),
    (tables.head_pins, "its head is pinned"),
)
"""Uses of an environment that prevent its deletion."""


class Environments(Repository):
    """Adds, lists, disables and deletes environments; `default` always exists."""

    def ensure(
        self,
        name: str,
        *,
        limit: int,
        creator: str | None = None,
        hourly: int | None = None,
        source: str | None = None,
    ) -> None:
        """Create the environment of a prediction unless it exists.

        Args:
            name: of the environment.
            limit: the largest number of environments, `default` included.
            creator: name of the token of the request; None: unknown.
            hourly: the largest number of environments that one creator may create within an hour; None: any.
            source: address of the client; None: as `write_audit`.

        Raises:
            InvalidInputError: the name is illegal.
            ConflictError: `limit` environments exist already.
            TooManyRequestsError: this creator created `hourly` environments within the last hour.
        """
        check_name(name, field="environment")
        if name in self.list():
            return
        with change_registry(self._database) as connection:
            existing = _names(connection)
            if name in existing:
                return
            if len(existing) >= limit:
                raise too_many(name, len(existing))
            if hourly is not None and _created_since(connection, creator, now() - _HOUR) >= hourly:
                raise too_fast(name, hourly)
            _insert(connection, name, creator)
            write_audit(
                connection,
                creator or "anonymous",
                "environments.create",
                name,
                {"by": "prediction"},
                source=source,
            )

    def add(self, name: str, *, actor: str) -> Environment:
        """Add an environment without a limit, because a person requests it; an existing one does not change.

        Raises:
            InvalidInputError: the name is illegal.
        """
        check_name(name, field="environment")
        with change_registry(self._database) as connection:
            if name not in _names(connection):
                _insert(connection, name, actor)
                write_audit(connection, actor, "environments.create", name)
            return _environment_of(_row(connection, name))

    def disable(self, name: str, *, actor: str) -> Environment:
        """Refuse predictions in an environment; harmless to repeat.

        Its logged predictions stay and can still be labelled.

        Raises:
            InvalidInputError: the name is illegal.
            NotFoundError: there is no such environment.
        """
        return self._set_disabled(name, now(), action="environments.disable", actor=actor)

    def enable(self, name: str, *, actor: str) -> Environment:
        """Allow predictions in an environment again; harmless to repeat.

        Raises:
            InvalidInputError: the name is illegal.
            NotFoundError: there is no such environment.
        """
        return self._set_disabled(name, None, action="environments.enable", actor=actor)

    def delete(self, name: str, *, actor: str) -> None:
        """Delete an unused environment.

        Raises:
            InvalidInputError: the name is illegal.
            NotFoundError: there is no such environment.
            ConflictError: it has predictions, heads or other records, a token is bound to it, or it is `default`.
        """
        with change_registry(self._database) as connection:
            expect_environment(connection, name, hint="List them: `lifelong environments list`.")
            reason = _use_of(connection, name)
            if reason is not None:
                raise ConflictError(
                    f"the environment {name!r} cannot be deleted: {reason}.",
                    field="environment",
                    hint=f"Disable it instead: `lifelong environments disable {name}`.",
                )
            compared = tables.performance_comparisons
            connection.execute(sa.delete(compared).where(compared.c.environment == name))
            connection.execute(sa.delete(_table).where(_table.c.name == name))
            write_audit(connection, actor, "environments.delete", name)

    def get(self, name: str) -> Environment:
        """The environment of that name.

        Raises:
            InvalidInputError: the name is illegal.
            NotFoundError: there is no such environment.
        """
        with self._database.read() as connection:
            expect_environment(connection, name, hint="List them: `lifelong environments list`.")
            return _environment_of(_row(connection, name))

    def list(self) -> list[str]:
        """The names of all environments, sorted."""
        with self._database.read() as connection:
            return _names(connection)

    def all(self) -> "list[Environment]":
        """All environments, sorted by name."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(_table).order_by(_table.c.name))
            return sorted((_environment_of(row) for row in rows), key=lambda one: one.name)

    def _set_disabled(self, name: str, moment: datetime | None, *, action: str, actor: str) -> Environment:
        with change_registry(self._database) as connection:
            expect_environment(connection, name, hint="List them: `lifelong environments list`.")
            row = _row(connection, name)
            if (row.disabled_at is None) != (moment is None):
                connection.execute(sa.update(_table).where(_table.c.name == name).values(disabled_at=moment))
                write_audit(connection, actor, action, name)
            return _environment_of(_row(connection, name))


def ensure_environment(connection: sa.Connection, name: str, *, actor: str | None = None) -> None:
    """Create the environment without a limit, within a writing transaction, because a person requests it."""
    check_name(name, field="environment")
    if name not in _names(connection):
        bump_revision(connection)
        # Checked again: from here on no other transaction can create it.
        if name not in _names(connection):
            _insert(connection, name, actor)


def expect_environment(connection: sa.Connection, name: str, *, hint: str) -> None:
    """Make sure that an environment exists, so that a misspelt name is an error.

    Args:
        connection: of a transaction.
        name: of the environment.
        hint: of the error if it does not exist.

    Raises:
        InvalidInputError: the name is illegal.
        NotFoundError: there is no such environment; the message names the existing ones.
    """
    check_name(name, field="environment")
    known = _names(connection)
    if name in known:
        return
    names = ", ".join(known[:_NAMED]) + (f" and {len(known) - _NAMED} more" if len(known) > _NAMED else "")
    raise NotFoundError(
        f"there is no environment {name!r}; known are {names}.", field="environment", hint=hint
    )


def too_many(name: str, existing: int) -> ConflictError:
    """The error that the limit of environments is reached."""
    return ConflictError(
        f"there are {existing} environments already, so {name!r} is not created.",
        field="environment",
        hint="Use one of those, or raise LIFELONG_MAXIMUM_ENVIRONMENTS.",
    )


def too_fast(name: str, hourly: int) -> TooManyRequestsError:
    """The error that a token has reached its limit of new environments within an hour."""
    return TooManyRequestsError(
        f"{hourly} environments were created with this token within an hour, so {name!r} is not created.",
        field="environment",
        hint=f"Add it: `lifelong environments add {name}`; or try again in an hour.",
        retry_after_seconds=int(_HOUR.total_seconds()),
    )


def _names(connection: sa.Connection) -> list[str]:
    return sorted(connection.execute(sa.select(_table.c.name)).scalars())


def _row(connection: sa.Connection, name: str) -> Row:
    return connection.execute(sa.select(_table).where(_table.c.name == name)).one()


def _environment_of(row: Row) -> Environment:
    return Environment(row.name, row.created_at, row.created_by, row.disabled_at)


def _insert(connection: sa.Connection, name: str, creator: str | None) -> None:
    values = {"name": name, "created_at": now(), "created_by": creator}
    connection.execute(sa.insert(_table), values)


def _created_since(connection: sa.Connection, creator: str | None, since: datetime) -> int:
    query = sa.select(sa.func.count()).where(
        _table.c.created_by.is_not_distinct_from(creator), _table.c.created_at > since
    )
    return connection.execute(query).scalar_one()


def _use_of(connection: sa.Connection, name: str) -> str | None:
    """Reason why an environment cannot be deleted; None: it can."""
    if name == DEFAULT_ENVIRONMENT:
        return "requests that name none get it"
    # By model, because all indexes begin with it.
    models = sa.select(tables.models.c.id)
    for table, reason in _USES:
        used = sa.select(sa.literal(1)).where(table.c.model_id.in_(models), table.c.environment == name)
        if connection.execute(used.limit(1)).first() is not None:
            return reason
    bound = sa.select(tables.tokens).where(tables.tokens.c.revoked_at.is_(None))
    for row in connection.execute(bound):
        if name in (row.environments or ()):
            return f"the token {row.name!r} is bound to it"
    return None
