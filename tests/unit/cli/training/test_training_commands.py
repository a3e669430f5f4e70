"""`lifelong retrain`, `search-augmentation` and `models training`: plans, jobs, their end, and what was trained."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard, Training
from lifelong_core.develop.training.recipe import Optimisation, Recipe
from lifelong_core.store import Job, Store
from lifelong_core.values.errors import ConflictError, InvalidInputError, UnavailableError
from lifelong_core.values.preprocessing import Preprocessing
from tests.unit.develop.training.results import CLASSES, make_result

COSTS = np.ones((3, 3)) - np.eye(3)
RECIPE = Recipe(architecture="resnet10t", image_size=32, optimisation=Optimisation(epochs=3))

Installed = Callable[..., str]


@pytest.fixture
def store(installed: Installed, tmp_path: Path) -> Iterator[Store]:
    with Store.from_settings(Settings(data_directory=tmp_path / "lifelong-data")) as opened:
        opened.tasks.add("lesions", CLASSES, COSTS, actor="tests")
        trained = Training(architecture="convnext_tiny", performance={"BA": (0.8,)})
        card = TaskCard(name="moles", classes=2, samples=500)
        opened.knowledge.put(KnowledgeEntry(card=card, trainings=(trained,)), actor="tests")
        yield opened


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "roots" / "lesions"
    folder.mkdir(parents=True)
    for number in range(20):
        (folder / f"{number}.png").touch()
    monkeypatch.setenv("LIFELONG_IMAGE_ROOTS", f'["{tmp_path / "roots"}"]')
    return folder


@pytest.fixture
def monitored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifelong.commands.training.retrain.expect_monitor", lambda _: None)


def submitted(store: Store, kind: str) -> Job:
    return next(job for job in store.jobs.list(kind))


def record(store: Store) -> str:
    labels = np.arange(60) % 3
    return store.trainings.record(
        "lesions",
        "net",
        onnx=b"graph",
        preprocessing=Preprocessing(),
        recipe=RECIPE,
        result=make_result(RECIPE).to_json().encode(),
        calibration=LabeledLogits(2.0 * np.eye(3)[labels], labels),
        test_set=b"test",
        job_id=uuid4(),
        actor="ann",
    ).reference


def test_the_plan_is_printed_and_nothing_is_started(
    installed: Installed, store: Store, images: Path, tmp_path: Path
) -> None:
    printed = installed("retrain", "lesions", "--data", str(images), "--from", "architecture:moles", "--plan")
    assert "convnext_tiny from pretrained weights, architecture from moles" in printed
    assert "about 12 training, 2 validation, 3 calibration, 3 test" in printed
    assert "Missing: No monitor runs" in printed
    (tmp_path / "recipe.json").write_text(RECIPE.to_json())
    document = json.loads(
        installed("retrain", "lesions", "--recipe", "recipe.json", "--data", str(images), "--plan", "--json")
    )
    assert document["recipe"]["architecture"] == "resnet10t"
    assert not any("no permitted folder" in text for text in document["missing"])
    outside = ("--data", str(tmp_path), "--from", "pretraining:moles", "--source-data", str(tmp_path))
    missing = json.loads(installed("retrain", "lesions", *outside, "--plan", "--json"))["missing"]
    refused = [text for text in missing if "no permitted folder" in text]
    assert [text.split(":")[0] for text in refused] == ["--source-data", "--data"]
    assert store.jobs.list("retrain") == []


def test_a_detached_retraining_is_a_job(
    installed: Installed, store: Store, images: Path, tmp_path: Path, monitored: None
) -> None:
    command = ("retrain", "lesions", "--from", "architecture:moles", "--model", "own", "--detach")
    assert "Submitted the job" in installed(*command, "--data", str(images))
    payload = submitted(store, "retrain").payload
    assert (payload["path"], payload["model"]) == (str(images), "own")
    archive = tmp_path / "elsewhere.tar"
    archive.write_bytes(b"a tar file")
    installed(*command, "--data", str(archive))
    payload = submitted(store, "retrain").payload
    assert payload["archive"] == "tar"
    assert store.artifacts.get(payload["upload"]) == b"a tar file"
    installed("search-augmentation", "moles", "--data", str(images), "--trials", "3", "--detach")
    payload = submitted(store, "search_augmentation").payload
    assert (payload["task"], payload["path"], payload["trials"]) == ("moles", str(images), 3)


def test_what_does_not_fit_is_named(
    installed: Installed, store: Store, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnavailableError, match="no monitor runs"):
        installed("retrain", "lesions", "--data", str(images))
    wrong: list[tuple[tuple[str, ...], str]] = [
        ((), "--data"),
        (("--data", str(tmp_path)), "--data"),
        (("--data", str(images), "--from", "pretraining:moles"), "source_data"),
        (
            ("--data", str(images), "--from", "pretraining:moles", "--source-data", str(tmp_path)),
            "--source-data",
        ),
        (("--data", str(images), "--from", "nothing"), "suggestion"),
    ]
    for arguments, field in wrong:
        with pytest.raises(InvalidInputError) as refused:
            installed("retrain", "lesions", *arguments)
        assert refused.value.field == field
    (tmp_path / "recipe.json").write_text('{"optimisation": {"epochs": 0}}')
    with pytest.raises(InvalidInputError) as refused:
        installed("retrain", "lesions", "--data", str(images), "--recipe", "recipe.json")
    assert "recipe.json" in str(refused.value)
    assert store.jobs.list("retrain") == []


class Worker(threading.Thread):
    """Does the next retraining of a store: reports, and ends it."""

    def __init__(self, store: Store, end: Callable[[Job], Any]) -> None:
        super().__init__()
        self._store = store
        self._end = end

    def run(self) -> None:
        job = None
        while job is None:
            job = self._store.jobs.claim("tests", lease_seconds=60, kinds=("retrain",))
        self._store.jobs.append_log(job, ["epoch 1: better"])
        self._store.jobs.report(job, {"phase": "training", "fraction": 0.5, "epoch": 1, "epochs": 3})
        self._end(job)


def test_a_followed_retraining_shows_its_log_and_what_to_type_next(
    installed: Installed, store: Store, images: Path, monitored: None
) -> None:
    model = record(store)
    result: dict[str, Any] = {
        "task": "lesions",
        "model": model,
        "head": None,
        "evaluation": None,
        "promotion": None,
        "warnings": ["The calibration split is refused."],
    }
    worker = Worker(store, lambda job: store.jobs.succeed(job, result))
    worker.start()
    printed = installed("retrain", "lesions", "--data", str(images))
    worker.join()
    assert f"Registered {model}." in printed
    assert "Warning: The calibration split is refused." in printed
    assert f"Next: `lifelong calibrate {model}" in printed


def test_a_failed_retraining_says_why(
    installed: Installed, store: Store, images: Path, monitored: None
) -> None:
    error = InvalidInputError("timm has no model 'x'.", field="architecture")
    worker = Worker(store, lambda job: store.jobs.fail(job, error))
    worker.start()
    with pytest.raises(ConflictError, match="timm has no model") as failed:
        installed("retrain", "lesions", "--data", str(images))
    worker.join()
    assert failed.value.field == "architecture"


def test_a_training_is_shown_and_its_recipe_exported(
    installed: Installed, store: Store, tmp_path: Path
) -> None:
    model = record(store)
    printed = installed("models", "training", model, "--recipe", str(tmp_path / "recipe.json"))
    for text in ("resnet10t at 32 pixels", "3 (best)", "Parity of the graph on 9 images", "torch 2.13.0"):
        assert text in printed
    assert Recipe.from_json((tmp_path / "recipe.json").read_text()) == RECIPE
    document = json.loads(installed("models", "training", model, "--json"))
    assert document["result"] == make_result(RECIPE).to_document()
