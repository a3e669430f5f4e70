"""Probes, metrics, error bodies, overload, and unexpected errors."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lifelong_core.configuration.settings import Settings
from lifelong_core.operations import models
from lifelong_service.application import create_application
from lifelong_service.guard.errors import sentence
from tests.unit.service.conftest import Service, png
from tests.unit.service.in_process import InProcess
from tests.unit.service.waiting import eventually


def error_of(answer: Any) -> dict[str, str]:
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "field", "message", "hint"}
    return body["error"]


def test_probes(service: Service) -> None:
    assert service.client.get("/livez").status_code == 200
    ready = service.client.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["ready"] is True
    assert ready.headers["X-Lifelong-Worker"] == "1"


def test_without_a_database_the_worker_lives_says_why_and_recovers(tmp_path: Any) -> None:
    from lifelong_core.store import Store

    settings = Settings(data_directory=tmp_path, registry_poll_seconds=0.02)
    client = InProcess(create_application(settings))
    try:
        assert client.get("/livez").status_code == 200
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert "lifelong init" in " ".join(answer.json()["reasons"])
        refused = client.get("/v1/admin/tasks", headers={"Authorization": "Bearer x"})
        assert refused.status_code == 503
        assert int(refused.headers["Retry-After"]) >= 1
        Store.migrate(settings.resolved_database_url)
        eventually(lambda: client.get("/readyz").status_code == 200)
    finally:
        client.close()


def test_metrics(service: Service) -> None:
    def value(name: str, **labels: str) -> float:
        text = service.client.get("/metrics").text
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return sum(s.value for s in samples if s.name == name and labels.items() <= s.labels.items())

    before = value("lifelong_predictions_total", model="linear@1", environment="counted")
    stages = {
        name: value(name) for name in ("lifelong_decode_seconds_count", "lifelong_inference_seconds_count")
    }
    service.client.post("/v1/predict?environment=counted", content=png())
    service.client.post("/v1/logits", json={"logits": [[1, 2, 3]] * 4, "environment": "counted"})
    assert value("lifelong_predictions_total", model="linear@1", environment="counted") == before + 5
    assert value("lifelong_requests_total", route="/v1/predict", status="200") >= 1
    assert value("lifelong_request_seconds_count", route="/v1/predict") >= 1
    assert value("lifelong_log_commit_seconds_count") >= 2
    assert value("lifelong_batch_size_count") >= 2
    # Of the image only: logits are neither decoded nor inferred.
    assert {name: value(name) - count for name, count in stages.items()} == dict.fromkeys(stages, 1)
    assert value("lifelong_workers") == 1


def test_metrics_may_need_a_token_which_is_known_while_the_database_is_away(
    serve: Callable[..., Service],
) -> None:
    service = serve(open_metrics=False)
    header = service.header("metrics")
    assert service.client.get("/metrics", headers={"Authorization": None}).status_code == 401
    assert service.client.get("/metrics", headers=service.header("read")).status_code == 403
    assert service.client.get("/metrics", headers=header).status_code == 200
    file = service.settings.data_directory / "lifelong.db"
    file.rename(file.with_suffix(".aside"))
    eventually(lambda: service.client.get("/readyz").json()["degraded"])
    answer = service.client.get("/metrics", headers=header)
    assert answer.status_code == 200
    assert "lifelong_requests_total" in answer.text


def test_counters_of_predictions_exist_before_the_first_one(service: Service) -> None:
    text = service.client.get("/metrics").text
    for route in ("/v1/predict", "/v1/logits", "/v1/feedback"):
        for status in ("200", "413", "422", "499", "500", "503", "none"):
            assert f'lifelong_requests_total{{route="{route}",status="{status}"}}' in text


def test_paths_that_clients_make_up_do_not_multiply_metrics(service: Service) -> None:
    for index in range(5):
        service.client.get(f"/made/up/{index}")
    text = service.client.get("/metrics").text
    assert "/made/up" not in text
    assert 'route="unmatched",status="404"' in text


def test_what_the_framework_refuses_has_our_body(service: Service) -> None:
    for method, path, status, field in (
        ("GET", "/nothing", 404, "path"),
        ("GET", "/docs", 404, "path"),
        ("GET", "/v1/predict", 405, "method"),
        ("PUT", "/livez", 405, "method"),
    ):
        answer = service.client.request(method, path)
        assert (answer.status_code, error_of(answer)["field"]) == (status, field), path
        assert error_of(answer)["hint"]


def test_json_that_is_none_names_the_body(service: Service) -> None:
    answer = service.client.post(
        "/v1/admin/tasks", content=b"{", headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, error_of(answer)["field"]) == (422, "body")
    assert error_of(service.client.post("/v1/admin/tasks", json={"name": "x"}))["field"] == "classes"


def test_a_broken_multipart_body_is_the_clients_fault(service: Service) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    for path in ("/v1/predict", "/v1/admin/models", "/v1/admin/models/linear/logits"):
        answer = service.client.post(path, content=b"no boundary here", headers=headers)
        assert answer.status_code in (400, 422)
        assert error_of(answer)["field"]
        assert not error_of(answer)["message"].endswith("..")
    missing = service.client.post(
        "/v1/predict", content=b"x", headers={"Content-Type": "multipart/form-data"}
    )
    assert missing.status_code == 400


@pytest.mark.parametrize(
    "text", ["Invalid multipart data", "Invalid multipart data.", "Invalid multipart data.."]
)
def test_messages_of_other_libraries_end_in_one_full_stop(text: str) -> None:
    assert sentence(text) == "Invalid multipart data."


def test_our_own_faults_are_500_without_details_and_cost_nobody_else(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(service.worker.store.audit, "list", explode)
    answer = service.client.get("/v1/admin/audit")
    assert answer.status_code == 500
    assert error_of(answer)["code"] == "internal"
    assert "secret" not in answer.text
    assert service.client.post("/v1/predict", content=png()).status_code == 200


def test_an_entry_that_the_log_refuses_fails_alone(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    append = service.worker.store.predictions.append

    def picky(entries: Any) -> Any:
        if any(prediction.environment == "bad" for entry in entries for prediction in entry.predictions):
            raise ValueError("refused")
        return append(entries)

    monkeypatch.setattr(service.worker.store.predictions, "append", picky)
    paths = ["good", "bad", "good"]

    async def together() -> list[Any]:
        import asyncio

        client = service.client
        return await asyncio.gather(
            *(
                client._client.post(f"/v1/predict?environment={name}", content=png(), headers=client.headers)
                for name in paths
            )
        )

    answers = service.client.run(together())
    assert [answer.status_code for answer in answers] == [200, 500, 200]


def test_overload_is_503_with_retry_after_and_the_others_are_answered(
    registered: None, serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serve(queue_capacity=3, maximum_batch_size=1)
    gate, append = threading.Event(), service.worker.log.append

    def slow(entries: Any) -> Any:
        gate.wait(10)
        return append(entries)

    monkeypatch.setattr(service.worker.log, "append", slow)
    threading.Timer(0.5, gate.set).start()
    answers = service.client.post_all("/v1/predict", [png(value) for value in range(12)])
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) == {200, 503}
    assert statuses.count(200) in (3, 4)
    assert all(answer.headers["Retry-After"] for answer in answers if answer.status_code == 503)
    assert service.logged() == statuses.count(200)


def test_a_request_that_takes_too_long_is_503(
    registered: None, serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serve(request_timeout_seconds=1)
    gate, append = threading.Event(), service.worker.log.append
    monkeypatch.setattr(service.worker.log, "append", lambda entries: (gate.wait(10), append(entries))[1])
    answer = service.client.post("/v1/predict", content=png())
    gate.set()
    assert answer.status_code == 503
    assert "within 1 s" in error_of(answer)["message"]


def test_a_change_that_takes_too_long_may_still_take_effect(
    registered: None, serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serve(request_timeout_seconds=1)
    gate, began, ended = threading.Event(), threading.Event(), threading.Event()
    promote = models.promote_calibrated

    def slow(*arguments: Any, **named: Any) -> Any:
        began.set()
        gate.wait(10)
        try:
            return promote(*arguments, **named)
        finally:
            ended.set()

    monkeypatch.setattr(models, "promote_calibrated", slow)
    answer = service.client.post("/v1/admin/models/linear/promote")
    gate.set()
    assert began.wait(10)
    assert ended.wait(10)
    assert answer.status_code == 503
    assert "may still take effect" in error_of(answer)["hint"]
    assert "request_id" not in answer.text
