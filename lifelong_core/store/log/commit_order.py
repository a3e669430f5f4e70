"""Commit order of the log, by which readers determine the final rows.

Ids are made before the commit, so their order is not that of the commits: a reader that continues after its last id
would skip a smaller id that commits later. Therefore every row of the log has a `commit_order`:

- SQLite has one writer at a time, so a counter raised within the transaction is the order of the commits.
- On PostgreSQL it is the id of the inserting transaction. A reader stops at the oldest transaction that is still
  running (the log position): all rows below are visible to it, and none can appear there, because every
  transaction that starts later gets a larger id.

`commit_clock.value` is added to transaction ids. It is 0 until a log is restored on a new server, whose transaction ids
start low again; `align_clock` (run by every migration, so by `lifelong upgrade` after a restore) then lifts it.
"""

from uuid import UUID

import sqlalchemy as sa

from lifelong_core.store.schema import tables

_log = tables.predictions
_value = tables.commit_clock.c.value
_OFFSET = sa.select(_value).scalar_subquery()
_TRANSACTION = sa.literal_column("pg_current_xact_id()::text::bigint", sa.BigInteger)
_OLDEST_RUNNING = sa.literal_column("pg_snapshot_xmin(pg_current_snapshot())::text::bigint", sa.BigInteger)


def read_log_position(connection: sa.Connection) -> int:
    """Return the log position: this transaction sees all rows of smaller commit order, and none will follow."""
    if connection.dialect.name == "postgresql":
        return connection.execute(sa.select(_OLDEST_RUNNING + _OFFSET)).scalar_one()
    return connection.execute(sa.select(_value + 1)).scalar_one()


def read_order(connection: sa.Connection) -> int:
    """Return a commit order that no earlier commit exceeds and that no later transaction falls below."""
    if connection.dialect.name == "postgresql":
        return connection.execute(sa.select(_TRANSACTION + _OFFSET)).scalar_one()
    return connection.execute(sa.select(_value)).scalar_one()


def rows_behind(commit_order: int, prediction_id: UUID) -> sa.ColumnElement[bool]:
    """Condition for the rows of the log after this one in commit order."""
    reached = sa.tuple_(
        sa.literal(commit_order, _log.c.commit_order.type), sa.literal(prediction_id, _log.c.id.type)
    )
    return sa.tuple_(_log.c.commit_order, _log.c.id) > reached


def rows_of(model_id: int, environment: str) -> tuple[sa.ColumnElement[bool], ...]:
    """Conditions for the rows of a population, for queries in commit order."""
    # Adding 0 keeps SQLite from the index of the population, which would read all of its rows.
    return _log.c.model_id + 0 == model_id, _log.c.environment == environment


def align_clock(connection: sa.Connection) -> None:
    """Raise the offset of a restored PostgreSQL log, so that new rows come after all present ones."""
    if connection.dialect.name != "postgresql":
        return
    logged = sa.select(sa.func.max(tables.predictions.c.commit_order)).scalar_subquery()
    # The positions of readers may exceed the newest row by far, since every transaction on the server has an id.
    judged = sa.select(sa.func.max(tables.cycles.c.log_position)).scalar_subquery()
    summarised = sa.select(sa.func.max(tables.summary_cursors.c.commit_order)).scalar_subquery()
    newest = connection.execute(sa.select(sa.func.greatest(logged, judged, summarised))).scalar_one()
    present = connection.execute(sa.select(_TRANSACTION + _OFFSET)).scalar_one()
    if newest is not None and newest > present:
        connection.execute(sa.update(tables.commit_clock).values(value=_value + newest - present))
