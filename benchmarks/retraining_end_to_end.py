"""Retraining as an operator does it: real processes, real images, promotion under load, kill -9 in between."""

import itertools
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import numpy as np
from PIL import Image

from benchmarks.bundled_images import PARTS, cut_task
from benchmarks.retraining_tasks import EDGE, as_png
from lifelong.client import Client
from lifelong.demo.processes import Processes, RunningProcess, free_ports
from lifelong_core.configuration.settings import Settings
from lifelong_core.design.interview.interview import start_interview
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.develop.training.recipe import Optimisation, Recipe
from lifelong_core.store import Scope, Store
from lifelong_core.store.files import make_data_folder

TARGET, SOURCE = "digits-2-4", "digits-7-9"
SCENARIOS = ("architecture", "augmentation", "pretraining", "co_training")
RECIPE = Recipe(
    architecture="test_convnext",
    initial_weights="random",
    colour="grey",
    image_size=EDGE,
    optimisation=Optimisation(epochs=8, batch_size=16, learning_rate=2e-3),
)
_ACTOR, _ENVIRONMENT = "benchmark", "clinic"
_PATIENCE = 240.0
_ANSWERS_PER_STAGE = 40
_ANSWERS = {
    "number_of_classes": 3,
    "class_scores_available": True,
    "decision_rule": "argmax",
    "unequal_severity": False,
    "class_contribution": "equal",
    "unequal_interest": False,
    "prevalences_representative": False,
    "calibration_assessment": False,
    "dependent_cases": False,
    "invalid_outputs": False,
}


@dataclass(frozen=True)
class Trained:
    """One retraining and the promotion of its model."""

    name: str
    model: str
    balanced_accuracy: float
    seconds: float
    """from the request to the registered and compared model"""
    parity: float
    """largest difference of logits between graph and torch, through the service's preprocessing"""
    advice: str | None
    """of the promotion report; None: there was no model to compare with"""
    resumed: bool
    stages: tuple[str, ...] = ()
    """versions that answered, in each stage of the promotion"""


@dataclass
class Load:
    """Requests that go on through everything; a group keeps its model within a stage."""

    url: str
    token: str
    images: list[bytes]
    failures: list[str] = field(default_factory=list)
    versions: list[tuple[float, str, int]] = field(default_factory=list)
    """time of the request, its group, and the version that answered"""
    _stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self, threads: int = 3) -> Iterator["Load"]:
        """Send until the block ends."""
        workers = [threading.Thread(target=self._send, args=(number, threads)) for number in range(threads)]
        for worker in workers:
            worker.start()
        try:
            yield self
        finally:
            self._stopping.set()
            for worker in workers:
                worker.join()

    def since(self, begun: float) -> list[tuple[str, int]]:
        """Group and version of the requests that were sent after this time."""
        return [(group, version) for at, group, version in list(self.versions) if at > begun]

    def await_answers(self, begun: float) -> list[tuple[str, int]]:
        """Group and version of some answers to requests that were sent after this time."""
        _eventually(lambda: self.failures or len(self.since(begun)) >= _ANSWERS_PER_STAGE, "answers")
        if self.failures:
            raise RuntimeError(f"a request failed: {self.failures[0]}")
        return self.since(begun)

    def _send(self, first: int, step: int) -> None:
        with httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=30
        ) as client:
            for number in itertools.count(first, step):
                if self._stopping.wait(0.02):
                    return
                self._predict(client, number)

    def _predict(self, client: httpx.Client, number: int) -> None:
        group, began = f"patient-{number % 40}", time.monotonic()
        parameters = {"model": TARGET, "environment": _ENVIRONMENT, "group": group}
        content = self.images[number % len(self.images)]
        headers = {"Content-Type": "image/png"}
        try:
            answer = client.post("/v1/predict", params=parameters, content=content, headers=headers)
        except httpx.HTTPError as error:
            self.failures.append(repr(error))
            return
        if answer.is_success:
            self.versions.append((began, group, answer.json()["model_version"]))
        else:
            self.failures.append(f"{answer.status_code} {answer.text[:200]}")


