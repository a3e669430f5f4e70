"""A retraining with real processes: the monitor is killed in the middle, and one model is registered and promoted."""

import os
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest

from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.store import Store
from tests.integration.installation import CLASS_NAMES, Installation, install
from tests.integration.monitors import Monitor, running_monitor
from tests.integration.processes import Service, eventually, running_service
from tests.unit.develop.training.optimisation.drawn import draw
from tests.unit.store.design_samples import recommendation_without_costs

EPOCHS = 12
RECIPE = {
    "architecture": "test_resnet",
    "initial_weights": "random",
    "image_size": 32,
    # Patience for all epochs: the monitor is killed in the middle of them.
    "optimisation": {"epochs": EPOCHS, "patience": EPOCHS, "batch_size": 16, "learning_rate": 0.003},
}


def monitor(installation: Installation, images: Path) -> AbstractContextManager[Monitor]:
    """A monitor that trains on the images of a folder."""
    return running_monitor(
        installation.settings.data_directory.parent,
        cycle_interval_seconds=None,
        image_roots=f'["{images.parent}"]',
        lease_seconds=3,
        job_poll_seconds=0.1,
        training_devices='["cpu"]',
    )


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    made = install(tmp_path_factory.mktemp("retraining"))
    with made.store() as store:
        threshold = AcceptanceThreshold(metric="BA", value=0.5, by="estimate")
        store.recommendations.attach(
            "skin", recommendation_without_costs(), thresholds=(threshold,), actor="tests"
        )
    return made


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("roots") / "skin"
    draw(folder, dict.fromkeys(CLASS_NAMES, 60))
    return folder


@pytest.fixture(scope="module")
def service(installation: Installation, images: Path) -> Iterator[Service]:
    folder = installation.settings.data_directory.parent
    with running_service(
        folder, installation.token, workers=1, image_roots=f'["{images.parent}"]'
    ) as started:
        started.wait_until_ready()
        yield started


def get(service: Service, path: str) -> Any:
    reply = service.send("GET", path)
    assert reply.status == 200, reply.content
    return reply.body


def post(service: Service, path: str, document: Any = None) -> Any:
    with service.connect() as connection:
        return connection.post_json(path, document)


def test_a_killed_training_goes_on_and_gives_one_model_that_is_promoted_when_accepted(
    installation: Installation, service: Service, images: Path
) -> None:
    asked = post(service, "/v1/admin/tasks/skin/retrainings", {"path": str(images), "recipe": RECIPE})
    assert asked.status == 202, asked.content
    job, job_id = f"/v1/admin/jobs/{asked.body['id']}", UUID(asked.body["id"])

    def in_the_middle(store: Store) -> bool:
        """After an epoch: its checkpoint is stored at once; progress is written every second, maybe after the end."""
        found = store.jobs.get(job_id)
        assert found.state in ("queued", "running"), found.error
        return found.checkpoint is not None

    with monitor(installation, images) as first, installation.store() as store:
        eventually(lambda: in_the_middle(store), "the first epoch")
        children = psutil.Process(first.process.pid).children(recursive=True)
        os.kill(first.process.pid, signal.SIGKILL)
        psutil.wait_procs(children, timeout=20)
        assert get(service, job)["state"] == "running"
        assert [model.name for model in store.models.list()] == ["linear", "remote"]

    with monitor(installation, images):
        eventually(lambda: get(service, job)["state"] not in ("queued", "running"), "the training to end")
    done = get(service, job)
    assert done["state"] == "succeeded", done["error"]
    result = done["result"]
    assert (result["model"], result["promotion"]["against"]) == ("linear@2", "linear@1")
    with installation.store() as store:
        lines = [line.text for line in store.jobs.log(job_id)]
        assert any("goes on after epoch" in line for line in lines), lines
        assert sum(model.name == "linear" for model in store.models.list()) == 2
        assert store.tasks.get("skin").promoted_model_id == store.models.get("linear@1").id
    training = get(service, "/v1/admin/models/linear@2/training")
    assert [one["epoch"] for one in training["result"]["epochs"]] == list(range(1, EPOCHS + 1))
    assert result["evaluation"]["accepted"] is True

    refused = post(service, "/v1/admin/models/remote@1/promote")
    assert (refused.status, refused.body["error"]["code"]) == (409, "not_accepted")
    promoted = post(service, "/v1/admin/models/linear@2/promote")
    assert promoted.status == 200, promoted.content
    picture = next((images / CLASS_NAMES[2]).iterdir()).read_bytes()
    answers: list[Any] = []

    def is_served() -> bool:
        answers.append(service.send("POST", "/v1/predict", picture, Content_Type="image/png").body)
        return answers[-1]["model_version"] == 2

    eventually(is_served, "the workers to serve the promoted model")
    assert (answers[-1]["model"], answers[-1]["label"]) == ("linear", CLASS_NAMES[2])
