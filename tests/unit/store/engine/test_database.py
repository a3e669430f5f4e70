import math
import random
import sqlite3
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.store import LogEntry, Prediction, RequestKey, Store, new_prediction_id
from lifelong_core.store.engine import database as database_module
from lifelong_core.store.engine.database import Database, Durability, parse_url
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConfigurationError, ConflictError, InvalidInputError, UnavailableError

only_postgresql = pytest.mark.parametrize("kind", ["postgresql"], indirect=True)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("lifelong.db", "not a database URL"),
        ("mysql://localhost/x", "'mysql' is not supported"),
        ("sqlite://", "memory"),
        ("sqlite:///:memory:", "memory"),
    ],
)
def test_a_url_of_no_supported_database_is_a_configuration_error(url: str, reason: str):
    with pytest.raises(ConfigurationError, match=reason) as refused:
        Store.open(url, "memory://x")
    assert refused.value.field == "LIFELONG_DATABASE_URL"


@pytest.mark.parametrize(
    "url",
    ["postgresql://user@host/x", "postgresql+psycopg2://user@host/x", "postgresql+psycopg://user@host/x"],
)
def test_postgresql_is_always_spoken_to_by_psycopg_3(url: str):
    assert parse_url(url).drivername == "postgresql+psycopg"


def test_a_postgresql_that_is_not_there_is_unavailable():
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1/x does not answer"):
        Store.open("postgresql://postgres@127.0.0.1:1/x", "memory://x")


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    def missing(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'psycopg'")

    monkeypatch.setattr(sa, "create_engine", missing)
    with pytest.raises(ConfigurationError, match=r"\[postgres\]"):
        Database("postgresql://postgres@127.0.0.1:1/x")


def test_a_file_that_is_no_database_is_a_configuration_error(tmp_path: Path):
    file = tmp_path / "lifelong.db"
    file.write_text("no database at all, whatever its name says" * 100)
    with pytest.raises(ConfigurationError, match="not a database"):
        Store.open(f"sqlite:///{file}", "memory://x")


def test_a_folder_in_place_of_the_file_is_a_configuration_error(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="is a folder"):
        Store.open(f"sqlite:///{tmp_path}", "memory://x")


def test_writing_a_read_only_file_is_a_configuration_error(tmp_path: Path):
    file = tmp_path / "lifelong.db"
    Store.migrate(f"sqlite:///{file}")
    with Store.open(f"sqlite:///file:{file}?mode=ro&uri=true", "memory://x") as store:
        assert store.environments.list() == ["default"]
        with pytest.raises(ConfigurationError, match=r"read-only here.*mode=ro"):
            store.environments.ensure("site-a", limit=5)


def test_a_writer_that_gets_no_turn_is_told_so(tmp_path: Path):
    file = tmp_path / "lifelong.db"
    Store.migrate(f"sqlite:///{file}")
    holder = sqlite3.connect(file, isolation_level=None)
    database = Database(f"sqlite:///{file}", writer_patience_seconds=0.05)
    try:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnavailableError, match="locked by another process"), database.write():
            pytest.fail("the transaction must not begin")
        with database.read() as connection:
            assert connection.execute(sa.select(tables.environments.c.name)).scalars().all() == ["default"]
        holder.execute("ROLLBACK")
        with database.write() as connection:
            connection.execute(sa.delete(tables.environments))
    finally:
        holder.close()
        database.close()


def test_a_waiting_writer_goes_on_as_soon_as_it_gets_its_turn(tmp_path: Path):
    file = tmp_path / "lifelong.db"
    Store.migrate(f"sqlite:///{file}")
    holder = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.1, lambda: holder.execute("COMMIT"))
    release.start()
    with Store.open(f"sqlite:///{file}", "memory://x") as store:
        store.environments.ensure("site-a", limit=5)
        assert store.environments.list() == ["default", "site-a"]
    release.join()
    holder.close()


@pytest.mark.parametrize(("durability", "synchronous"), [("process", 1), ("power", 2)])
def test_sqlite_waits_for_the_disk_as_durability_says_and_checks_foreign_keys(
    tmp_path: Path, durability: Durability, synchronous: int
):
    url = f"sqlite:///{tmp_path / 'lifelong.db'}"
    Store.migrate(url)
    with Store.open(url, "memory://x", durability=durability) as store:
        assert store.database.durability == durability
    database = Database(url, durability=durability)
    with database.read() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    database.close()
    assert pragmas == {
        "journal_mode": "wal",
        "synchronous": synchronous,
        "foreign_keys": 1,
        "busy_timeout": 10_000,
    }


