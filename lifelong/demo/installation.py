"""The demo's own installation: a fresh data directory, free ports, task, model and calibration set."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lifelong.calibration import logits_of_images
from lifelong.client import Client
from lifelong.demo.images import CLASS_NAMES, COSTS, Split, as_png, degrade
from lifelong.demo.processes import free_ports
from lifelong.demo.training import MEAN, STANDARD_DEVIATION
from lifelong.labelled_images import labelled_images
from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Scope, Store
from lifelong_core.store.files import make_data_folder
from lifelong_core.values.preprocessing import Preprocessing

TASK, MODEL, ENVIRONMENT = "triage", "digits-cnn", "clinic"
WINDOW_SAMPLES = 5000
"""More than a run sends: every window begins with the first image, and holds the shift."""
CYCLE_SECONDS = 10.0
ACTOR = "demo"


@dataclass(frozen=True)
class Installation:
    """The demo's own folder, ports and secrets."""

    directory: Path
    settings: Settings
    token: str
    clinic_token: str
    """may predict in the environment of the demo only, so that the monitor trusts it from the first prediction on"""

    @property
    def service_url(self) -> str:
        """Where the service listens."""
        return self.settings.service_url

    @property
    def monitor_url(self) -> str:
        """Where the monitor exports its metrics."""
        return f"{self.settings.listening_url(self.settings.monitor_port)}/metrics"

    @property
    def environment_variables(self) -> dict[str, str]:
        """The settings as a user would give them to `lifelong serve` and `lifelong monitor`."""
        settings = self.settings
        return {
            "LIFELONG_DATA_DIRECTORY": str(settings.data_directory),
            "LIFELONG_PORT": str(settings.port),
            "LIFELONG_MONITOR_PORT": str(settings.monitor_port),
            "LIFELONG_CYCLE_INTERVAL_SECONDS": str(settings.cycle_interval_seconds),
            "LIFELONG_WINDOW_SAMPLES": str(settings.window_samples),
        }


def install(directory: Path) -> Installation:
    """Initialise a data directory of the demo's own, as `lifelong init` does."""
    service_port, monitor_port = free_ports(2)
    settings = Settings(
        data_directory=directory / "data",
        database_url="",
        artifacts_url="",
        group_key_file=None,
        host="127.0.0.1",
        port=service_port,
        monitor_port=monitor_port,
        cycle_interval_seconds=CYCLE_SECONDS,
        window_samples=WINDOW_SAMPLES,
    )
    make_data_folder(settings.data_directory)
    Store.migrate(settings.resolved_database_url)
    with Store.from_settings(settings) as store:
        store.group_keys.create(settings.resolved_group_key_file, actor=ACTOR)
        _, token = store.tokens.create("demo", {Scope.ADMIN}, actor=ACTOR)
        _, clinic_token = store.tokens.create(
            ENVIRONMENT, {Scope.PREDICT}, actor=ACTOR, environments=[ENVIRONMENT]
        )
    return Installation(directory, settings, token, clinic_token)


def register(installation: Installation, onnx: bytes) -> None:
    """Register task and model; preprocessing travels with the model."""
    preprocessing = Preprocessing(colour="grey", mean=(MEAN,), standard_deviation=(STANDARD_DEVIATION,))
    with Store.from_settings(installation.settings) as store:
        store.tasks.add(TASK, CLASS_NAMES, COSTS, actor=ACTOR)
        store.models.add(TASK, MODEL, kind="onnx", onnx=onnx, preprocessing=preprocessing, actor=ACTOR)


def write_calibration_images(directory: Path, split: Split, rng: np.random.Generator) -> Path:
    """Degraded images as PNG files in one folder per class, as `lifelong calibrate` takes them."""
    folder = directory / "calibration"
    for index, image in enumerate(degrade(split.digits, rng)):
        place = folder / CLASS_NAMES[split.labels[index]]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{index:04}.png").write_bytes(as_png(image))
    return folder


def calibrate(api: Client, folder: Path, on_images: Callable[[int], None]) -> None:
    """Calibrate the model as `lifelong calibrate` does."""
    labelled = logits_of_images(api, MODEL, labelled_images(folder, CLASS_NAMES), on_images=on_images)
    api.add_calibration_set(MODEL, labelled.to_bytes())
