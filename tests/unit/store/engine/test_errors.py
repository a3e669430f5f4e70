"""Errors of the database in words: real disks, real locks, real refusals of a server."""

import functools
import json
import math
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Store
from lifelong_core.store.engine import database
from lifelong_core.store.engine.database import Database, parse_url
from lifelong_core.store.engine.errors import translate_error
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConfigurationError, LifelongError, SchemaError, UnavailableError
from lifelong_service.process import checks
from tests import tools
from tests.unit.store.samples import entry

NAMESPACE = ["unshare", "--map-root-user", "--mount"]
# Root overrules the permissions of files otherwise.
UNPRIVILEGED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


@functools.cache
def can_mount() -> bool:
    try:
        done = subprocess.run(
            [*NAMESPACE, *UNPRIVILEGED, "mount", "-t", "tmpfs", "none", "/mnt"], check=False
        )
    except FileNotFoundError:
        return False
    return done.returncode == 0


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    if not can_mount():
        tools.give_up(tools.DISK_NAMESPACES)
    script = Path(__file__).with_name("disk_conditions.py")
    command = [*NAMESPACE, *UNPRIVILEGED, sys.executable, str(script), str(tmp_path_factory.mktemp("disk"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("place", ["full, init", "full, open", "full, serve", "full, running"])
def test_a_full_disk(heard: dict[str, str], place: str):
    assert "is full. Make room there" in heard[place]
    assert "Traceback" not in heard[place]


def test_a_full_disk_is_read_all_the_same_and_written_again_when_there_is_room(heard: dict[str, str]):
    assert heard["full, reading"] == heard["room again"] == ""


@pytest.mark.parametrize(
    "place", ["read-only, open", "read-only, monitor", "read-only, init", "read-only for one of two"]
)
def test_a_read_only_disk(heard: dict[str, str], place: str):
    assert "is on a file system that is mounted read-only. Mount it for writing" in heard[place]
    assert "Traceback" not in heard[place]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("read-only, no folder", "new cannot be made: Read-only file system"),
        ("folder of another user", "this user cannot write to the folder"),
        ("file of another user", "this user cannot write to the database file"),
    ],
)
def test_what_cannot_be_written_for_another_reason(heard: dict[str, str], place: str, words: str):
    assert words in heard[place]


def test_processes_that_cannot_start_give_up(heard: dict[str, str]):
    assert heard["full, serve"].startswith("2: ")
    assert heard["read-only, monitor"].startswith("1: ")


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Of a database that this connection keeps for itself, readers shut out too."""
    Store.migrate(f"sqlite:///{tmp_path}/lifelong.db")
    connection = sqlite3.connect(tmp_path / "lifelong.db", isolation_level=None)
    for statement in ("PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "PRAGMA user_version = 1"):
        connection.execute(statement)
    yield connection
    connection.close()


@pytest.mark.usefixtures("holder")
def test_a_locked_file(tmp_path: Path):
    database = Database(f"sqlite:///{tmp_path}/lifelong.db", writer_patience_seconds=0.05)
    with pytest.raises(UnavailableError, match=r"locked by another process.*fuser"), database.read():
        pytest.fail("it was read")
    database.close()


@pytest.mark.usefixtures("holder")
def test_a_start_with_a_locked_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert 2 < checks.LOCKED_SECONDS <= 5, (
        "longer than an upgrade takes, shorter than people wait for an answer"
    )
    monkeypatch.setattr(checks, "LOCKED_SECONDS", 0.05)
    # Whoever waits as long as a running service does would wait for ever here.
    monkeypatch.setitem(Store.open.__func__.__kwdefaults__, "patience_seconds", math.inf)
    with pytest.raises(UnavailableError, match=rf"{tmp_path}/lifelong.db is locked by another process"):
        checks.check_database(Settings(data_directory=tmp_path))


def test_a_start_waits_for_a_lock_that_goes(
    holder: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    waits: list[float] = []

    def go(shortest: float, longest: float) -> float:
        waits.append(shortest)
        holder.close()
        return longest

    monkeypatch.setattr(database.random, "uniform", go)
    checks.check_database(Settings(data_directory=tmp_path))
    assert waits


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (sqlite3.SQLITE_CORRUPT, "damaged, or not a database"),
        (sqlite3.SQLITE_IOERR_READ, "the disk of the database file"),
        (sqlite3.SQLITE_PROTOCOL, "does not answer"),
    ],
)
def test_what_is_hard_to_bring_about(tmp_path: Path, code: int, words: str):
    error = sqlite3.OperationalError("as SQLite says it")
    error.sqlite_errorcode = code
    told = translate_error(error, parse_url(f"sqlite:///{tmp_path}/lifelong.db"))
    assert words in str(told)
    assert "as SQLite says it" in str(told)


def test_a_folder_that_is_gone_and_a_file_that_is_gone(tmp_path: Path):
    for place, words in (
        ("gone/lifelong.db", "gone of the database does not exist"),
        ("lifelong.db", "no database file"),
    ):
        missing = sqlite3.OperationalError("unable to open database file")
        missing.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        assert words in str(translate_error(missing, parse_url(f"sqlite:///{tmp_path}/{place}")))


postgresql = pytest.mark.parametrize("kind", ["postgresql"], indirect=True)


@postgresql
def test_a_database_that_is_set_to_take_no_changes(database_url: str):
    database = Database(database_url)
    with database.write() as connection:
        name = connection.execute(sa.text("SELECT current_database()")).scalar_one()
        connection.execute(sa.text(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))
    database.close()
    with (
        pytest.raises(ConfigurationError, match=r"takes no changes.*primary"),
        database.write() as connection,
    ):
        connection.execute(sa.delete(tables.environments))
    database.close()


@postgresql
def test_a_user_without_rights(store: Store):
    def delete_as_a_stranger() -> None:
        with store.database.write() as connection:
            connection.execute(sa.text("CREATE ROLE stranger"))
            connection.execute(sa.text("SET LOCAL ROLE stranger"))
            connection.execute(sa.text("DELETE FROM environments"))

    with pytest.raises(ConfigurationError, match=r"does not allow this.*owner"):
        delete_as_a_stranger()


@postgresql
def test_a_table_that_has_gone_is_an_outage_not_a_mistake(database_url: str, artifacts_url: str):
    with Store.open(database_url, artifacts_url) as store:
        with store.database.write() as connection:
            connection.execute(sa.text("ALTER TABLE requests RENAME TO elsewhere"))
        with pytest.raises(SchemaError, match=r"lacks a table.*restore"):
            store.predictions.append([entry("request")])


@pytest.mark.parametrize(
    ("error", "kind_of_error", "words"),
    [
        (psycopg.errors.DiskFull("no space"), UnavailableError, "is full"),
        (psycopg.errors.TooManyConnections("too many clients"), UnavailableError, "max_connections"),
        (
            psycopg.errors.FeatureNotSupported("cannot set transaction read-write mode during recovery"),
            ConfigurationError,
            "not a standby",
        ),
    ],
)
def test_what_a_server_refuses(error: psycopg.Error, kind_of_error: type[LifelongError], words: str):
    told = translate_error(error, parse_url("postgresql://user@host/name"))
    assert isinstance(told, kind_of_error)
    assert words in str(told)
    assert "host/name" in str(told)
