"""The connection that is kept for the prediction log."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from lifelong_core.store.engine.database import Database
from lifelong_core.store.engine.kept_connection import KeptConnection


def is_open(driver: sqlite3.Connection) -> bool:
    try:
        driver.execute("SELECT 1").close()
    except sqlite3.ProgrammingError:
        return False
    return True


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sa.Engine]:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'file.db'}")
    yield engine
    engine.dispose()


def test_the_same_connection_is_lent_again(engine: sa.Engine) -> None:
    kept = KeptConnection(engine)
    with kept.lend() as first:
        driver = first.dbapi_connection
    with kept.lend() as second:
        assert second.dbapi_connection is driver
    assert engine.pool.checkedout() == 1
    kept.close()
    assert engine.pool.checkedout() == 0


def test_a_second_thread_gets_another_connection_at_once(engine: sa.Engine) -> None:
    kept, found = KeptConnection(engine), list[object]()

    def use() -> None:
        with kept.lend() as other:
            found.append(other.dbapi_connection)

    with kept.lend() as mine:
        thread = threading.Thread(target=use)
        thread.start()
        thread.join(10)
        assert len(found) == 1
        assert found[0] is not mine.dbapi_connection
    assert engine.pool.checkedout() == 1
    kept.close()


def test_after_an_error_nothing_of_the_transaction_remains(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE numbers (number INTEGER)"))
    kept = KeptConnection(engine)

    def fail() -> None:
        with kept.lend() as pooled:
            pooled.dbapi_connection.execute("INSERT INTO numbers VALUES (1)").close()
            raise RuntimeError("the block failed")

    with pytest.raises(RuntimeError, match="the block failed"):
        fail()
    assert engine.pool.checkedout() == 0
    with kept.lend() as pooled:
        assert pooled.dbapi_connection.execute("SELECT count(*) FROM numbers").fetchone() == (0,)
    kept.close()


def test_a_lent_connection_does_not_hold_up_the_end_and_is_not_kept_after_it(engine: sa.Engine) -> None:
    kept = KeptConnection(engine)
    with kept.lend() as pooled:
        kept.close()
        assert pooled.dbapi_connection.execute("SELECT 1").fetchone() == (1,)
    assert engine.pool.checkedout() == 0


@pytest.mark.parametrize("fails", [False, True])
def test_a_connection_that_was_lent_when_the_database_was_closed_is_closed_after_its_block(
    tmp_path: Path, *, fails: bool
) -> None:
    """A pool that was disposed would keep it open."""
    database = Database(f"sqlite:///{tmp_path / 'file.db'}")
    with suppress(RuntimeError), database.write_on_driver() as driver:
        database.close()
        driver.execute("CREATE TABLE numbers (number INTEGER)").close()
        if fails:
            raise RuntimeError("the block failed")
    assert not is_open(driver)
    with database.read() as connection:
        assert sa.inspect(connection).has_table("numbers") is not fails
    database.close()


def test_all_connections_that_were_lent_at_the_end_are_closed_after_their_blocks(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'file.db'}")
    with ExitStack() as lent:
        kept = lent.enter_context(database._kept.lend())
        others = [lent.enter_context(lend()) for lend in (database._kept.lend, database.read, database.read)]
        drivers: list[Any] = [
            one.connection.dbapi_connection if isinstance(one, sa.Connection) else one.dbapi_connection
            for one in (kept, *others)
        ]
        database.close()
        assert all(map(is_open, drivers))
    assert not any(map(is_open, drivers))


def test_a_connection_that_its_block_invalidated_is_returned_after_the_end(engine: sa.Engine) -> None:
    kept = KeptConnection(engine)

    def fail() -> None:
        with kept.lend() as pooled:
            kept.close()
            pooled.invalidate()
            raise RuntimeError("the block failed")

    with pytest.raises(RuntimeError, match="the block failed"):
        fail()
    assert engine.pool.checkedout() == 0
