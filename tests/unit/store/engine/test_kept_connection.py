"""The connection that is kept for the prediction log."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from lifelong_core.store.engine.kept_connection import KeptConnection


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
