"""A worker that starts without the database serves the registry from the disk."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from lifelong_core.configuration.settings import Settings
from lifelong_core.store.schema import tables
from tests.unit.service.conftest import Service, png
from tests.unit.service.waiting import eventually


@pytest.fixture
def cache(settings: Settings) -> Path:
    return settings.registry_cache_file


@pytest.fixture
def file(settings: Settings) -> Iterator[Path]:
    """The database; wherever a test has moved it, it is back at the end."""
    path = settings.data_directory / "lifelong.db"
    yield path
    if (moved := path.with_suffix(".moved")).exists():
        moved.replace(path)


def move_away(file: Path) -> None:
    file.replace(file.with_suffix(".moved"))


def bring_back(file: Path) -> None:
    file.with_suffix(".moved").replace(file)


def kept(service: Service, cache: Path) -> None:
    """Wait until the disk holds what the service serves."""
    eventually(
        lambda: (
            cache.exists()
            and json.loads(cache.read_text())["registry"]["revision"] == service.store.revision()
        )
    )


def predict(service: Service, scope: str = "predict") -> Any:
    return service.client.post("/v1/predict", content=png(), headers=service.header(scope))


def test_heads_models_and_tokens_come_from_the_disk_and_the_database_takes_over(
    registered: None, serve: Callable[..., Service], cache: Path, file: Path
) -> None:
    kept(serve(), cache)
    move_away(file)
    written = cache.stat().st_ino
    service = serve()
    ready = service.client.get("/readyz")
    assert ready.status_code == 200, ready.text
    assert ready.json()["degraded"]
    for path in ("/v1/predict", "/v1/predict?model=table"):
        answer = service.client.post(path, content=png(), headers=service.header("predict"))
        assert answer.status_code == 200, answer.text
    assert predict(service, "read").status_code == 403
    unknown = service.client.post("/v1/predict", content=png(), headers={"Authorization": "Bearer ll_x"})
    assert (unknown.status_code, unknown.json()["error"]["field"]) == (503, "Authorization")
    assert cache.stat().st_ino == written, "another worker may know more by now"
    assert service.client.get("/v1/admin/models").status_code == 503

    bring_back(file)
    eventually(lambda: service.logged() == 2)
    eventually(lambda: service.client.get("/readyz").json()["degraded"] == [])
    _, secret = service.store.tokens.create("fresh", ["read"], actor="test")  # type: ignore[list-item]
    header = {"Authorization": f"Bearer {secret}"}
    assert service.client.get("/v1/admin/models", headers=header).status_code == 200
    assert predict(service).status_code == 200


def test_a_token_that_was_revoked_before_the_outage_stays_revoked(
    registered: None, serve: Callable[..., Service], cache: Path, file: Path
) -> None:
    first = serve()
    first.store.tokens.revoke("predict-token", actor="test")
    kept(first, cache)
    move_away(file)
    assert predict(serve()).status_code == 503  # unknown here, and nobody can be asked
    assert predict(serve(), "admin").status_code == 200


def test_a_damaged_cache_is_not_served_and_the_worker_says_so(
    registered: None, serve: Callable[..., Service], cache: Path, file: Path
) -> None:
    kept(serve(), cache)
    move_away(file)
    text = cache.read_text()
    cache.write_text(text.replace("linear", "lineor", 1))
    service = serve()
    answer = service.client.get("/readyz")
    assert answer.status_code == 503
    assert "checksum" in " ".join(answer.json()["reasons"])
    assert predict(service).status_code == 503


def test_a_cache_that_cannot_be_written_hurts_nobody(
    registered: None, serve: Callable[..., Service], cache: Path
) -> None:
    cache.mkdir()
    service = serve()
    assert service.client.get("/readyz").status_code == 200
    assert predict(service).status_code == 200


def test_a_damaged_head_is_named_and_the_last_good_one_goes_on(
    service: Service, serve: Callable[..., Service], cache: Path
) -> None:
    good = predict(service).json()["head_version"]
    kept(service, cache)
    store = service.store
    record = store.heads.publish(
        "linear", store.heads.get("linear", good).head, environment=None, actor="test"
    )
    own = store.heads.publish("linear", record.head, environment="site-b", actor="test")
    with store.database.write() as connection:
        heads = tables.heads
        connection.execute(
            sa.update(heads).where(heads.c.version.in_([record.version, own.version])).values(document="{")
        )
        connection.execute(sa.update(tables.registry_revision).values(revision=1000))
    # The one that saw them whole keeps them; one that starts has the last good ones from the disk, if there are any.
    named = eventually(lambda: service.client.get("/readyz").json()["damaged_heads"])
    assert len(named) == 2
    assert predict(service).json()["head_version"] in (good, record.version)
    second = serve()
    ready = second.client.get("/readyz")
    assert (ready.status_code, len(ready.json()["damaged_heads"])) == (200, 2)
    assert predict(second).status_code == 200
    assert "lifelong_damaged_heads 2.0" in second.client.get("/metrics").text
    listed = second.client.get("/v1/admin/models/linear/heads").json()
    assert sorted(listed["damaged"]) == [str(record.version), str(own.version)]

    cache.unlink()
    third = serve()
    answer = predict(third)
    assert answer.status_code == 503
    assert f"head {record.version} is damaged" in answer.json()["error"]["message"]
    assert third.client.get("/v1/admin/models/linear").status_code == 200
    third.store.heads.publish("linear", record.head, environment=None, actor="test")
    eventually(lambda: predict(third).status_code == 200)
