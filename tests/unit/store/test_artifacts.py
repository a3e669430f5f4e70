import hashlib
import os
import threading
import tracemalloc
from io import BytesIO
from pathlib import Path

import fsspec
import pytest

from lifelong_core.store.artifacts import Artifacts, DamagedArtifactError, digest_of
from lifelong_core.values.errors import ConfigurationError, InvalidInputError, NotFoundError, UnavailableError

CONTENT = b"an ONNX file" * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(params=["folder", "remote"])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> Artifacts:
    url = (
        f"file://{tmp_path / 'kept'}"
        if request.param == "folder"
        else f"memory://{tmp_path.name}-{id(request)}"
    )
    return Artifacts(url, cache=tmp_path / "cache")


def test_what_was_put_is_got_by_its_digest(artifacts: Artifacts):
    assert artifacts.put(CONTENT) == DIGEST == artifacts.put(CONTENT)
    assert artifacts.get(DIGEST) == CONTENT
    assert artifacts.path(DIGEST).read_bytes() == CONTENT
    assert artifacts.put(b"") == hashlib.sha256(b"").hexdigest()


def test_the_path_of_a_local_artifact_takes_little_memory(tmp_path: Path):
    artifacts = Artifacts(f"file://{tmp_path}")
    digest = artifacts.put(bytes(50_000_000))
    tracemalloc.start()
    artifacts.path(digest)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20_000_000


def test_an_unknown_artifact_is_not_found(artifacts: Artifacts):
    for call in (artifacts.get, artifacts.path):
        with pytest.raises(NotFoundError, match=DIGEST):
            call(DIGEST)


def test_what_was_removed_is_gone_and_can_be_put_again(artifacts: Artifacts):
    other = artifacts.put(b"another")
    artifacts.put(CONTENT)
    artifacts.remove(DIGEST)
    with pytest.raises(NotFoundError, match=DIGEST):
        artifacts.get(DIGEST)
    artifacts.remove(DIGEST)
    assert artifacts.get(other) == b"another"
    assert artifacts.get(artifacts.put(CONTENT)) == CONTENT


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", DIGEST.upper(), DIGEST + "0"])
def test_only_a_digest_names_an_artifact(artifacts: Artifacts, digest: str):
    for call in (artifacts.get, artifacts.remove):
        with pytest.raises(InvalidInputError, match="SHA-256"):
            call(digest)


def test_a_damaged_artifact_is_not_given_out(tmp_path: Path):
    artifacts = Artifacts(f"file://{tmp_path}")
    artifacts.put(CONTENT)
    artifacts.path(DIGEST).write_bytes(CONTENT[:-1] + b"X")
    for call in (artifacts.get, artifacts.path):
        with pytest.raises(UnavailableError, match="other bytes"):
            call(DIGEST)


def test_a_remote_artifact_is_downloaded_once_and_a_damaged_copy_again(tmp_path: Path):
    artifacts = Artifacts("memory://downloads", cache=tmp_path / "cache")
    artifacts.put(CONTENT)
    copy = artifacts.path(DIGEST)
    assert copy.parent == tmp_path / "cache"
    copy.write_bytes(b"half of it")
    assert artifacts.path(DIGEST).read_bytes() == CONTENT
    fsspec.filesystem("memory").rm("/downloads", recursive=True)
    assert artifacts.path(DIGEST).read_bytes() == CONTENT
    copy.unlink()
    with pytest.raises(NotFoundError):
        artifacts.path(DIGEST)


def test_no_draft_is_left_behind_when_many_put_the_same(tmp_path: Path):
    artifacts = Artifacts(f"file://{tmp_path}")
    start = threading.Barrier(6)

    def work() -> None:
        start.wait()
        artifacts.put(CONTENT)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == [DIGEST]
    assert artifacts.get(DIGEST) == CONTENT


def test_a_folder_that_cannot_be_written_is_unavailable(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UnavailableError, match="cannot be written"):
        Artifacts(f"file://{tmp_path / 'file'}").put(CONTENT)


def test_a_storage_that_nobody_knows_is_a_configuration_error():
    with pytest.raises(ConfigurationError, match="LIFELONG_ARTIFACTS_URL"):
        Artifacts("nonsense://bucket/folder")


def test_the_cache_follows_the_users_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    artifacts = Artifacts("memory://cached")
    artifacts.put(CONTENT)
    assert artifacts.path(DIGEST) == tmp_path / "lifelong" / "artifacts" / DIGEST


def test_a_damaged_artifact_is_mended_by_putting_it_again(tmp_path: Path):
    artifacts = Artifacts(f"file://{tmp_path}")
    digest = artifacts.put(b"the graph")
    artifacts.path(digest).write_bytes(b"the gr")
    with pytest.raises(UnavailableError):
        artifacts.get(digest)
    assert artifacts.put(b"the graph") == digest
    assert artifacts.get(digest) == b"the graph"


@pytest.mark.parametrize("kind", ["folder", "cache"])
def test_an_artifact_is_on_the_disk_before_it_counts(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
):
    """Else a power failure leaves a database that names a file which is empty or not there."""
    artifacts = Artifacts(f"file://{tmp_path}" if kind == "folder" else "memory://disk", cache=tmp_path)
    settled: list[Path] = []
    fsync = os.fsync

    def seen(descriptor: int) -> None:
        settled.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", seen)
    artifacts.put(CONTENT)
    place = artifacts.path(DIGEST)
    assert place.is_relative_to(tmp_path)
    assert settled[-1] == place.parent
    assert settled[-2].name.startswith(DIGEST)


def test_a_file_is_put_and_opened_without_being_held_in_memory(artifacts: Artifacts, tmp_path: Path):
    file = tmp_path / "large"
    file.write_bytes(CONTENT)
    with file.open("rb") as content:
        content.seek(7)
        assert artifacts.put_file(content) == DIGEST == artifacts.put_file(content)
    with artifacts.open(DIGEST) as opened:
        assert opened.read() == CONTENT
        # Archives are read by their path, more than once, and from any place in them.
        with Path(f"/dev/fd/{opened.fileno()}").open("rb") as again:
            again.seek(-3, os.SEEK_END)
            assert again.read() == CONTENT[-3:]
    assert not (tmp_path / "cache").exists()
    with (
        pytest.raises(NotFoundError, match=hashlib.sha256(b"x").hexdigest()),
        artifacts.open(digest_of(b"x")),
    ):
        pass


def test_a_damaged_artifact_is_not_opened(tmp_path: Path):
    artifacts = Artifacts(f"file://{tmp_path}")
    artifacts.put(CONTENT)
    artifacts.path(DIGEST).write_bytes(CONTENT[:-1] + b"X")
    with pytest.raises(DamagedArtifactError), artifacts.open(DIGEST):
        pass
    with BytesIO(CONTENT) as content:
        assert artifacts.put_file(content) == DIGEST
    assert artifacts.get(DIGEST) == CONTENT
