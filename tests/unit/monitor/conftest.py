from collections.abc import Iterator
from pathlib import Path

import pytest

from lifelong_core.settings import Settings
from lifelong_core.store import Model, Store
from tests.unit.monitor import population


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return population.settings_for(tmp_path)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with population.open_store(settings) as opened:
        yield opened


@pytest.fixture
def model(store: Store) -> Model:
    return population.add_model(store)
