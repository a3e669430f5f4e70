from collections.abc import Iterator
from pathlib import Path

import pytest

from lifelong_core.settings import Settings
from lifelong_core.store import Model, Store
from tests import databases
from tests.unit.monitor import population


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[databases.PostgreSQL]:
    with databases.PostgreSQL() as server:
        yield server


@pytest.fixture
def database_kind(request: pytest.FixtureRequest) -> str:
    """SQLite, unless a test asks for something else by indirect parameters."""
    return getattr(request, "param", "sqlite")


@pytest.fixture
def settings(database_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Settings]:
    if database_kind == "sqlite":
        yield population.settings_for(tmp_path)
        return
    server = request.getfixturevalue("postgresql_server")
    with databases.database(database_kind, tmp_path, server) as url:
        yield population.settings_for(tmp_path, database_url=url)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with population.open_store(settings) as opened:
        yield opened


@pytest.fixture
def model(store: Store) -> Model:
    return population.add_model(store)
