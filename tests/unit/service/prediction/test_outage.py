"""Requests while the database is away are answered, and repetitions are recognised, as usual."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_service import metrics
from tests.databases import locked
from tests.unit.service.conftest import Service, png

ROWS = {"logits": [[1.0, 2.0, 0.5], [0.0, -1.0, 4.0]], "request_id": "r1", "groups": ["patient", None]}


@pytest.fixture
def service(registered: None, serve: Callable[..., Service]) -> Service:
    return serve(log_timeout_seconds=0.1)


@pytest.fixture
def file(settings: Settings) -> Path:
    return settings.data_directory / "lifelong.db"


@contextmanager
def outage(service: Service, file: Path) -> Iterator[None]:
    """A locked file, and a worker that knows it."""
    with locked(file):
        assert service.client.post("/v1/predict", content=png()).status_code == 200
        yield
    ready(service, lambda body: body["degraded"] == [])


def ready(service: Service, fits: Callable[[Any], bool]) -> Any:
    deadline = time.monotonic() + 30
    while not fits(body := service.client.get("/readyz").json()):
        assert time.monotonic() < deadline, body
        time.sleep(0.01)
    return body


def test_a_repeated_request_gets_the_same_bytes_during_and_after_the_outage(
    service: Service, file: Path
) -> None:
    with outage(service, file):
        first = service.client.post("/v1/logits", json=ROWS)
        assert first.status_code == 200
        assert service.client.post("/v1/logits", json=ROWS).content == first.content
        other = service.client.post("/v1/logits", json=ROWS | {"logits": [[1.0, 2.0, 3.0]], "groups": None})
        assert (other.status_code, other.json()["error"]["field"]) == (409, "request_id")
        image = service.client.post("/v1/predict?request_id=r2", content=png(9))
        together = service.client.post_all("/v1/predict?request_id=r3", [png(9)] * 6)
        assert len({answer.content for answer in together}) == 1
    assert service.client.post("/v1/logits", json=ROWS).content == first.content
    assert service.client.post("/v1/predict?request_id=r2", content=png(9)).content == image.content
    assert service.client.post("/v1/predict?request_id=r3", content=png(9)).content == together[0].content
    assert service.logged() == 1 + 2 + 1 + 1
    groups = {row.group_hash for row in service.store.predictions.read_since(None, limit=9)[0]}
    assert len(groups) == 2


def test_readiness_says_what_waits_and_why(service: Service, file: Path) -> None:
    before = service.client.get("/readyz").json()
    assert before["degraded"] == []
    assert before["spool"]["predictions"] == 0
    with outage(service, file):
        answer = service.client.get("/readyz")
        body = answer.json()
        assert (answer.status_code, body["ready"]) == (200, True)
        assert "in time" in body["degraded"][0]
        assert body["spool"]["predictions"] == 1
        assert 0 < body["spool"]["bytes"] < body["spool"]["maximum_bytes"]
        assert body["spool"]["oldest"]
        metrics = service.client.get("/metrics").text
        assert "lifelong_log_degraded 1.0" in metrics
        assert "lifelong_spool_predictions 1.0" in metrics
    after = service.client.get("/readyz").json()["spool"]
    assert (after["predictions"], after["damaged_records"], after["refused_records"]) == (0, 0, 0)
    assert "lifelong_log_degraded 0.0" in service.client.get("/metrics").text


def test_a_new_environment_beyond_the_limit_is_refused(
    registered: None, serve: Callable[..., Service]
) -> None:
    service = serve(log_timeout_seconds=0.1, maximum_environments=2)
    with outage(service, service.settings.data_directory / "lifelong.db"):
        answers = [
            service.client.post(f"/v1/predict?environment={name}", content=png()) for name in ("a", "b", "a")
        ]
        assert [answer.status_code for answer in answers] == [200, 409, 200]
    assert service.store.environments.list() == ["a", "default"]


def test_a_full_spool_is_503_for_those_it_cannot_take(
    registered: None, serve: Callable[..., Service]
) -> None:
    service = serve(log_timeout_seconds=0.1, maximum_spool_bytes=3000)
    with outage(service, service.settings.data_directory / "lifelong.db"):
        refused = service.client.post("/v1/logits", json={"logits": [[1, 2, 3]] * 200})
        assert refused.status_code == 503
        assert int(refused.headers["Retry-After"]) >= 1
        assert "spool" in refused.json()["error"]["message"]
        assert service.client.post("/v1/predict", content=png()).status_code == 200
        assert service.client.get("/readyz").status_code == 200
        answers = [service.client.post("/v1/predict", content=png()) for _ in range(100)]
        statuses = [answer.status_code for answer in answers]
        assert set(statuses) == {200, 503}
        not_ready = service.client.get("/readyz")
        assert not_ready.status_code == 503
        assert "full" in not_ready.json()["reasons"][0]
    assert service.client.get("/readyz").status_code == 200
    assert service.logged() == 2 + statuses.count(200)


def test_the_true_class_of_what_waits_may_be_told_later(service: Service, file: Path) -> None:
    with outage(service, file):
        body = service.client.post("/v1/predict", content=png()).json()
        label = {"prediction_id": body["prediction_id"], "label": 1}
        early = service.client.post("/v1/feedback", json=label)
        assert early.status_code == 503
        assert int(early.headers["Retry-After"]) >= 1
        assert "in time" in early.json()["error"]["message"], "it was not asked once more"
    assert service.client.post("/v1/feedback", json=label).json()["outcome"] == "stored"
    label["prediction_id"] = label["prediction_id"][:-4] + "ffff"
    assert service.client.post("/v1/feedback", json=label).status_code == 404


def test_a_database_file_that_becomes_unusable_is_an_outage_too(service: Service, file: Path) -> None:
    away = file.with_name("away")
    file.rename(away)
    answers = service.client.post_all("/v1/predict", [png(1), png(2), b"text"])
    assert [answer.status_code for answer in answers] == [200, 200, 422]
    body = ready(service, lambda body: bool(body["degraded"]))
    assert "removed or replaced" in body["degraded"][0]
    away.rename(file)
    ready(service, lambda body: body["degraded"] == [])
    assert service.logged() == 2


def test_the_log_is_asked_once_for_a_batch_and_not_again_for_each_request(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each further attempt would wait for the database once more, while everybody else waits behind."""
    asked: list[int] = []
    append = service.worker.store.predictions.append

    def counted(entries: Any) -> Any:
        asked.append(len(entries))
        return append(entries)

    monkeypatch.setattr(service.worker.store.predictions, "append", counted)
    with locked(service.settings.data_directory / "lifelong.db"):
        answers = service.client.post_all("/v1/predict", [png(value) for value in range(6)])
    assert {answer.status_code for answer in answers} == {200}
    assert len(asked) == 1
    assert "could not be logged at once" not in caplog.text


