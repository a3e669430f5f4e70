"""Every test that asks for a database runs on both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lifelong_core.store import Store
from tests import databases


@pytest.fixture(params=databases.KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """For what only one of them has: `parametrize("kind", ["postgresql"], indirect=True)`."""
    return request.param


@pytest.fixture
def empty_url(kind: str, tmp_path: Path, postgresql_server: databases.PostgreSQL) -> Iterator[str]:
    """A database without any table (on SQLite: not even a file)."""
    with databases.database(kind, tmp_path, postgresql_server, migrated=False) as url:
        yield url


@pytest.fixture
def database_url(kind: str, tmp_path: Path, postgresql_server: databases.PostgreSQL) -> Iterator[str]:
    """A migrated database of the test's own, for tests that change more than rows."""
    with databases.database(kind, tmp_path, postgresql_server) as url:
        yield url


@pytest.fixture(scope="session")
def shared_postgresql_url(postgresql_server: databases.PostgreSQL) -> str:
    return postgresql_server.create(migrated=True)


@pytest.fixture
def artifacts_url(tmp_path: Path) -> str:
    return f"file://{tmp_path / 'artifacts'}"


@pytest.fixture
def store(request: pytest.FixtureRequest, kind: str, tmp_path: Path, artifacts_url: str) -> Iterator[Store]:
    """A store without any rows of its own."""
    if kind == "sqlite":
        url = databases.sqlite_url(tmp_path, migrated=True)
    else:
        url = request.getfixturevalue("shared_postgresql_url")
        databases.clear(url)
    with Store.open(url, artifacts_url) as opened:
        yield opened


@pytest.fixture
def own_store(database_url: str, artifacts_url: str) -> Iterator[Store]:
    """A store on a database of its own, for tests that drop partitions."""
    with Store.open(database_url, artifacts_url) as opened:
        yield opened
