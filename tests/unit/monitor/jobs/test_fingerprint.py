"""The kind `fingerprint`: from an upload or a path to stored fingerprints and a completed task card."""

import sys
import tarfile
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.develop.features.task import fingerprint_task
from lifelong_core.develop.fingerprints.disclosure import disclosure
from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from lifelong_core.store import Model, Store
from lifelong_core.values.errors import ConfigurationError, ConflictError, InvalidInputError, NotFoundError
from lifelong_monitor.jobs.running.work import work_of
from tests.unit.develop.features import conftest as extractors
from tests.unit.develop.features.drawn import draw_images

weights_file, backbone, extractor = extractors.weights_file, extractors.backbone, extractors.extractor

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Thirty images in three classes, one of them broken."""
    folder = tmp_path / "roots" / "lesions"
    draw_images(folder, 30, classes=("benign", "unclear", "malignant"))
    (folder / "benign" / "0000.png").write_bytes(b"no image")
    return folder


@pytest.fixture
def run(
    store: Store,
    settings: Settings,
    model: Model,
    extractor: ExtractorReference,
    weights_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Run a job for the task `lesions`; arguments are fields of its payload, or its upload."""
    reference = tmp_path / "extractor.npz"
    reference.write_bytes(extractor.to_bytes())
    monkeypatch.setenv("LIFELONG_FINGERPRINT_EXTRACTOR", str(reference))
    monkeypatch.setenv("LIFELONG_FINGERPRINT_WEIGHTS", str(weights_file))
    monkeypatch.setenv("LIFELONG_IMAGE_ROOTS", f'["{tmp_path / "roots"}"]')

    def run_job(upload: bytes | None = None, **payload: Any) -> dict[str, Any]:
        file = None if upload is None else BytesIO(upload)
        submitted = store.jobs.submit("fingerprint", {"task": "lesions"} | payload, upload=file, actor="ann")
        job = store.jobs.claim("tests", lease_seconds=600)
        # A stored fingerprint asks for a job that indexes it.
        while job is not None and job.kind == "rank":
            store.jobs.succeed(job, {})
            job = store.jobs.claim("tests", lease_seconds=600)
        assert job.id == submitted.id
        return work_of("fingerprint")(store, job)

    return run_job


def tar(folder: Path, mode: Any = "w") -> bytes:
    file = BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        archive.add(folder, arcname=".")
    return file.getvalue()


def zipped(folder: Path) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for image in sorted(folder.rglob("*.png")):
            archive.write(image, image.relative_to(folder))
    return file.getvalue()


def test_a_folder_becomes_a_fingerprint_and_the_facts_of_the_task(
    run: Run, images: Path, store: Store, extractor: ExtractorReference, weights_file: Path
) -> None:
    options = {"bins": 50, "samples": 20, "seed": 3, "most_unreadable": 0.1}
    result = run(path=str(images), keywords=["skin"], modality="dermoscopy", **options)
    report = result["report"]
    assert (report["images"], report["sampled"]) == (30, 20)
    expected = fingerprint_task(images, extractor, weights_file, **options).fingerprint
    entry = store.knowledge.get("lesions")
    (record,) = entry.fingerprints
    assert store.artifacts.get(record.artifact) == expected.to_bytes()
    assert record.created_by == "ann"
    assert result["fingerprints"] == [
        {
            "kind": "histogram",
            "digest": expected.digest,
            "bytes": len(expected.to_bytes()),
            "disclosure": disclosure(expected).to_document(),
        }
    ]
    card = entry.entry.card
    assert result["card"] == card.to_document()
    assert (card.classes, card.samples, card.imbalance, card.modality) == (3, 30, 1.0, "dermoscopy")
    assert (card.keywords, card.smallest_pixels, card.largest_pixels) == (("skin",), 400, 400)
    assert result["warnings"] == []


