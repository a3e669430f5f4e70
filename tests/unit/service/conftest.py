"""A registered task with three models on a real store, and the application in this process."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.store import Scope, Store, register_calibration
from lifelong_core.values.preprocessing import Preprocessing
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
    logged_before: int = 0
    """Predictions that earlier tests have logged, where tests share the application."""

    def header(self, scope: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secrets[scope]}"}

    @property
    def worker(self) -> Any:
        return self.client.app.state.worker

    def logged(self) -> int:
        return len(self.store.predictions.read_since(None, limit=100_000)[0]) - self.logged_before

    def counting_anew(self) -> "Service":
        """The same application, whose `logged` counts from now on."""
        self.logged_before += self.logged()
        return self


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_directory=tmp_path, registry_poll_seconds=0.02)


class Installations:
    """Data directories to copy: each kind is made once, which saves minutes.

    Args:
        folder: holds them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._secrets: dict[Path, dict[str, str]] = {}

    def copy_to(
        self, directory: Path, *, is_registered: bool = True, has_tokens: bool = True
    ) -> dict[str, str]:
        """Copy one, with or without the models of `register` and a token of each scope; return the tokens' secrets."""
        source = self._folder / f"{is_registered}-{has_tokens}"
        if not source.exists():
            self._secrets[source] = _make(source, is_registered=is_registered, has_tokens=has_tokens)
        shutil.copytree(source, directory, dirs_exist_ok=True)
        return self._secrets[source]


def _make(folder: Path, *, is_registered: bool, has_tokens: bool) -> dict[str, str]:
    settings = Settings(data_directory=folder)
    Store.migrate(settings.resolved_database_url)
    with Store.from_settings(settings) as store:
        store.group_keys.create(settings.resolved_group_key_file, actor="test")
        if is_registered:
            register(store)
        scopes = Scope if has_tokens else ()
        return {
            scope.value: store.tokens.create(f"{scope.value}-token", [scope], actor="test")[1]
            for scope in scopes
        }


@pytest.fixture(scope="session")
def installations(tmp_path_factory: pytest.TempPathFactory) -> Installations:
    return Installations(tmp_path_factory.mktemp("installations"))


@contextmanager
def running(settings: Settings, secrets: dict[str, str], *, bypasses: bool = True) -> Iterator[Service]:
    """An application on an installation that all tests of a module use.

    Args:
        settings: of the application.
        secrets: of the tokens in its installation.
        bypasses: whether predictions bypass the framework.
    """
    with Store.from_settings(settings) as store:
        client = InProcess(create_application(settings, bypasses=bypasses))
        client.headers["Authorization"] = f"Bearer {secrets['admin']}"
        try:
            yield Service(client, store, settings, secrets)
        finally:
            client.close()


@pytest.fixture(scope="module")
def shared(installations: Installations, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One application for all tests of a module which do not depend on what the others leave behind."""
    folder = tmp_path_factory.mktemp("shared")
    secrets = installations.copy_to(folder)
    with running(Settings(data_directory=folder, registry_poll_seconds=0.02), secrets) as service:
        yield service


@pytest.fixture
def secrets(
    request: pytest.FixtureRequest, settings: Settings, installations: Installations
) -> dict[str, str]:
    is_registered = "registered" in request.fixturenames
    return installations.copy_to(settings.data_directory, is_registered=is_registered)


@pytest.fixture
def store(
    request: pytest.FixtureRequest, settings: Settings, installations: Installations
) -> Iterator[Store]:
    if "secrets" in request.fixturenames:
        request.getfixturevalue("secrets")
    else:
        is_registered = "registered" in request.fixturenames
        installations.copy_to(settings.data_directory, is_registered=is_registered, has_tokens=False)
    with Store.from_settings(settings) as opened:
        yield opened


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
def serve(store: Store, secrets: dict[str, str], settings: Settings) -> Iterator[Callable[..., Service]]:
    """Starts an application with the settings given; all end with the test."""
    clients: list[InProcess] = []

    def start(bypasses: bool = True, **changes: Any) -> Service:
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
