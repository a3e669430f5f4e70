"""Promotion reports over HTTP: from labelled cases of two models by a job to the page."""

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.deploy.paired_set import PairedSet
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.promotion import PromotionReport
from lifelong_core.store import Model, register_calibration
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_monitor.jobs.kinds import compare
from tests.unit.service.conftest import Service, calibration
from tests.unit.service.routes.admin.test_interviews import ANSWERS
from tests.unit.service.routes.admin.test_recommendations import attached
from tests.unit.service.routes.admin.test_validations import JOBS, NPZ, claimed, refused

NAMES = [f"{row}.png" for row in range(180)]
PATIENTS = [f"patient {row // 2}" for row in range(180)]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_directory=tmp_path, image_roots=(Path("/data/images"),), registry_poll_seconds=0.02)


@pytest.fixture
def challenger(service: Service) -> Model:
    """A second version of the promoted model, and a recommendation of their task."""
    attached(service, fingerprint={"number_of_classes": 3} | ANSWERS)
    made = service.store.models.add("skin", "linear", kind="external", actor="test")
    register_calibration(service.store, made.reference, calibration(1), actor="test")
    return service.store.models.get(made.reference)


def arrays(**changes: Any) -> dict[str, Any]:
    labelled = calibration(5)
    noise = np.random.default_rng(3).normal(size=(180, 3)).astype(np.float32)
    found = {
        "logits": labelled.logits,
        "current_logits": labelled.logits + noise,
        "labels": labelled.labels,
        "groups": PATIENTS,
        "names": NAMES,
        "metadata_scanner": ["A", "B", "B"] * 60,
    }
    return {name: value for name, value in (found | changes).items() if value is not None}


def npz(**changes: Any) -> bytes:
    file = BytesIO()
    np.savez(file, **arrays(**changes))
    return file.getvalue()


def document(**changes: Any) -> dict[str, Any]:
    found = arrays()
    return {
        **{name: found[name].tolist() for name in ("logits", "current_logits", "labels")},
        "groups": PATIENTS,
        "names": NAMES,
        "metadata": {"scanner": found["metadata_scanner"]},
    } | changes


def path_of(model: Model, query: str = "") -> str:
    return f"/v1/admin/models/{model.reference}/reports{query}"


def trained(service: Service) -> Model:
    """A model that was trained here."""
    return service.store.trainings.record(
        "skin",
        "trained",
        onnx=b"a graph",
        preprocessing=Preprocessing(),
        recipe=Recipe(architecture="resnet18"),
        result=b"{}",
        calibration=calibration(1),
        test_set=LabelledSet(calibration(5)).to_bytes(),
        job_id=service.store.jobs.submit("retrain", {}, actor="test").id,
        actor="test",
    )


def test_labelled_cases_of_both_models_become_a_report(service: Service, challenger: Model) -> None:
    answer = service.client.post(
        path_of(challenger, "?origin=clinic&replicates=100&level=0.9"), content=npz(), headers=NPZ
    )
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert answer.headers["Location"] == f"{JOBS}/{job['id']}"
    payload = dict(job["payload"])
    kept = PairedSet.from_bytes(service.store.artifacts.get(payload.pop("labelled_set")))
    assert payload == {
        "task": "skin",
        "model": challenger.reference,
        "against": "linear@1",
        "recommendation_version": 1,
        "origin": "clinic",
        "replicates": 100,
        "level": 0.9,
    }
    assert kept.new.labelled.groups.dtype.kind == "i", "group keys are not kept"
    running = claimed(service)
    service.store.jobs.succeed(running, compare.work(service.store, running))
    (listed,) = service.client.get(path_of(challenger)).json()["reports"]
    assert (listed["job"], listed["model"], listed["against"]) == (
        job["id"],
        challenger.reference,
        "linear@1",
    )
    assert listed["advice"] in ("promote", "decide", "reject")
    service.client.checks_answers = False
    content = service.client.get(path_of(challenger, f"/{job['id']}")).text
    assert content == service.client.get(f"{JOBS}/{job['id']}/result").text
    report = PromotionReport.from_json(content)
    assert (report.new.reference, report.current.reference) == (challenger.reference, "linear@1")
    assert report.origin == "clinic"
    assert {one.name for one in report.changes.cases} <= set(NAMES)
    page = service.client.get(path_of(challenger, f"/{job['id']}/page"))
    assert "Promotion of" in page.text
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert service.client.get("/v1/admin/models/linear@1/reports").json() == {"reports": []}
    for what in ("", "/page"):
        answer = service.client.get(f"/v1/admin/models/linear@1/reports/{job['id']}{what}")
        assert refused(answer) == (404, "job")


def test_images_below_an_image_root_go_into_the_job(service: Service, challenger: Model) -> None:
    query = "?images=/data/images/lesions"
    answer = service.client.post(path_of(challenger, query), content=npz(), headers=NPZ)
    assert answer.status_code == 202
    assert answer.json()["payload"]["images"] == "/data/images/lesions"


def test_it_may_come_as_json_or_in_a_form(service: Service, challenger: Model) -> None:
    answers = [
        service.client.post(path_of(challenger), content=npz(), headers=NPZ),
        service.client.post(path_of(challenger), json=document()),
        service.client.post(path_of(challenger), files={"labelled_set": npz()}),
    ]
    assert len({answer.json()["payload"]["labelled_set"] for answer in answers}) == 1
    bare = service.client.post(path_of(challenger), json=document(groups=None, names=None, metadata={}))
    assert bare.status_code == 202


