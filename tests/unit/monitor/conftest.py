import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import FittedQuantifier, LabeledLogits, quantifier
from lifelong_core.store import Model, Store
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.schedule.tick import Ticker
from tests import databases
from tests.unit.monitor import population


@pytest.fixture(scope="session", autouse=True)
def fitted_once() -> Iterator[None]:
    """Fitting is a pure function of the calibration set, which is the same in most tests, and takes a second."""
    kept: dict[tuple[str, str], FittedQuantifier] = {}

    @dataclass
    class Remembering:
        method: str

        def fit(self, calibration: LabeledLogits) -> FittedQuantifier:
            key = self.method, calibration.digest
            if key not in kept:
                kept[key] = quantifier(self.method).fit(calibration)
            return kept[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("lifelong_monitor.cycle.subject.quantifier", Remembering)
        yield


@pytest.fixture
def database_kind(request: pytest.FixtureRequest) -> str:
    """SQLite, unless a test asks for something else by indirect parameters."""
    return getattr(request, "param", "sqlite")


@pytest.fixture
def settings(database_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Settings]:
    if database_kind == "sqlite":
        databases.sqlite_url(tmp_path, migrated=True)
        yield population.settings_for(tmp_path)
        return
    server = request.getfixturevalue("postgresql_server")
    with databases.database(database_kind, tmp_path, server) as url:
        yield population.settings_for(tmp_path, database_url=url)


@pytest.fixture(scope="session")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory on SQLite that holds the calibrated model of `population`; tests copy it."""
    folder = tmp_path_factory.mktemp("calibrated")
    with population.open_store(population.settings_for(folder)) as opened:
        population.add_model(opened)
    return folder


@pytest.fixture
def store(settings: Settings, database_kind: str, request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store of its own; on SQLite it holds the calibrated model already, if the test uses `model`."""
    if database_kind == "sqlite" and "model" in request.fixturenames:
        shutil.copytree(request.getfixturevalue("calibrated"), settings.data_directory, dirs_exist_ok=True)
    with Store.from_settings(settings) as opened:
        yield opened


@pytest.fixture
def model(store: Store) -> Model:
    return next(iter(store.models.list()), None) or population.add_model(store)


@pytest.fixture
def exporter() -> Exporter:
    return Exporter(cycle_interval_seconds=3600)


@pytest.fixture
def ticker(store: Store, settings: Settings, exporter: Exporter) -> Ticker:
    return Ticker(store, settings, exporter)
