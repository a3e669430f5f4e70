"""A worker hashes groups only with a key that the database knows; without it, only requests with a group suffer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import group_hash, load_group_key
from lifelong_core.store.lifecycle import erasure
from lifelong_core.store.lifecycle.group_keys import KeyFile
from lifelong_core.store.lifecycle.privacy import rotate_group_key
from lifelong_core.store.registry.cache import _checksum
from tests.unit.service.conftest import Service, png
from tests.unit.service.waiting import eventually
from tests.unit.service.worker.test_registry_poller import kept, move_away

GROUPED = "/v1/predict?group=patient-1"


@pytest.fixture(autouse=True)
def no_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure, "SETTLING_SECONDS", 0)


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """The key file of another installation."""
    path = tmp_path / "elsewhere" / "group.key"
    load_group_key(path, create=True)
    return path


@pytest.fixture
def key(settings: Settings) -> bytes:
    """The key of this installation."""
    return load_group_key(settings.data_directory / "group.key", create=False)


def predict(service: Service, path: str = GROUPED) -> Any:
    return service.client.post(path, content=png())


def hashes(service: Service) -> list[bytes | None]:
    return [row.group_hash for row in service.store.predictions.read_since(None, limit=100)[0]]


def degraded(service: Service) -> str:
    ready = service.client.get("/readyz")
    assert ready.status_code == 200
    return " ".join(ready.json()["degraded"])


@pytest.mark.parametrize("kind", ["wrong", "missing"])
def test_without_the_right_key_only_predictions_with_a_group_are_refused(
    registered: None, serve: Callable[..., Service], foreign: Path, kind: str
) -> None:
    file = foreign if kind == "wrong" else foreign.with_name("nothing.key")
    service = serve(group_key_file=file)
    assert predict(service, "/v1/predict").status_code == 200
    for answer in (
        predict(service),
        service.client.post(
            "/v1/logits", json={"logits": [[1.0, 2.0, 3.0]] * 2, "groups": [None, "patient-1"]}
        ),
    ):
        error = answer.json()["error"]
        assert (answer.status_code, error["field"]) == (503, "group")
        assert str(file) in error["message"]
        assert "LIFELONG_GROUP_KEY_FILE" in error["hint"]
        assert int(answer.headers["Retry-After"]) >= 1
    assert hashes(service) == [None]
    assert str(file) in degraded(service)
    assert file.exists() == (kind == "wrong"), "a service makes no key"
    answer = service.client.post("/v1/admin/groups/erase", json={"group": "patient-1"})
    assert answer.status_code == 503
    assert str(file) in answer.json()["error"]["message"]


def test_the_right_key_is_taken_over_without_a_restart_and_outlives_its_file(
    registered: None, serve: Callable[..., Service], settings: Settings, tmp_path: Path, key: bytes
) -> None:
    file = tmp_path / "second" / "group.key"
    file.parent.mkdir()
    service = serve(group_key_file=file)
    assert predict(service).status_code == 503
    file.write_bytes((settings.data_directory / "group.key").read_bytes())
    assert predict(service).status_code == 200
    assert degraded(service) == ""
    file.write_text("half of a cop")
    assert predict(service).status_code == 200
    assert "cannot be read" in degraded(service)
    assert hashes(service) == [group_hash(key, "patient-1")] * 2


def test_a_repeated_request_gets_its_answer_without_the_key(
    registered: None, serve: Callable[..., Service], foreign: Path
) -> None:
    right, wrong = serve(), serve(group_key_file=foreign)
    first = predict(right, f"{GROUPED}&request_id=r1").json()
    rows = {"logits": [[1.0, 2.0, 3.0]], "group": "patient-1", "request_id": "r2"}
    second = right.client.post("/v1/logits", json=rows).json()
    assert predict(wrong).status_code == 503
    assert predict(wrong, f"{GROUPED}&request_id=r1").json() == first
    assert wrong.client.post("/v1/logits", json=rows).json() == second


def test_after_a_rotation_elsewhere_a_host_goes_on_with_the_old_key_until_it_has_the_file(
    registered: None, serve: Callable[..., Service], settings: Settings, tmp_path: Path, key: bytes
) -> None:
    first, file = settings.data_directory / "group.key", tmp_path / "second" / "group.key"
    file.parent.mkdir()
    file.write_bytes(first.read_bytes())
    service = serve(group_key_file=file)
    service.store.group_keys.rotate(first, actor="first host")
    eventually(lambda: "is older" in degraded(service))
    assert predict(service).status_code == 200
    answer = service.client.post("/v1/admin/groups/erase", json={"group": "patient-1"})
    assert answer.status_code == 503
    assert "is older" in answer.json()["error"]["message"]
    file.write_bytes(first.read_bytes())
    assert predict(service).status_code == 200
    assert degraded(service) == ""
    new = KeyFile.load(first).keys[0]
    assert hashes(service) == [group_hash(key, "patient-1"), group_hash(new, "patient-1")]
    answer = service.client.post("/v1/admin/groups/erase", json={"group": "patient-1"})
    assert answer.json()["predictions"] == 2


def test_a_worker_confirms_the_key_of_an_installation_of_an_older_version(
    registered: None, serve: Callable[..., Service], settings: Settings, key: bytes
) -> None:
    store = serve().store
    with store.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM group_keys")
        connection.exec_driver_sql("UPDATE registry_revision SET revision = revision + 1")
    service = serve()
    assert predict(service).status_code == 200
    assert store.group_keys.known_digests() == KeyFile.load(settings.data_directory / "group.key").digests
    # A rotation that did not reach the database.
    rotate_group_key(settings.data_directory / "group.key")
    again = serve()
    assert predict(again).status_code == 200
    new = load_group_key(settings.data_directory / "group.key", create=False)
    assert hashes(again) == [group_hash(key, "patient-1"), group_hash(new, "patient-1")]


def test_during_an_outage_a_worker_knows_the_digests_from_the_disk(
    registered: None,
    serve: Callable[..., Service],
    settings: Settings,
    foreign: Path,
    key: bytes,
) -> None:
    cache, file = settings.registry_cache_file, settings.data_directory / "lifelong.db"
    kept(serve(), cache)
    move_away(file)
    try:
        right, wrong = serve(), serve(group_key_file=foreign)
        assert predict(right).status_code == 200
        assert predict(wrong).status_code == 503
        assert predict(wrong, "/v1/predict").status_code == 200
        assert "another key" in degraded(wrong)
        # Saved before any host had confirmed a key.
        document = json.loads(cache.read_text())
        document["registry"]["group_keys"] = []
        del document["checksum"], document["schema_version"]
        cache.write_text(json.dumps(document | {"schema_version": 1, "checksum": _checksum(document)}))
        unconfirmed = serve()
        assert predict(unconfirmed, "/v1/predict").status_code == 200
        answer = predict(unconfirmed)
        assert answer.status_code == 503
        assert "not confirmed" in answer.json()["error"]["message"]
    finally:
        file.with_suffix(".moved").replace(file)
    eventually(lambda: predict(unconfirmed).status_code == 200)
    eventually(lambda: len(hashes(unconfirmed)) == 4)
    assert set(hashes(unconfirmed)) == {None, group_hash(key, "patient-1")}
