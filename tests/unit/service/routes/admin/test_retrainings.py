"""Retrainings over HTTP: images and a recipe become a job, what does not fit is named, and trainings are shown."""

import json
import os
import zipfile
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import httpx
import numpy as np
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard, Training
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_monitor.jobs.kinds.retrain import Payload
from tests.unit.develop.training.results import make_result
from tests.unit.service.conftest import Service, png
from tests.unit.service.routes.test_operations import error_of

PATH = "/v1/admin/tasks/skin/retrainings"
SEARCH = "/v1/admin/tasks/skin/augmentation-searches"
ZIP = {"Content-Type": "application/zip"}
RECIPE = {"architecture": "resnet10t", "initial_weights": "random", "image_size": 32}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    roots = (Path("/data/images"), tmp_path / "roots")
    return Settings(data_directory=tmp_path, registry_poll_seconds=0.02, image_roots=roots)


@pytest.fixture(autouse=True)
def source(service: Service) -> None:
    trained = Training(architecture="convnext_tiny", performance={"BA": (0.8,)})
    card = TaskCard(name="moles", classes=2, samples=500)
    service.store.knowledge.put(KnowledgeEntry(card=card, trainings=(trained,)), actor="tests")


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, error_of(answer)["field"]


def jobs_of(service: Service) -> list[str]:
    return [job.kind for job in service.store.jobs.list() if job.kind != "rank"]


def test_a_suggestion_and_a_path_become_a_job(service: Service) -> None:
    body = {"path": "/data/images/skin", "suggestion": "architecture:moles", "recipe": RECIPE, "model": "own"}
    answer = service.client.post(PATH, json=body)
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert answer.headers["Location"] == f"/v1/admin/jobs/{job['id']}"
    asked = Payload.from_document(job["payload"])
    assert (job["kind"], asked.task, asked.model, asked.path) == (
        "retrain",
        "skin",
        "own",
        "/data/images/skin",
    )
    assert (asked.recipe.architecture, asked.recipe.scenario, asked.recipe.image_size) == (
        "convnext_tiny",
        "architecture",
        32,
    )
    assert service.store.audit.list(1, action="jobs.submit")[0].actor == "admin-token"


def test_an_archive_becomes_a_job_with_the_options_of_the_query(service: Service) -> None:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("benign/1.png", png())
    query = {"recipe": json.dumps(RECIPE), "replicates": "200"}
    answer = service.client.post(PATH, params=query, content=file.getvalue(), headers=ZIP)
    assert answer.status_code == 202, answer.text
    asked = Payload.from_document(answer.json()["payload"])
    assert (asked.archive, asked.path, asked.replicates) == ("zip", None, 200)
    assert asked.recipe == Recipe.from_document(RECIPE)
    assert asked.model == service.store.models.list()[0].name


def test_a_wrong_document_is_refused_by_its_field(service: Service) -> None:
    for body, status, field in (
        ({}, 422, "path"),
        ({"path": "/etc"}, 422, "path"),
        ({"source_path": "/etc", "suggestion": "pretraining:moles"}, 422, "source_path"),
        ({"suggestion": "pretraining:moles"}, 422, "source_data"),
        ({"suggestion": "augmentation:moles"}, 422, "suggestion"),
        ({"suggestion": "moles"}, 422, "suggestion"),
        ({"suggestion": "pretraining:nothing"}, 404, "suggestion"),
        ({"recipe": {"architectur": "resnet34"}}, 422, "recipe.architectur"),
        ({"recipe": {"optimisation": {"epochs": 0}}}, 422, "recipe.optimisation.epochs"),
        (
            {
                "recipe": {
                    "optimisation": {"sampling": "prevalence", "target_prevalence": [0.2, 0.2, 0.2, 0.2, 0.2]}
                }
            },
            422,
            "recipe.optimisation.target_prevalence",
        ),
        ({"recipe": {"architecture": "../../data/weights"}}, 422, "recipe.architecture"),
        ({"model": "Own"}, 422, "model"),
        ({"replicates": 1}, 422, "replicates"),
    ):
        given = body if not body else {"path": "/data/images/skin"} | body
        assert refused(service.client.post(PATH, json=given)) == (status, field)
        assert jobs_of(service) == []


def test_an_unknown_task_is_not_found(service: Service) -> None:
    body = {"path": "/data/images/skin"}
    assert service.client.post(PATH.replace("skin", "lungs"), json=body).status_code == 404
    assert service.client.post(SEARCH.replace("skin", "lungs"), json=body).status_code == 404
    assert refused(service.client.post(PATH, params={"recipe": "{"}, content=b"", headers=ZIP)) == (
        422,
        "recipe",
    )


