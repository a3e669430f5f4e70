"""Validations over HTTP: from a labelled set by a job to result and report."""

import re
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import numpy as np
import pytest

from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.store import Job
from lifelong_core.store.jobs import transitions as submission
from lifelong_core.values.errors import UnavailableError
from lifelong_monitor.jobs.kinds import validate
from tests.unit.service.conftest import Service, calibration
from tests.unit.service.routes.admin.test_interviews import ANSWERS
from tests.unit.service.routes.admin.test_recommendations import attached
from tests.unit.service.routes.test_operations import error_of

PATH = "/v1/admin/models/linear/validations"
JOBS = "/v1/admin/jobs"
NPZ = {"Content-Type": "application/x-npz"}
SCANNERS = ["A", "B"] * 90
PATIENTS = [f"patient {index // 2}" for index in range(180)]


@pytest.fixture
def judged(service: Service) -> Service:
    """The task skin has a recommendation."""
    attached(service, fingerprint={"number_of_classes": 3} | ANSWERS)
    return service


def npz(**changes: Any) -> bytes:
    labelled = calibration(5)
    arrays: dict[str, Any] = {
        "logits": labelled.logits,
        "labels": labelled.labels,
        "groups": PATIENTS,
        "metadata_scanner": SCANNERS,
    }
    file = BytesIO()
    np.savez(file, **{name: value for name, value in (arrays | changes).items() if value is not None})
    return file.getvalue()


def document(**changes: Any) -> dict[str, Any]:
    labelled = calibration(5)
    return {
        "logits": labelled.logits.tolist(),
        "labels": labelled.labels.tolist(),
        "groups": PATIENTS,
        "metadata": {"scanner": SCANNERS},
    } | changes


def submitted(service: Service, **arguments: Any) -> dict[str, Any]:
    path = PATH + arguments.pop("query", "")
    answer = service.client.post(path, **(arguments or {"content": npz(), "headers": NPZ}))
    assert answer.status_code == 202, answer.text
    assert answer.headers["Location"] == f"{JOBS}/{answer.json()['id']}"
    return answer.json()


def claimed(service: Service) -> Job:
    job = service.store.jobs.claim("test", lease_seconds=60)
    assert job is not None
    return job


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, error_of(answer)["field"]


def test_a_labelled_set_becomes_a_job(judged: Service) -> None:
    job = submitted(judged, query="?replicates=200&level=0.9")
    assert (job["kind"], job["state"], job["attempts"], job["created_by"]) == (
        "validate",
        "queued",
        0,
        "admin-token",
    )
    payload = dict(job["payload"])
    data = LabelledSet.from_bytes(judged.store.artifacts.get(payload.pop("labelled_set")))
    assert payload == {
        "task": "skin",
        "model": "linear@1",
        "recommendation_version": 1,
        "environment": None,
        "metadata": ["scanner"],
        "replicates": 200,
        "level": 0.9,
    }
    np.testing.assert_array_equal(data.labelled.logits, calibration(5).logits)
    np.testing.assert_array_equal(data.labelled.labels, calibration(5).labels)
    assert data.metadata["scanner"].tolist() == SCANNERS
    groups = data.labelled.groups
    assert groups.dtype.kind == "i", "who the patients are is not kept"
    assert len(set(zip(groups.tolist(), PATIENTS, strict=True))) == len(set(groups.tolist())) == 90
    assert judged.client.get(f"{JOBS}/{job['id']}").json() == job
    assert "jobs.submit" in [entry.action for entry in judged.store.audit.list()]


def test_metrics_of_groups_can_be_asked_for(judged: Service) -> None:
    assert submitted(judged, query="?aggregate=by-group")["payload"]["aggregation"] == "by_group"
    answer = judged.client.post(f"{PATH}?aggregate=by-group", content=npz(groups=None), headers=NPZ)
    assert refused(answer) == (422, "aggregate")


