"""Fingerprints over HTTP: archives and paths become jobs, and nothing of a refused archive is kept."""

import tarfile
import zipfile
from functools import cache
from io import BytesIO, FileIO
from pathlib import Path

import httpx
import numpy as np
import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.store.artifacts import digest_of
from lifelong_monitor.jobs.kinds.fingerprint import Payload
from tests.unit.service.conftest import Service, png
from tests.unit.service.routes.test_operations import error_of

PATH = "/v1/admin/tasks/skin/fingerprints"
ZIP = {"Content-Type": "application/zip"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        data_directory=tmp_path,
        registry_poll_seconds=0.02,
        image_roots=(Path("/data/images"),),
        maximum_upload_bytes=50_000,
    )


@cache
def archive(form: str = "zip") -> bytes:
    file = BytesIO()
    if form == "zip":
        with zipfile.ZipFile(file, "w") as zipped:
            zipped.writestr("benign/1.png", png())
        return file.getvalue()
    with tarfile.open(fileobj=file, mode="w:gz" if form == "tar.gz" else "w") as tar:
        member = tarfile.TarInfo("benign/1.png")
        member.size = len(png())
        tar.addfile(member, BytesIO(png()))
    return file.getvalue()


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, error_of(answer)["field"]


def kept_files(service: Service) -> list[Path]:
    folder = service.settings.data_directory / "artifacts"
    named = service.store.named_artifacts()
    return [path for path in folder.rglob("*") if path.is_file() and path.name not in named]


@pytest.mark.parametrize("form", ["zip", "tar", "tar.gz"])
@pytest.mark.parametrize("media_type", ["application/zip", "application/octet-stream"])
def test_an_archive_becomes_a_job(service: Service, form: str, media_type: str) -> None:
    query = "?samples=500&bins=50&labelled=false&keywords=skin, mole&kinds=histogram,gaussian"
    answer = service.client.post(PATH + query, content=archive(form), headers={"Content-Type": media_type})
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert answer.headers["Location"] == f"/v1/admin/jobs/{job['id']}"
    assert (job["kind"], job["state"], job["created_by"]) == ("fingerprint", "queued", "admin-token")
    asked = Payload.from_document(job["payload"])
    assert (asked.task, asked.upload, asked.archive) == ("skin", digest_of(archive(form)), form)
    assert (asked.samples, asked.bins, asked.labelled, asked.seed) == (500, 50, False, 0)
    assert (asked.keywords, asked.kinds) == (("skin", "mole"), ("histogram", "gaussian"))
    assert service.store.artifacts.get(asked.upload or "") == archive(form)
    entry = service.store.audit.list(1, action="jobs.submit")[0]
    assert (entry.actor, entry.subject) == ("admin-token", job["id"])


def test_a_path_becomes_a_job(service: Service) -> None:
    body = {"path": "/data/images/skin", "samples": 100, "modality": "dermoscopy"}
    answer = service.client.post(PATH, json=body)
    assert answer.status_code == 202, answer.text
    asked = Payload.from_document(answer.json()["payload"])
    assert (asked.path, asked.samples, asked.modality) == ("/data/images/skin", 100, "dermoscopy")
    assert (asked.upload, asked.archive) == (None, None)


def test_a_wrong_document_is_refused_by_its_field(service: Service) -> None:
    for body, field in (
        ({"path": "/etc"}, "path"),
        ({"path": "/data/images/../secret"}, "path"),
        ({"path": "/data/images2"}, "path"),
        ({"path": "data/images"}, "path"),
        ({"path": ""}, "path"),
        ({}, "path"),
        ({"path": "/data/images", "samples": 1}, "samples"),
        ({"path": "/data/images", "bins": "many"}, "bins"),
        ({"path": "/data/images", "kinds": ["keywords"]}, "kinds"),
        ({"path": "/data/images", "kinds": []}, "kinds"),
        ({"path": "/data/images", "sampels": 5}, "sampels"),
    ):
        assert refused(service.client.post(PATH, json=body)) == (422, field)
        assert service.store.jobs.list() == []


def test_a_wrong_option_of_an_archive_is_refused_by_its_name(service: Service) -> None:
    for query, field in (
        ("samples=many", "samples"),
        ("samples=1", "samples"),
        ("most_unreadable=1", "most_unreadable"),
        ("path=/etc", "path"),
        ("kinds=fingers", "kinds"),
        ("labelled=perhaps", "labelled"),
    ):
        assert refused(service.client.post(f"{PATH}?{query}", content=archive(), headers=ZIP)) == (422, field)
        assert (service.store.jobs.list(), kept_files(service)) == ([], [])


def test_what_is_no_archive_is_refused(service: Service) -> None:
    for content in (b"", b"no archive", png(), archive("zip")[1:]):
        assert refused(service.client.post(PATH, content=content, headers=ZIP)) == (422, "body")
        assert (service.store.jobs.list(), kept_files(service)) == ([], [])
        assert list(service.settings.data_directory.glob("tmp*")) == []


def test_archives_have_a_limit_of_their_own(service: Service) -> None:
    fitting = archive() + b"\0" * (50_000 - len(archive()))
    assert service.client.post(PATH, content=fitting, headers=ZIP).status_code == 202
    answer = service.client.post(PATH, content=fitting + b"\0", headers=ZIP)
    assert refused(answer) == (413, "body")
    assert "LIFELONG_MAXIMUM_UPLOAD_BYTES" in error_of(answer)["hint"]


def test_an_upload_that_the_disk_cannot_take_gets_503(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*, dir: Path, buffering: int) -> FileIO:  # noqa: A002 - the name is tempfile's
        return FileIO("/dev/full", "w")

    monkeypatch.setattr("lifelong_service.bodies.uploads.TemporaryFile", full)
    answer = service.client.post(PATH, content=archive(), headers=ZIP)
    assert refused(answer) == (503, "body")
    assert "No space left" in error_of(answer)["message"]
    assert service.store.jobs.list() == []


def test_other_types_and_tasks_are_refused(service: Service) -> None:
    picture = {"Content-Type": "image/png"}
    assert refused(service.client.post(PATH, content=png(), headers=picture)) == (415, "Content-Type")
    other = PATH.replace("skin", "nothing")
    assert service.client.post(other, content=archive(), headers=ZIP).status_code == 404
    assert service.client.get(other).status_code == 404


def test_the_fingerprints_of_a_task_are_listed(service: Service) -> None:
    assert service.client.get(PATH).json() == {"task": "skin", "fingerprints": []}
    counts = np.full((3, 10), 4)
    made = HistogramFingerprint("e" * 64, 40, counts, np.full(3, 0.5), np.full(3, 1 / 3))
    record = service.store.knowledge.put_fingerprint("skin", made, actor="ann")
    assert service.client.get(PATH).json()["fingerprints"] == [
        {
            "digest": made.digest,
            "kind": "histogram",
            "extractor": "e" * 64,
            "bins": 10,
            "samples": 40,
            "created_at": record.created_at.isoformat(),
            "created_by": "ann",
        }
    ]