def test_the_plan_starts_nothing(service: Service) -> None:
    body = {"suggestion": "pretraining:moles", "images": 800, "images_per_second": 50.0, "recipe": RECIPE}
    answer = service.client.post(f"{PATH}/plan", json=body)
    assert answer.status_code == 200, answer.text
    plan = answer.json()
    assert plan["splits"]["training"] == 480
    assert plan["source_splits"]["training"] == 450
    assert plan["duration"]["basis"] == "stated"
    assert any("images of moles" in text for text in plan["missing"])
    assert jobs_of(service) == []
    assert refused(service.client.post(f"{PATH}/plan", json={"path": "/etc"})) == (422, "path")


@pytest.mark.parametrize("field", ["path", "source_path"])
def test_a_plan_follows_no_link_out_of_the_image_roots(service: Service, tmp_path: Path, field: str) -> None:
    roots, outside = tmp_path / "roots", tmp_path / "outside"
    outside.mkdir()
    roots.mkdir()
    for number in range(12):
        (outside / f"{number}.png").touch()
    (outside / "table.csv").write_text("path,label\n" + "a.png,a\n" * 12)
    (roots / "folder").symlink_to(outside)
    (roots / "table.csv").symlink_to(outside / "table.csv")
    os.mkfifo(roots / "pipe.csv")
    paths = [roots / "folder", roots / "table.csv", roots / "folder" / "table.csv", roots / ".." / "outside"]
    for path in paths:
        for route in (f"{PATH}/plan", PATH):
            body = {"path": str(roots), "suggestion": "pretraining:moles", field: str(path)}
            assert refused(service.client.post(route, json=body)) == (422, field), path
    counted = service.client.post(f"{PATH}/plan", json={"path": str(roots / "pipe.csv")})  # is not waited for
    assert counted.status_code == 200


def test_a_plan_at_almost_no_speed_is_refused(service: Service) -> None:
    for speed in (0, 5e-324, 0.0009):
        facts = {"images": 10**12, "images_per_second": speed}
        assert refused(service.client.post(f"{PATH}/plan", json=facts)) == (422, "images_per_second")
        slowest = facts | {"images_per_second": 0.001, "recipe": {"optimisation": {"epochs": 10_000}}}
        assert service.client.post(f"{PATH}/plan", json=slowest).status_code == 200


def test_a_recipe_in_the_query_follows_the_rules_of_bodies(service: Service) -> None:
    for recipe, field in (
        ("[" * 10_000, "recipe"),
        ("NaN", "recipe"),
        ("[]", "recipe"),
        (r'{"augmentation": {"searched_on": "\u0000"}}', "recipe.augmentation.searched_on"),
    ):
        answer = service.client.post(PATH, params={"recipe": recipe}, content=b"", headers=ZIP)
        assert refused(answer) == (422, field)
        assert jobs_of(service) == []


def test_a_search_becomes_a_job(service: Service) -> None:
    answer = service.client.post(SEARCH, json={"path": "/data/images/skin", "recipe": RECIPE, "trials": 5})
    assert answer.status_code == 202, answer.text
    payload = answer.json()["payload"]
    assert (payload["task"], payload["path"], payload["trials"]) == ("skin", "/data/images/skin", 5)
    assert Recipe.from_document(payload["recipe"]) == Recipe.from_document(RECIPE)
    assert refused(service.client.post(SEARCH, json={"path": "/data/images", "trials": 0})) == (422, "trials")


def test_a_training_is_shown_with_its_recipe_and_result(service: Service) -> None:
    recipe = Recipe.from_document(RECIPE)
    task = service.store.tasks.get("skin")
    classes = len(task.class_names)
    labels = np.arange(20 * classes) % classes
    result = make_result(recipe)
    job_id = uuid4()
    model = service.store.trainings.record(
        "skin",
        "trained",
        onnx=b"graph",
        preprocessing=Preprocessing(),
        recipe=recipe,
        result=result.to_json().encode(),
        calibration=LabeledLogits(2.0 * np.eye(classes)[labels], labels),
        test_set=b"test",
        job_id=job_id,
        actor="ann",
    )
    answer = service.client.get(f"/v1/admin/models/{model.reference}/training")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["model"], found["job"], found["report"]) == (model.reference, str(job_id), False)
    assert Recipe.from_document(found["recipe"]) == recipe
    assert found["result"] == result.to_document()
    other = service.store.models.list()[0]
    assert refused(service.client.get(f"/v1/admin/models/{other.reference}/training")) == (404, "model")
