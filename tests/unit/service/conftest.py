"""A registered task with three models on a real store, and the application in this process."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.images.preprocessing import Preprocessing
from lifelong_core.store import Scope, Store, register_calibration
from lifelong_service.application import create_application
from tests.unit.service import onnx_graphs
from tests.unit.service.in_process import InProcess

CLASS_NAMES = ("benign", "unclear", "malignant")
COSTS = [[0, 1, 1, 0.5], [1, 0, 1, 0.5], [5, 5, 0, 0.5]]
GREY = Preprocessing.model_validate({"colour": "grey", "mean": [0.5], "standard_deviation": [0.5]})


def png(pixels: Any = 128, size: int = onnx_graphs.EDGE) -> bytes:
    """A grey PNG; `pixels` is one value or an array (size, size)."""
    array = np.broadcast_to(np.asarray(pixels, dtype=np.uint8), (size, size))
    file = BytesIO()
    Image.fromarray(np.ascontiguousarray(array)).save(file, "PNG")
    return file.getvalue()


def calibration(seed: int = 0) -> LabeledLogits:
    rng = np.random.default_rng(seed)
    labels = np.tile(np.arange(3), 60)
    logits = (np.eye(3)[labels] * 2 + rng.normal(size=(180, 3))).astype(np.float32)
    return LabeledLogits(logits, labels)


@dataclass
class Service:
    """The application, its store, and a client with an admin token."""

    client: InProcess
    store: Store
    settings: Settings
    secrets: dict[str, str] = field(default_factory=dict)

    def header(self, scope: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secrets[scope]}"}

    @property
    def worker(self) -> Any:
        return self.client.app.state.worker

    def logged(self) -> int:
        return len(self.store.predictions.read_since(None, limit=100_000)[0])


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_directory=tmp_path, registry_poll_seconds=0.02)


@pytest.fixture(scope="session")
def installations(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """Data directories to copy, with (True) and without the models of `registered`: made once, they save minutes."""
    found: dict[bool, Path] = {}
    for is_registered in (False, True):
        folder = found[is_registered] = tmp_path_factory.mktemp("installation")
        settings = Settings(data_directory=folder)
        Store.migrate(settings.resolved_database_url)
        with Store.from_settings(settings) as store:
            store.group_keys.create(settings.resolved_group_key_file, actor="test")
            if is_registered:
                register(store)
    return found


@pytest.fixture
def store(
    request: pytest.FixtureRequest, settings: Settings, installations: dict[bool, Path]
) -> Iterator[Store]:
    source = installations["registered" in request.fixturenames]
    shutil.copytree(source, settings.data_directory, dirs_exist_ok=True)
    with Store.from_settings(settings) as opened:
        yield opened


@pytest.fixture
def secrets(store: Store) -> dict[str, str]:
    return {
        scope.value: store.tokens.create(f"{scope.value}-token", [scope], actor="test")[1] for scope in Scope
    }


@pytest.fixture
def registered(store: Store) -> None:
    """With this fixture the store holds what `register` adds."""


def register(store: Store) -> None:
    """Add the models linear (promoted), nan and table of kind onnx, and remote of kind external."""
    store.tasks.add("skin", CLASS_NAMES, COSTS, actor="test")
    for name, graph in (
        ("linear", onnx_graphs.linear()),
        ("nan", onnx_graphs.square_root()),
        ("table", onnx_graphs.fails_on_white()),
    ):
        preprocessing = Preprocessing.model_validate(
            {"colour": "grey", "mean": [0.0], "standard_deviation": [1.0]} if name == "table" else GREY
        )
        model = store.models.add(
            "skin", name, kind="onnx", onnx=graph, preprocessing=preprocessing, actor="test"
        )
        register_calibration(store, model.reference, calibration(), actor="test")
    remote = store.models.add("skin", "remote", kind="external", actor="test")
    register_calibration(store, remote.reference, calibration(1), actor="test")


@pytest.fixture
def bypasses() -> bool:
    """Whether predictions bypass the framework; `both_paths` replaces it where a test runs with both."""
    return True


@pytest.fixture
def serve(
    store: Store, secrets: dict[str, str], settings: Settings, bypasses: bool
) -> Iterator[Callable[..., Service]]:
    """Starts an application with the settings given; all end with the test."""
    clients: list[InProcess] = []

    def start(bypasses: bool = bypasses, **changes: Any) -> Service:
        changed = settings.model_copy(update=changes)
        client = InProcess(create_application(changed, bypasses=bypasses))
        clients.append(client)
        client.headers["Authorization"] = f"Bearer {secrets['admin']}"
        return Service(client, store, changed, secrets)

    yield start
    for client in clients:
        client.close()


@pytest.fixture
def service(registered: None, serve: Callable[..., Service]) -> Service:
    return serve()