def test_logits_that_name_their_models_are_not_taken_for_those_of_others(
    service: Service, challenger: Model
) -> None:
    right, former = [challenger.reference, "linear@1"], [challenger.reference, "linear@0"]
    for models, status in ((right, 202), (former, 422), (right[::-1], 422), (right[:1], 422)):
        answers = (
            service.client.post(path_of(challenger), content=npz(models=models), headers=NPZ),
            service.client.post(path_of(challenger), json=document(models=models)),
        )
        assert [answer.status_code for answer in answers] == [status, status]
        if status == 422:
            assert {refused(answer)[1] for answer in answers} == {"models"}
    assert len(service.client.get(JOBS).json()["jobs"]) == 1  # both forms ask for the same


def test_the_report_of_a_training_is_among_them(service: Service, challenger: Model) -> None:
    model = trained(service)
    assert service.client.get(path_of(model)).json() == {"reports": []}
    document = (
        b'{"current": {"reference": "linear@1"}, "verdict": {"advice": "decide", "headline": "Decide"}}'
    )
    both = PairedSet(LabelledSet(calibration(5)), calibration(6).logits)
    training = service.store.trainings.put_report(
        model.reference, test_set=both.to_bytes(), report=document, page=b"<p>page</p>", actor="test"
    )
    (listed,) = service.client.get(path_of(model)).json()["reports"]
    assert (listed["job"], listed["against"], listed["headline"]) == (
        str(training.job_id),
        "linear@1",
        "Decide",
    )
    service.client.checks_answers = False
    assert service.client.get(path_of(model, f"/{training.job_id}")).content == document
    assert service.client.get(path_of(model, f"/{training.job_id}/page")).text == "<p>page</p>"


def test_without_cases_it_is_made_of_the_test_set_of_the_training(
    service: Service, challenger: Model
) -> None:
    model = trained(service)
    register_calibration(service.store, model.reference, calibration(1), actor="test")
    assert refused(service.client.post(path_of(model))) == (404, "labelled_set")
    both = PairedSet(LabelledSet(calibration(5)), calibration(6).logits)
    document = (
        b'{"current": {"reference": "linear@1"}, "verdict": {"advice": "decide", "headline": "Decide"}}'
    )
    service.store.trainings.put_report(
        model.reference, test_set=both.to_bytes(), report=document, page=b"", actor="test"
    )
    other = service.client.post(path_of(model, f"?against={challenger.reference}"))
    assert refused(other) == (404, "against")
    answer = service.client.post(path_of(model))
    assert answer.status_code == 202
    payload = answer.json()["payload"]
    assert payload["origin"] == f"test split of the training of {model.reference}"
    stored = PairedSet.from_bytes(service.store.artifacts.get(payload["labelled_set"]))
    assert stored == replace(both, models=(model.reference, "linear@1"))


def test_what_does_not_fit_is_refused(service: Service, challenger: Model) -> None:
    service.store.models.add("skin", "bare", kind="external", actor="test")
    service.store.tasks.add("other", ("a", "b"), [[0, 1], [1, 0]], actor="test")
    service.store.models.add("other", "elsewhere", kind="external", actor="test")
    wrong: list[tuple[str, dict[str, Any], tuple[int, str]]] = [
        ("nothing/reports", {}, (404, "model")),
        ("bare/reports", {}, (409, "model")),
        ("linear@1/reports", {}, (422, "against")),
        ("elsewhere/reports", {}, (409, "against")),
        (f"{challenger.reference}/reports?against=nothing", {}, (404, "against")),
        (f"{challenger.reference}/reports?against=elsewhere", {}, (422, "against")),
        (f"{challenger.reference}/reports?replicates=1", {}, (422, "replicates")),
        (f"{challenger.reference}/reports?againts=linear", {}, (422, "againts")),
        (f"{challenger.reference}/reports?images=/etc", {}, (422, "images")),
        (f"{challenger.reference}/reports", {"current_logits": None}, (422, "current_logits")),
        (f"{challenger.reference}/reports", {"current_logits": np.zeros((7, 3))}, (422, "current_logits")),
        (f"{challenger.reference}/reports", {"names": ["a"]}, (422, "names")),
        (f"{challenger.reference}/reports", {"labels": np.full(180, 3)}, (422, "labels")),
    ]
    for path, changes, expected in wrong:
        answer = service.client.post(f"/v1/admin/models/{path}", content=npz(**changes), headers=NPZ)
        assert refused(answer) == expected, path
    for body, field in (
        (document(current_logits=[[1.0]]), "current_logits"),
        (document(names=["x" * 201] * 180), "names.0"),
        (document(colour=1), "colour"),
    ):
        answer = service.client.post(path_of(challenger), json=body)
        assert refused(answer) == (422, field)
    assert service.client.get(JOBS).json() == {"jobs": []}
    assert refused(service.client.post(path_of(challenger))) == (404, "model")


def test_a_task_without_recommendation_has_no_metrics_to_compare_by(service: Service) -> None:
    made = service.store.models.add("skin", "linear", kind="external", actor="test")
    register_calibration(service.store, made.reference, calibration(1), actor="test")
    answer = service.client.post(path_of(made), content=npz(), headers=NPZ)
    assert refused(answer) == (409, "task")