def test_of_what_was_not_accepted_nothing_is_kept(
    judged: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept() -> set[Path]:
        return {path for path in tmp_path.rglob("*") if re.fullmatch(r"[0-9a-f]{64}", path.name)}

    def fail(*_: object, **__: object) -> None:
        raise UnavailableError("the database is gone.")

    before = kept()
    with monkeypatch.context() as patched:
        patched.setattr(submission, "write_audit", fail)
        answer = judged.client.post(PATH, content=npz(), headers=NPZ)
    assert answer.status_code == 503
    assert (judged.client.get(JOBS).json(), kept()) == ({"jobs": []}, before)
    submitted(judged)
    assert len(kept() - before) == 1


def test_it_may_come_as_json_or_in_a_form(judged: Service) -> None:
    judged_names = judged.store.models.class_names("linear")
    jobs = [
        submitted(judged),
        submitted(judged, json=document()),
        submitted(judged, json=document(labels=[judged_names[k] for k in calibration(5).labels])),
        submitted(judged, content=npz(labels=np.array(judged_names)[calibration(5).labels]), headers=NPZ),
        submitted(judged, files={"labelled_set": npz()}),
        submitted(judged, files={"file": npz()}),
    ]
    assert len({job["payload"]["labelled_set"] for job in jobs}) == 1
    bare = submitted(judged, json=document(groups=None, metadata={}))
    assert bare["payload"]["metadata"] == []
    mixed = submitted(judged, json=document(metadata={"age": [40.5] * 180, "male": [True] * 180}))
    assert mixed["payload"]["metadata"] == ["age", "male"]


def test_all_metadata_that_a_set_may_have_fits(judged: Service) -> None:
    keys = [f"{index:02}" + "\U0001d7d8" * 98 for index in range(100)]
    job = submitted(judged, json=document(metadata=dict.fromkeys(keys, SCANNERS)))
    assert job["payload"]["metadata"] == keys


def test_nothing_is_validated_before_somebody_said_by_what(service: Service) -> None:
    answer = service.client.post(PATH, content=npz(), headers=NPZ)
    assert refused(answer) == (409, "task")
    assert "/v1/admin/tasks/skin/recommendations" in error_of(answer)["hint"]


def test_what_is_no_labelled_set_is_refused(judged: Service) -> None:
    two_classes = calibration(5).logits[:, :2]
    files: list[tuple[bytes, str]] = [
        (b"", "labelled_set"),
        (b"garbage", "labelled_set"),
        (npz()[:-30], "labelled_set"),
        (npz(logits=None), "logits"),
        (npz(labels=np.full(180, 3)), "labels"),
        (npz(labels=np.arange(7)), "labels"),
        (npz(logits=np.full((180, 3), np.nan)), "logits"),
        (npz(logits=two_classes, labels=np.zeros(180)), "logits"),
        (npz(groups=["a"]), "groups"),
        (npz(metadata_scanner=["A"]), "metadata.scanner"),
        (npz(metadata_scanner=np.array([None] * 180)), "labelled_set"),
        (npz(**{f"metadata_{index}": SCANNERS for index in range(101)}), "metadata"),
        (npz(metadata_=SCANNERS), "metadata"),
        (npz(metadata_age=np.arange(180)), "metadata.age"),  # too many subgroups
    ]
    for content, field in files:
        answer = judged.client.post(PATH, content=content, headers=NPZ)
        assert refused(answer) == (422, field), answer.text
    documents = [
        ({}, "logits"),
        (document(logits=[[1.0], [1.0, 2.0]]), "logits"),
        (document(labels=[10**30] * 180), "labels"),
        (document(labels=["naevus"] * 180), "labels"),
        (document(groups=["x" * 257] * 180), "groups.0"),
        (document(metadata={"scanner": ["A"]}), "metadata.scanner"),
        (document(metadata={"scanner": [None] * 180}), "metadata.scanner"),
        (document(metadata={"scanner": [[1], [1, 2]]}), "metadata.scanner"),
        (document(metadata={"scanner": ["x" * 257] + ["A"] * 179}), "metadata.scanner"),
        (document(metadata={"scanner": "A"}), "metadata.scanner"),
        (document(colour=1), "colour"),
    ]
    for body, field in documents:
        answer = judged.client.post(PATH, json=body)
        assert refused(answer) == (422, field), answer.text
    assert judged.client.get(JOBS).json() == {"jobs": []}


def test_what_is_asked_for_wrongly(judged: Service) -> None:
    judged.store.models.add("skin", "bare", kind="external", actor="test")
    cases = [
        ("nothing/validations", 404, "model"),
        ("bare/validations", 409, "model"),  # it has no head that decides
        ("linear/validations?environment=elsewhere", 404, "environment"),
        ("linear/validations?replicates=1", 422, "replicates"),
        ("linear/validations?level=1", 422, "level"),
        ("linear/validations?aggregate=mean", 422, "aggregate"),
    ]
    for path, status, field in cases:
        answer = judged.client.post(f"/v1/admin/models/{path}", content=npz(), headers=NPZ)
        assert refused(answer) == (status, field), path


def test_an_npz_that_unpacks_to_too_much(registered: None, serve: Callable[..., Service]) -> None:
    service = serve(maximum_labelled_bytes=100_000)
    attached(service, fingerprint={"number_of_classes": 3} | ANSWERS)
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata_scanner.npy", bytes(200_000))
    assert refused(service.client.post(PATH, content=file.getvalue(), headers=NPZ)) == (413, "labelled_set")
    assert refused(service.client.post(PATH, content=bytes(100_001), headers=NPZ)) == (413, "body")


def test_result_and_report_are_there_when_the_job_is_done(judged: Service) -> None:
    job = submitted(judged)
    path = f"{JOBS}/{job['id']}"
    for state in ("queued", "running"):
        for what in ("result", "report"):
            early = judged.client.get(f"{path}/{what}")
            assert refused(early) == (409, "job")
            assert state in error_of(early)["message"]
        if state == "queued":
            running = claimed(judged)
    judged.client.checks_answers = False
    result, report = b'{"accepted": true}', b"<!doctype html><title>linear@1</title>"
    digests = {
        name: judged.store.artifacts.put(content)
        for name, content in (("result", result), ("report", report))
    }
    judged.store.jobs.succeed(running, digests | {"accepted": True, "samples": 180})
    done = judged.client.get(path).json()
    assert (done["state"], done["result"]["accepted"], done["attempts"]) == ("succeeded", True, 1)
    assert done["finished_at"] >= done["started_at"] >= done["created_at"]
    found = judged.client.get(f"{path}/result")
    assert (found.content, found.headers["Content-Type"]) == (result, "application/json")
    page = judged.client.get(f"{path}/report")
    assert (page.content, page.headers["Content-Type"]) == (report, "text/html; charset=utf-8")
    policy = page.headers["Content-Security-Policy"].split("; ")
    assert policy[:3] == ["default-src 'none'", "style-src 'unsafe-inline'", "img-src data:"]
    assert page.headers["X-Content-Type-Options"] == found.headers["X-Content-Type-Options"] == "nosniff"


def test_what_was_sent_is_what_the_monitor_validates(judged: Service) -> None:
    attached(
        judged,
        fingerprint={"number_of_classes": 3} | ANSWERS,
        thresholds=[{"metric": "AUROC", "value": 0.5}, {"metric": "TPR", "value": 1, "class_index": 2}],
    )
    job = submitted(judged, query="?replicates=100")
    running = claimed(judged)
    judged.store.jobs.succeed(running, validate.work(judged.store, running))
    path = f"{JOBS}/{job['id']}"
    done = judged.client.get(path).json()
    assert (done["result"]["accepted"], done["result"]["samples"]) == (False, 180)
    found = judged.client.get(f"{path}/result").json()
    assert (found["samples"], found["cases"], found["groups"]) == (180, 90, True)
    assert {value["metric"] for value in found["values"]} == {"EC", "TPR", "AUROC"}
    assert [outcome["passed"] for outcome in found["acceptance"]] == [True, False]
    page = judged.client.get(f"{path}/report").text
    assert "linear@1" in page
    assert "scanner" in page
    assert not re.findall(r"(?:src|href)=[\"'](?!data:|#)", page), "it needs nothing from elsewhere"


def test_a_job_that_failed_says_why(judged: Service) -> None:
    job = submitted(judged)
    judged.store.jobs.fail(claimed(judged), {"message": "no sun.", "field": None, "hint": "Wait."})
    late = judged.client.get(f"{JOBS}/{job['id']}/report")
    assert (*refused(late), error_of(late)["hint"]) == (409, "job", "Wait.")
    assert "no sun" in error_of(late)["message"]
    assert judged.client.get(f"{JOBS}/{job['id']}").json()["error"]["message"] == "no sun."


def test_jobs_are_listed_newest_first(judged: Service) -> None:
    first, second = submitted(judged), submitted(judged, json=document(metadata={}))

    def listed(query: str = "") -> list[str]:
        return [job["id"] for job in judged.client.get(f"{JOBS}{query}").json()["jobs"]]

    assert listed() == [second["id"], first["id"]]
    assert listed("?limit=1") == [second["id"]]
    claimed(judged)
    assert listed("?state=running&kind=validate") == [first["id"]]
    assert listed("?kind=retrain") == []
    assert refused(judged.client.get(f"{JOBS}?state=lost")) == (422, "state")


def test_jobs_that_are_not_there(judged: Service) -> None:
    unknown = f"{JOBS}/{UUID(int=7)}"
    for path in (unknown, f"{unknown}/result", f"{unknown}/report"):
        assert refused(judged.client.get(path)) == (404, "job")
    other = judged.store.jobs.submit("other", {}, actor="test")
    judged.store.jobs.succeed(claimed(judged), {})
    assert refused(judged.client.get(f"{JOBS}/{other.id}/report")) == (404, "job")