@only_postgresql
@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_commit_on_postgresql_waits_for_the_disk_even_where_the_server_is_set_not_to(
    database_url: str, durability: Durability
):
    def setting(connection: sa.Connection) -> str:
        return connection.execute(sa.text("SHOW synchronous_commit")).scalar_one()

    database = Database(database_url, durability=durability)
    with database.write() as connection:
        assert setting(connection) == "on"
        name = connection.execute(sa.text("SELECT current_database()")).scalar_one()
        connection.execute(sa.text(f"ALTER DATABASE {name} SET synchronous_commit = off"))
    database.close()
    plain = sa.create_engine(parse_url(database_url))
    with plain.connect() as connection:
        assert setting(connection) == "off"
    plain.dispose()
    with database.write() as connection:
        assert setting(connection) == "on"
    with database.read() as connection:
        assert setting(connection) == "on"
    with database.write() as connection:
        connection.execute(sa.text(f"ALTER DATABASE {name} SET synchronous_commit = remote_write"))
    database.close()
    with database.write() as connection:
        assert setting(connection) == "remote_write"
    database.close()


@only_postgresql
@pytest.mark.parametrize("default", ["serializable", "repeatable read"])
def test_who_waited_for_a_lock_sees_what_the_other_wrote_even_where_the_server_is_set_not_to(
    database_url: str, artifacts_url: str, default: str
):
    database = Database(database_url)
    with database.write() as connection:
        name = connection.execute(sa.text("SELECT current_database()")).scalar_one()
        connection.execute(sa.text(f"ALTER DATABASE {name} SET default_transaction_isolation = '{default}'"))
    database.close()
    for transaction in (database.write, database.read, database.write, database.write_at_once):
        with transaction() as connection:
            isolation = connection.execute(sa.text("SHOW transaction_isolation")).scalar_one()
        assert isolation == ("repeatable read" if transaction == database.read else "read committed")
    database.close()
    with Store.open(database_url, artifacts_url) as store, ThreadPoolExecutor(8) as threads:
        names = [f"site-{number}" for number in range(5)] * 8
        list(threads.map(lambda name: store.environments.ensure(name, limit=99), names))
        assert set(names) < set(store.environments.list())


def test_an_exception_leaves_nothing_written(store: Store):
    def write_and_fail() -> None:
        with store.database.write() as connection:
            connection.execute(sa.delete(tables.environments))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_fail()
    assert store.environments.list() == ["default"]


def test_a_reader_sees_one_state_although_others_write(store: Store):
    names = sa.select(tables.environments.c.name).order_by(tables.environments.c.name)
    with store.database.read() as connection:
        before = connection.execute(names).scalars().all()
        store.environments.ensure("site-a", limit=5)
        assert connection.execute(names).scalars().all() == before == ["default"]
    assert store.environments.list() == ["default", "site-a"]


def test_a_key_that_somebody_else_took_is_a_conflict(store: Store):
    with pytest.raises(ConflictError, match="first"), store.database.write() as connection:
        connection.execute(sa.insert(tables.registry_revision), {"id": 1, "revision": 0})


@only_postgresql
def test_a_value_that_the_database_cannot_hold_is_invalid(store: Store):
    with pytest.raises(InvalidInputError, match="refuses a value"), store.database.write() as connection:
        connection.execute(sa.update(tables.registry_revision).values(revision=2**70))


def test_check_answers(store: Store):
    store.check()


def terminate_others(store: Store) -> None:
    """End all other connections to this database, as a restart of the server would."""
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    with store.database.read() as connection:
        connection.execute(sa.text(f"{others} AND datname = current_database()"))


@only_postgresql
def test_after_a_broken_connection_the_next_call_succeeds(store: Store):
    def read_while_the_server_goes_away() -> None:
        with store.database.read() as victim:
            victim.execute(sa.select(1))
            terminate_others(store)
            victim.execute(sa.select(1))

    with pytest.raises(UnavailableError, match="terminating"):
        read_while_the_server_goes_away()
    store.check()


