"""Commit order of the log, by which a reader knows which rows are final.

Ids are made before the commit, so their order is not that of the commits: a reader that remembers the last id it saw
would skip a row that commits late with a smaller id. Therefore every row of the log has a `commit_order`:

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
    """The log position: all rows of a smaller commit order are visible to this transaction, and none will be added."""
    if connection.dialect.name == "postgresql":
        return connection.execute(sa.select(_OLDEST_RUNNING + _OFFSET)).scalar_one()
    return connection.execute(sa.select(_value + 1)).scalar_one()


def read_order(connection: sa.Connection) -> int:
    """No transaction that committed before this one has a larger order, and none that begins later a smaller one."""
    if connection.dialect.name == "postgresql":
        return connection.execute(sa.select(_TRANSACTION + _OFFSET)).scalar_one()
    return connection.execute(sa.select(_value)).scalar_one()


def rows_behind(commit_order: int, prediction_id: UUID) -> sa.ColumnElement[bool]:
    """The rows of the log that come after this one."""
    reached = sa.tuple_(
        sa.literal(commit_order, _log.c.commit_order.type), sa.literal(prediction_id, _log.c.id.type)
    )
    return sa.tuple_(_log.c.commit_order, _log.c.id) > reached


def rows_of(model_id: int, environment: str) -> tuple[sa.ColumnElement[bool], ...]:
    """The rows of a population, for queries in commit order."""
    # Adding 0 keeps SQLite from reading the whole population by its index instead of only what appeared.
    return _log.c.model_id + 0 == model_id, _log.c.environment == environment


def align_clock(connection: sa.Connection) -> None:
    """Raise the offset of a restored PostgreSQL log, so that new rows come after all present ones."""
    if connection.dialect.name != "postgresql":
        return
    logged = sa.select(sa.func.max(tables.predictions.c.commit_order)).scalar_subquery()
    # How far a reader has come may lie far above the newest row: every transaction on the server counts, not only ours.
    judged = sa.select(sa.func.max(tables.cycles.c.log_position)).scalar_subquery()
    summarised = sa.select(sa.func.max(tables.summary_cursors.c.commit_order)).scalar_subquery()
    newest = connection.execute(sa.select(sa.func.greatest(logged, judged, summarised))).scalar_one()
    present = connection.execute(sa.select(_TRANSACTION + _OFFSET)).scalar_one()
    if newest is not None and newest > present:
        connection.execute(sa.update(tables.commit_clock).values(value=_value + newest - present))
