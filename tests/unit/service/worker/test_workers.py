"""Every worker reports its state, so that the arrival of a swap is known."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from lifelong_core.store import Heartbeat, Tick, Visit
from lifelong_core.values.errors import UnavailableError
from lifelong_service.worker.periodic_tasks import PeriodicTask
from tests.unit.service.conftest import Service, png
from tests.unit.service.waiting import eventually


def workers(service: Service) -> list[Any]:
    return service.client.get("/v1/admin/workers").json()["workers"]


def test_a_worker_acknowledges_what_it_serves_and_every_swap(service: Service) -> None:
    (worker,) = eventually(lambda: workers(service))
    assert worker["process"] == os.getpid()
    assert worker["host"]
    assert worker["lost"] is False
    assert worker["heads"]["linear@1"] == {"*": 1}
    head = service.store.heads.get("linear", 1).head
    service.store.heads.publish("linear", head, environment="site-a", actor="test")

    def arrived() -> bool:
        (now,) = workers(service)
        return now["heads"]["linear@1"] == {"*": 1, "site-a": 2}

    eventually(arrived)
    answer = service.client.get("/v1/admin/workers").json()
    assert answer["workers"][0]["revision"] == answer["revision"] == service.store.revision()


def test_a_worker_that_stops_takes_itself_from_the_list(
    service: Service, serve: Callable[..., Service]
) -> None:
    second = serve()
    eventually(lambda: len(workers(service)) == 2)
    second.worker.close()
    assert len(workers(service)) == 1
    second.worker.start = second.worker.close = lambda: None


def test_signs_of_life_that_fail_hurt_nobody(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    eventually(lambda: workers(service))
    failed: list[int] = []

    def fail(*_: object, **__: object) -> None:
        failed.append(1)
        raise UnavailableError("the database is away.")

    monkeypatch.setattr(service.worker.store.workers, "record_heartbeat", fail)
    head = service.store.heads.get("linear", 1).head
    service.store.heads.publish("linear", head, environment=None, actor="test")
    eventually(lambda: failed)
    eventually(lambda: service.client.post("/v1/predict", content=png()).json()["head_version"] == 2)
    assert service.client.get("/readyz").status_code == 200


def test_a_sign_of_life_comes_again_and_again(service: Service) -> None:
    (before,) = eventually(lambda: workers(service))
    heartbeat: PeriodicTask[Any] = service.worker._parts.periodic.heartbeat
    heartbeat._seconds = 0.01
    heartbeat.offer(service.worker.snapshot.registry)
    eventually(lambda: workers(service)[0]["seen_at"] > before["seen_at"])


def test_monitors_are_listed_by_their_heartbeats(service: Service) -> None:
    assert service.client.get("/v1/admin/monitors").json() == {"monitors": []}
    at = datetime.now(UTC)
    model = service.store.models.get("linear")
    visit = Visit(model.id, "default", at, "skip", "no new prediction", at)
    beat = Heartbeat(
        "one", "ward-3", 7, at, 60.0, "auto", {"site-a": "shadow"}, Tick(at, at, None), (visit,), {"a": 1}
    )
    service.store.monitors.record_heartbeat(beat)
    (found,) = service.client.get("/v1/admin/monitors").json()["monitors"]
    assert (found["lost"], found["mode"], found["environment_modes"]) == (False, "auto", {"site-a": "shadow"})
    assert found["settings"] == {"a": 1}
    assert found["tick"] == {
        "due_at": at.isoformat(),
        "started_at": at.isoformat(),
        "finished_at": None,
        "problem": None,
    }
    (population,) = found["populations"]
    assert (population["model"], population["watched_at"]) == ("linear@1", at.isoformat())
