"""Every test that asks for a database runs on both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lifelong_core.store import Store
from tests import databases


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[databases.PostgreSQL]:
    with databases.PostgreSQL() as server:
        yield server


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
    with databases.database(kind, tmp_path, postgresql_server) as url:
        yield url


@pytest.fixture
def artifacts_url(tmp_path: Path) -> str:
    return f"file://{tmp_path / 'artifacts'}"


@pytest.fixture
def store(database_url: str, artifacts_url: str) -> Iterator[Store]:
    with Store.open(database_url, artifacts_url) as opened:
        yield opened