def test_what_was_answered_before_the_outage_is_answered_again_by_every_worker_of_the_machine(
    registered: None, serve: Callable[..., Service], file: Path
) -> None:
    service, other = serve(log_timeout_seconds=0.1), serve(log_timeout_seconds=0.1)
    first = service.client.post("/v1/logits", json=ROWS)
    image = service.client.post("/v1/predict?request_id=r2", content=png(9))
    with outage(service, file):
        for worker in (service, other):
            assert worker.client.post("/v1/logits", json=ROWS).content == first.content
            assert worker.client.post("/v1/predict?request_id=r2", content=png(9)).content == image.content
            for answer in (
                worker.client.post("/v1/logits", json=ROWS | {"logits": [[1.0, 2.0, 3.0]], "groups": None}),
                worker.client.post("/v1/predict?request_id=r2", content=png(10)),
            ):
                assert (answer.status_code, answer.json()["error"]["field"]) == (409, "request_id")
    ready(other, lambda body: body["degraded"] == [])
    assert service.logged() == 2 + 1 + 1


def test_what_another_machine_answered_before_the_outage_is_answered_anew_and_logged_once(
    registered: None, serve: Callable[..., Service], file: Path, tmp_path: Path
) -> None:
    here = serve(log_timeout_seconds=0.1)
    there = serve(log_timeout_seconds=0.1, spool_directory=tmp_path / "another machine")
    first = there.client.post("/v1/logits", json=ROWS)
    before = metrics.REPEATED_PREDICTIONS._value.get()
    with outage(here, file):
        anew = here.client.post("/v1/logits", json=ROWS)
        assert anew.status_code == 200
        assert (
            anew.json()["predictions"][0]["prediction_id"] != first.json()["predictions"][0]["prediction_id"]
        )
        assert here.client.post("/v1/logits", json=ROWS).content == anew.content
    assert here.logged() == 2 + 1, "the rows of the first answer, and what `outage` sends"
    assert metrics.REPEATED_PREDICTIONS._value.get() == before + 2
    assert here.client.post("/v1/logits", json=ROWS).content == first.content
