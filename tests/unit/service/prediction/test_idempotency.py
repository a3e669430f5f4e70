"""A repeated request gets the first answer, whatever happened in between."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn
from uuid import UUID

import numpy as np
import pytest

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.store.log.predictions import Predictions
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import UnavailableError
from lifelong_service.prediction.batch_pipeline import BatchPipeline
from lifelong_service.prediction.requests import LogitsRequest, RequestContext
from lifelong_service.prediction.routing import Router
from tests.unit.service.conftest import Service, png
from tests.unit.service.waiting import eventually

ROWS = {"logits": [[1.0, 2.0, 0.5], [0.0, -1.0, 4.0]], "request_id": "r1"}


def another_head(service: Service) -> PostProcessingHead:
    head = service.store.heads.get("linear", 1).head
    return PostProcessingHead(1.0, [5.0, -5.0, 0.0], head.costs, [0.8, 0.1, 0.1], head.class_names)


def test_the_same_image_again_gives_the_same_bytes(service: Service) -> None:
    first = service.client.post("/v1/predict?request_id=r1", content=png(9))
    again = service.client.post("/v1/predict?request_id=r1", content=png(9))
    assert first.status_code == again.status_code == 200
    assert first.content == again.content
    assert service.logged() == 1


def test_also_after_a_swap_and_in_another_worker(registered: None, serve: Callable[..., Service]) -> None:
    service = serve()
    first = service.client.post("/v1/logits", json=ROWS)
    service.store.heads.publish("linear", another_head(service), environment=None, actor="test")
    other = serve()  # starts after the swap: it has never seen the head of the first answer
    assert other.client.post("/v1/logits", json=ROWS).content == first.content
    fresh = other.client.post("/v1/logits", json=ROWS | {"request_id": "r2"}).json()
    assert (first.json()["head_version"], fresh["head_version"]) == (1, 2)
    assert service.logged() == 4


def test_another_body_is_a_conflict(service: Service) -> None:
    assert service.client.post("/v1/predict?request_id=r1", content=png(9)).status_code == 200
    for answer in (
        service.client.post("/v1/predict?request_id=r1", content=png(10)),
        service.client.post("/v1/predict?request_id=r1&group=other", content=png(9)),
        service.client.post("/v1/logits", json=ROWS),
        service.client.post("/v1/predict?request_id=r1", content=b"not even an image"),
    ):
        assert answer.status_code == 409
        assert answer.json()["error"]["field"] == "request_id"
    assert service.logged() == 1


def test_the_key_belongs_to_model_and_environment(service: Service) -> None:
    paths = ["?request_id=r1", "?request_id=r1&environment=b", "?request_id=r1&model=table"]
    answers = [service.client.post("/v1/predict" + path, content=png(9)) for path in paths]
    assert len({answer.json()["prediction_id"] for answer in answers}) == 3


def test_the_same_logits_in_another_encoding_are_the_same_request(service: Service) -> None:
    first = service.client.post("/v1/logits", json=ROWS)
    spaced = service.client.post(
        "/v1/logits?request_id=r1",
        json={"logits": [[1, 2, 0.50], [0, -1, 4]]},
        headers={"X-Lifelong-Model": "linear"},
    )
    assert first.content == spaced.content


def test_simultaneous_repetitions_are_logged_once(service: Service) -> None:
    answers = service.client.post_all("/v1/predict?request_id=r1", [png(9)] * 12)
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert service.logged() == 1


def test_simultaneous_different_bodies_give_one_answer_and_conflicts(service: Service) -> None:
    answers = service.client.post_all("/v1/predict?request_id=r1", [png(value) for value in range(6)])
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409, 409]
    assert service.logged() == 1


def test_a_failed_request_may_be_repeated(service: Service) -> None:
    assert service.client.post("/v1/predict?request_id=r1", content=b"text").status_code == 422
    assert service.client.post("/v1/predict?request_id=r1", content=png()).status_code == 200


def silent(*_: object) -> NoReturn:
    raise UnavailableError("the database does not answer.")


@pytest.mark.parametrize("logits", [ROWS["logits"], [[9.0, 2.0, 0.5]]], ids=["same body", "another"])
def test_a_known_request_is_never_answered_anew(
    registered: None,
    serve: Callable[..., Service],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    logits: list[list[float]],
) -> None:
    """The log refuses it, and then the database falls silent before it has said what another machine answered."""
    service, elsewhere = serve(), serve(spool_directory=tmp_path / "another machine")
    assert elsewhere.client.post("/v1/logits", json=ROWS).status_code == 200
    with monkeypatch.context() as patched:
        patched.setattr(Predictions, "requests", silent)
        answer = service.client.post("/v1/logits", json=ROWS | {"logits": logits})
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) >= 1
    assert "request id" in answer.json()["error"]["message"]
    eventually(lambda: service.worker.log.problem is None)
    assert service.logged() == 2


def test_what_this_machine_answered_is_known_without_the_database(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = service.client.post("/v1/logits", json=ROWS)
    with monkeypatch.context() as patched:
        patched.setattr(Predictions, "requests", silent)
        assert service.client.post("/v1/logits", json=ROWS).content == first.content
        other = service.client.post("/v1/logits", json=ROWS | {"logits": [[9.0, 2.0, 0.5]]})
        assert other.status_code == 409
    assert service.logged() == 2


def test_what_cannot_be_answered_now_is_answered_again_all_the_same(service: Service) -> None:
    first = service.client.post("/v1/logits", json=ROWS)
    narrow = service.client.post("/v1/logits", json=ROWS | {"logits": [[1.0, 2.0]]})
    assert narrow.status_code == 409
    assert narrow.json()["error"]["field"] == "request_id"
    new = service.client.post("/v1/logits", json={"logits": [[1.0, 2.0]], "request_id": "r2"})
    assert new.status_code == 422
    assert service.client.post("/v1/logits", json=ROWS).content == first.content


@pytest.mark.parametrize("left", [0, 1])
def test_an_answer_whose_rows_are_being_deleted_is_not_given_again_in_part(
    service: Service, left: int
) -> None:
    body = {"logits": [[1.0, 2.0, 0.5], [0.0, -1.0, 4.0]], "request_id": "r"}
    rows = service.client.post("/v1/logits", json=body).json()["predictions"]
    service.client.post("/v1/predict?request_id=i", content=png())
    kept = [UUID(row["prediction_id"]) for row in rows[:left]]
    with service.store.database.write() as connection:
        connection.execute(tables.predictions.delete().where(tables.predictions.c.id.not_in(kept)))
    for answer in (
        service.client.post("/v1/logits", json=body),
        service.client.post("/v1/predict?request_id=i", content=png()),
    ):
        assert answer.status_code == 503
        assert answer.headers["Retry-After"]
    assert service.logged() == left


def test_heads_of_two_models_with_one_version_number_are_never_confused(
    registered: None, serve: Callable[..., Service]
) -> None:
    """In one micro-batch, and when answers are given again by a worker that knows only newer heads."""
    service = serve()
    biases = {"linear": [3.0, 0.0, 0.0], "remote": [0.0, 0.0, 3.0]}
    bases = {name: service.store.heads.get(name, 1).head for name in biases}
    for name, bias in biases.items():
        base = bases[name]
        head = PostProcessingHead(1.0, bias, base.costs, base.assumed_prevalence, base.class_names)
        assert service.store.heads.publish(name, head, environment=None, actor="test").version == 2
    service = serve()
    logits = np.zeros((1, 3), dtype=np.float32)
    requests = [LogitsRequest(RequestContext(name, "default", None, f"r-{name}"), logits) for name in biases]
    pipeline = BatchPipeline(
        service.settings,
        log=service.worker.log,
        snapshot=lambda: service.worker.snapshot,
        group_key=lambda: b"k" * 32,
        router=Router(),
        shadows=lambda _: None,
    )
    first = pipeline(requests)
    decided = [json.loads(answer)["predictions"][0]["decision"] for answer in first]  # type: ignore[arg-type]
    assert decided == [0, 2]
    for name in biases:
        service.store.heads.publish(name, bases[name], environment=None, actor="test")
    newer = serve()
    again = [
        newer.client.post(
            "/v1/logits", json={"logits": logits.tolist(), "request_id": f"r-{name}", "model": name}
        )
        for name in biases
    ]
    assert [answer.content for answer in again] == first