class Operator:
    """What an operator does, through the admin API."""

    def __init__(self, settings: Settings, token: str, api: Client, processes: Processes) -> None:
        self._settings = settings
        self._token = token
        self._api = api
        self._processes = processes

    def retrain(self, task: str, images: Path, name: str, *, kill: bool = False, **options: Any) -> Trained:
        """Train a model and wait until it is registered; `kill` ends the monitor with SIGKILL in the middle."""
        began = time.monotonic()
        document = {"path": str(images), "recipe": RECIPE.to_document(), "model": task, **options}
        job = self._api.post(f"/v1/admin/tasks/{task}/retrainings", document)
        if kill:
            self._kill_monitor_within(UUID(job["id"]))
        result = self.wait_for(job["id"])
        training = self._api.get(f"/v1/admin/models/{result['model']}/training")["result"]
        promotion = result.get("promotion") or {}
        return Trained(
            name=name,
            model=result["model"],
            balanced_accuracy=result["performance"]["BA"],
            seconds=time.monotonic() - began,
            parity=training["parity"]["largest_difference_through_service"],
            advice=promotion.get("advice"),
            resumed=any("goes on after epoch" in line for line in self.lines(UUID(job["id"]))),
        )

    def search(self, task: str, images: Path) -> dict[str, Any]:
        """Search the augmentation policy of a task."""
        document = {"path": str(images), "recipe": RECIPE.to_document(), "trials": 30}
        return self.wait_for(self._api.post(f"/v1/admin/tasks/{task}/augmentation-searches", document)["id"])

    def wait_for(self, job: str) -> dict[str, Any]:
        """The result of a job."""
        state = _eventually(lambda: self._ended(job), f"the job {job}")
        if state["state"] != "succeeded":
            raise RuntimeError(f"the job {job} {state['state']}: {state['error']}")
        return state["result"]

    def lines(self, job: UUID) -> list[str]:
        """The log of a job."""
        with Store.from_settings(self._settings) as store:
            return [line.text for line in store.jobs.log(job)]

    def promote(self, model: str, load: Load) -> tuple[str, ...]:
        """Shadow, canary, promotion and roll-back; the versions that answered in each stage."""
        task, version = model.split("@")
        steps: dict[str, Callable[[], Any]] = {
            "shadow": lambda: self._api.post(f"/v1/admin/models/{model}/shadow", {}),
            "canary 0.5": lambda: self._api.post(f"/v1/admin/models/{model}/canary", {"share": 0.5}),
            "promoted": lambda: self._api.post(
                f"/v1/admin/models/{model}/promote", {"force_reason": "benchmark of the swap"}
            ),
            "rolled back": lambda: self._api.post(f"/v1/admin/tasks/{task}/rollback", {}),
        }
        found: list[str] = []
        for stage, change in steps.items():
            change()
            self._settle()
            begun = time.monotonic()
            answers = load.await_answers(begun)
            groups = {group: {one for who, one in answers if who == group} for group, _ in answers}
            if any(len(versions) > 1 for versions in groups.values()):
                raise RuntimeError(f"a group was answered by several versions in the stage {stage}")
            counts = Counter(found_version for _, found_version in answers)
            found.append(f"{stage}: {counts[int(version)] / len(answers):.0%} by the new version")
        return tuple(found)

    def _ended(self, job: str) -> dict[str, Any] | None:
        found = self._api.get(f"/v1/admin/jobs/{job}")
        return found if found["state"] in ("succeeded", "failed", "cancelled") else None

    def _kill_monitor_within(self, job: UUID) -> None:
        _eventually(lambda: sum("epoch" in line for line in self.lines(job)) >= 2, "two epochs")
        os.killpg(self._processes_monitor.process.pid, signal.SIGKILL)
        self.start_monitor()

    def start_monitor(self) -> None:
        """Start the monitor."""
        self._processes_monitor: RunningProcess = self._processes.start("monitor")

    def _settle(self) -> None:
        """Wait until every worker has the present registry."""
        with Store.from_settings(self._settings) as store:
            registry = store.registry()
            _eventually(
                lambda: all(worker.revision >= registry.revision for worker in store.workers.list()),
                "the workers",
            )