@pytest.mark.parametrize("archive", ["tar", "tar.gz", "zip"])
def test_an_upload_gives_the_fingerprint_of_its_folder(run: Run, images: Path, archive: str) -> None:
    of_folder = run(path=str(images), most_unreadable=0.1)
    content = zipped(images) if archive == "zip" else tar(images, "w:gz" if archive == "tar.gz" else "w")
    of_upload = run(content, archive=archive, most_unreadable=0.1)
    assert of_upload["fingerprints"] == of_folder["fingerprints"]
    report = of_upload["report"]
    assert (report["read"], report["unreadable"]) == (29, 1)
    (broken,) = report["unreadable_examples"]
    assert broken["name"].endswith("benign/0000.png")


def test_too_many_broken_images_fail_the_job_and_nothing_is_stored(
    run: Run, images: Path, store: Store
) -> None:
    with pytest.raises(InvalidInputError, match=r"0000\.png"):
        run(path=str(images), most_unreadable=0.01)
    with pytest.raises(NotFoundError):
        store.knowledge.get("lesions")


@pytest.mark.parametrize("path", ["{outside}", "{roots}/../outside", "{roots}/link", "{roots}/lesions/link"])
def test_images_outside_of_the_roots_are_not_read(run: Run, images: Path, tmp_path: Path, path: str) -> None:
    outside = tmp_path / "outside"
    draw_images(outside, 4, classes=("a", "b"))
    for link in (images.parent / "link", images / "link"):
        link.symlink_to(outside)
    with pytest.raises(InvalidInputError) as caught:
        run(path=path.format(outside=outside, roots=images.parent))
    assert caught.value.field in ("path", "images")


def test_a_link_to_an_image_outside_of_the_roots_counts_as_unreadable(
    run: Run, images: Path, tmp_path: Path
) -> None:
    draw_images(tmp_path / "outside", 1)
    (images / "benign" / "0000.png").unlink()
    (images / "benign" / "0000.png").symlink_to(tmp_path / "outside" / "0000.png")
    report = run(path=str(images), most_unreadable=0.1)["report"]
    assert (report["read"], report["unreadable"]) == (29, 1)
    assert "lies outside" in report["unreadable_examples"][0]["problem"]


def test_classes_of_the_images_that_are_not_those_of_the_task_are_told(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "roots" / "patients"
    draw_images(folder, 12, classes=("p1", "p2"))
    result = run(path=str(folder))
    assert result["warnings"] == ["The images have 2 classes, the task 3: the imbalance is not taken over."]
    assert result["card"]["classes"] == 3
    assert run(path=str(folder), labelled=False)["warnings"] == []


def test_an_attempt_that_lost_its_claim_stores_nothing(
    run: Run, images: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fingerprint_task

    def take_over(*arguments: Any, **options: Any) -> Any:
        made = real(*arguments, **options)
        with store.database.write() as connection:
            connection.exec_driver_sql("UPDATE jobs SET held_until = '2000-01-01 00:00:00'")
        assert store.jobs.claim("another", lease_seconds=600) is not None
        return made

    monkeypatch.setattr("lifelong_core.develop.features.task.fingerprint_task", take_over)
    with pytest.raises(ConflictError, match="lost"):
        run(path=str(images), most_unreadable=0.1)
    with pytest.raises(NotFoundError):
        store.knowledge.get("lesions")


def test_without_torch_or_extractor_the_job_says_what_to_install(
    run: Run, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIFELONG_FINGERPRINT_EXTRACTOR")
    with pytest.raises(ConfigurationError, match="lifelong fingerprint extractor") as caught:
        run(path=str(images))
    assert caught.value.field == "LIFELONG_FINGERPRINT_EXTRACTOR"
    monkeypatch.setitem(sys.modules, "lifelong_core.develop.features.sources.opening", None)
    with pytest.raises(ConfigurationError) as caught:
        run(path=str(images))
    assert caught.value.hint is not None
    assert 'pip install -c constraints.txt -e ".[develop]"' in caught.value.hint


def test_an_upload_that_is_gone_fails_the_job(run: Run, store: Store) -> None:
    payload = {"task": "lesions", "upload": "0" * 64, "archive": "zip"}
    store.jobs.submit("fingerprint", payload, actor="ann")
    job = store.jobs.claim("tests", lease_seconds=600)
    assert job is not None
    with pytest.raises(InvalidInputError, match="was deleted") as caught:
        work_of("fingerprint")(store, job)
    assert caught.value.field == "upload"