def test_errors_hold_nothing_of_what_was_written(store: Store):
    """They are logged: request ids, group hashes and logits are not."""
    key = RequestKey(1, "default", "patient-4711")
    row = Prediction(new_prediction_id(), 1, "default", 1, 0, np.ones(3, np.float32), b"secret-group-hsh")
    store.predictions.append([LogEntry((row,))])
    with pytest.raises(ConflictError) as caught:
        store.predictions.append([LogEntry((row,), key)])
    text = "".join(traceback.format_exception(caught.value))
    assert "secret-group" not in text
    assert "patient-4711" not in text
    assert str(row.id) not in str(caught.value)


@only_postgresql
@pytest.mark.parametrize(("trusted_seconds", "failures"), [(0, 0), (math.inf, 1)], ids=["paused", "busy"])
def test_after_idle_connections_died_at_most_one_call_fails(
    store: Store, monkeypatch: pytest.MonkeyPatch, trusted_seconds: float, failures: int
):
    """None after a pause; under load nobody asks first, and with the first that fails all are renewed."""
    monkeypatch.setattr(database_module, "_TRUSTED_SECONDS", trusted_seconds)
    with store.database.read() as one, store.database.read() as other:
        one.execute(sa.select(1))
        other.execute(sa.select(1))
    terminate_others(store)
    failed = 0
    for _ in range(3):
        try:
            with store.database.write_at_once() as one, store.database.read() as other:
                one.execute(sa.select(1))
                other.execute(sa.select(1))
        except UnavailableError:
            failed += 1
    assert failed == failures


def test_busy_writers_of_several_connections_never_see_a_locked_database(tmp_path: Path):
    """Positive control: without our own retry, the same load does fail."""
    url = f"sqlite:///{tmp_path / 'lifelong.db'}"
    Store.migrate(url)

    def load(patience: float) -> list[BaseException]:
        failures: list[BaseException] = []
        stores = [Database(url, writer_patience_seconds=patience) for _ in range(4)]
        start = threading.Barrier(4)

        def work(database: Database) -> None:
            start.wait()
            for _ in range(30):
                try:
                    with database.write() as connection:
                        connection.execute(
                            sa.update(tables.commit_clock).values(value=tables.commit_clock.c.value + 1)
                        )
                        time.sleep(random.uniform(0, 0.002))
                except UnavailableError as error:
                    failures.append(error)

        threads = [threading.Thread(target=work, args=(database,)) for database in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for database in stores:
            database.close()
        return failures

    assert load(patience=30) == []
    with Store.open(url, "memory://x") as store, store.database.read() as connection:
        assert connection.execute(sa.select(tables.commit_clock.c.value)).scalar_one() == 120
    assert load(patience=-1) != []


@only_postgresql
def test_a_server_that_vanished_without_a_word_is_given_up_within_seconds(store: Store):
    with store.database.read() as connection:
        driver = connection.connection.dbapi_connection
        assert driver is not None
        parameters = driver.info.get_parameters()
    idle, interval, count = (int(parameters[f"keepalives_{name}"]) for name in ("idle", "interval", "count"))
    assert idle + interval * count <= 15
    assert 0 < int(parameters["tcp_user_timeout"]) <= 15_000


def test_the_room_that_a_long_reader_cost_is_given_back_when_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(database_module, "_LOG_BYTES", 100_000)
    url, log = f"sqlite:///{tmp_path}/lifelong.db", tmp_path / "lifelong.db-wal"
    Store.migrate(url)
    with Store.open(url, f"file://{tmp_path}/artifacts") as store:

        def write(megabytes: int) -> int:
            for _ in range(megabytes):
                with store.database.write() as connection:
                    connection.exec_driver_sql("CREATE TABLE filling AS SELECT zeroblob(1000000)")
                    connection.exec_driver_sql("DROP TABLE filling")
            return log.stat().st_size

        with store.database.read() as connection:
            connection.execute(sa.select(tables.commit_clock)).all()
            assert write(12) > 10_000_000
        assert write(12) < 2_000_000


def test_a_file_that_is_removed_while_in_use_is_noticed_before_anything_is_written(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/lifelong.db"
    Store.migrate(url)
    with Store.open(url, f"file://{tmp_path}/artifacts") as store:
        store.check_writable()
        (tmp_path / "lifelong.db").rename(tmp_path / "away.db")
        for call in (store.check, store.check_writable):
            with pytest.raises(UnavailableError, match="removed or replaced"):
                call()
        (tmp_path / "away.db").rename(tmp_path / "lifelong.db")
        store.check_writable()