def run(folder: Path, *, say: Callable[[str], None]) -> tuple[list[Trained], Load]:
    """Train the baseline and all scenarios, and promote each under load."""
    images = {name: _write(folder / "images" / name) for name in (TARGET, SOURCE)}
    ports = free_ports(2)
    variables = {
        "LIFELONG_DATA_DIRECTORY": str(folder / "data"),
        "LIFELONG_PORT": str(ports[0]),
        "LIFELONG_MONITOR_PORT": str(ports[1]),
        "LIFELONG_IMAGE_ROOTS": f'["{folder / "images"}"]',
        "LIFELONG_JOB_POLL_SECONDS": "0.2",
        "LIFELONG_REGISTRY_POLL_SECONDS": "0.2",
        "LIFELONG_LEASE_SECONDS": "5",
        "LIFELONG_WORKERS": "2",
        "LIFELONG_TRAINING_DEVICES": '["cpu"]',
    }
    settings, token = _install(variables)
    url = f"http://127.0.0.1:{ports[0]}"
    with Processes(folder, variables) as processes, Client(url, token) as api:
        service = processes.start("serve")
        operator = Operator(settings, token, api, processes)
        operator.start_monitor()
        processes.wait_until_ready(service, f"{url}/readyz")
        trained = [operator.retrain(SOURCE, images[SOURCE], "source task")]
        say(_line(trained[-1]))
        trained.append(operator.retrain(TARGET, images[TARGET], "baseline, monitor killed", kill=True))
        say(_line(trained[-1]))
        operator.search(SOURCE, images[SOURCE])
        load = Load(url, token, _pictures())
        with load.running():
            for scenario in SCENARIOS:
                options: dict[str, Any] = {"suggestion": f"{scenario}:{SOURCE}"}
                if scenario in ("pretraining", "co_training"):
                    options["source_path"] = str(images[SOURCE])
                one = operator.retrain(TARGET, images[TARGET], scenario, **options)
                stages = operator.promote(one.model, load)
                trained.append(Trained(**{**vars(one), "stages": stages}))
                say(_line(trained[-1]))
    return trained, load


def _install(variables: dict[str, str]) -> tuple[Settings, str]:
    """A data directory with both tasks, a recommendation for each, and an acceptance threshold."""
    settings = Settings(
        data_directory=Path(variables["LIFELONG_DATA_DIRECTORY"]), database_url="", artifacts_url=""
    )
    make_data_folder(settings.data_directory)
    Store.migrate(settings.resolved_database_url)
    with Store.from_settings(settings) as store:
        store.group_keys.create(settings.resolved_group_key_file, actor=_ACTOR)
        _, token = store.tokens.create("benchmark", {Scope.ADMIN}, actor=_ACTOR)
        store.environments.ensure(_ENVIRONMENT, limit=2)
        recommendation = start_interview(answers=_ANSWERS).recommendation()
        for name in (TARGET, SOURCE):
            store.tasks.add(name, tuple(_class_names(name)), 1 - np.eye(3), actor=_ACTOR)
            threshold = AcceptanceThreshold(metric="BA", value=0.5)
            store.recommendations.attach(name, recommendation, thresholds=(threshold,), actor=_ACTOR)
    return settings, token


def _class_names(task: str) -> list[str]:
    first = int(task.split("-")[1])
    return [f"digit-{first + offset}" for offset in range(3)]


def _write(folder: Path) -> Path:
    """All images of a task as PNG files, one sub-folder for each class."""
    task = folder.name
    names = _class_names(task)
    for part in PARTS:
        found = cut_task(f"digits {task.removeprefix('digits-')}", part, 1000, 0)
        for number, (pixels, label) in enumerate(zip(found.images, found.labels, strict=True)):
            place = folder / names[label]
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{part}-{number}.png").write_bytes(as_png(_small(pixels)))
    return folder


def _small(pixels: np.ndarray) -> np.ndarray:
    return np.asarray(Image.fromarray(pixels).convert("L").resize((EDGE, EDGE), Image.Resampling.BOX))


def _pictures() -> list[bytes]:
    return [as_png(_small(pixels)) for pixels in cut_task("digits 2-4", PARTS[0], 30, 0).images]


def _line(one: Trained) -> str:
    resumed = ", resumed" if one.resumed else ""
    stages = "".join(f"\n    {stage}" for stage in one.stages)
    return (
        f"{one.name}: {one.model}, balanced accuracy {one.balanced_accuracy:.3f}, {one.seconds:.0f} s{resumed}, parity "
        f"{one.parity:.1g}, advice: {one.advice or 'none to compare with'}{stages}"
    )


def _eventually(happened: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + _PATIENCE
    while not (found := happened()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {_PATIENCE:.0f} s in vain for {what}")
        time.sleep(0.1)
    return found
