"""Attacks of a narrow token: on another site's predictions and labels, and on the list of environments."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

import httpx
import numpy as np
import pytest

from lifelong_core.store import Scope
from lifelong_service.prediction import new_environments
from tests.unit.service.conftest import Service, png
from tests.unit.service.routes.test_operations import error_of
from tests.unit.service.waiting import eventually

ROWS = [[2.0, 0.1, -0.3], [0.0, 1.0, 0.5]]


def bound(service: Service, *environments: str, name: str = "clinic") -> dict[str, str]:
    """The header of a token that may predict and label in these environments; without one: in all."""
    scopes = [Scope.PREDICT, Scope.FEEDBACK]
    _, secret = service.store.tokens.create(name, scopes, actor="test", environments=environments or None)
    return {"Authorization": f"Bearer {secret}"}


def send(service: Service, header: dict[str, str], environment: str | None, **more: Any) -> httpx.Response:
    body = {"logits": ROWS, "model": "remote", **more}
    if environment is not None:
        body["environment"] = environment
    return service.client.post("/v1/logits", json=body, headers=header)


def soon(call: Callable[[], httpx.Response], status: int) -> httpx.Response:
    """The first answer with that status."""
    return eventually(lambda: answer if (answer := call()).status_code == status else None)


def test_a_bound_token_poisons_no_other_site(service: Service) -> None:
    header = bound(service, "clinic-a")
    logged = service.logged()
    array = BytesIO()
    np.save(array, np.float32(ROWS))
    answers = [
        service.client.post(
            "/v1/logits?environment=clinic-b&model=remote",
            content=array.getvalue(),
            headers={**header, "Content-Type": "application/x-npy"},
        ),
        send(service, header, "clinic-b"),
        send(service, header, "default"),
        service.client.post("/v1/predict?environment=clinic-b", content=png(), headers=header),
        service.client.post(
            "/v1/predict", content=png(), headers={**header, "X-Lifelong-Environment": "clinic-b"}
        ),
    ]
    for answer in answers:
        assert answer.status_code == 403
        assert error_of(answer)["field"] == "environment"
        assert "clinic-a" in error_of(answer)["hint"]
    assert service.logged() == logged
    assert "clinic-b" not in service.store.environments.list()


def test_with_one_environment_that_is_the_one_of_requests_that_name_none(service: Service) -> None:
    header = bound(service, "clinic-a")
    assert send(service, header, None).json()["environment"] == "clinic-a"
    assert send(service, header, "clinic-a").status_code == 200
    image = service.client.post("/v1/predict", content=png(), headers=header)
    assert image.json()["environment"] == "clinic-a"
    two = bound(service, "clinic-a", "clinic-b", name="two")
    refused = send(service, two, None)
    assert (refused.status_code, error_of(refused)["field"]) == (403, "environment")
    assert send(service, two, "clinic-b").status_code == 200


def test_a_bound_token_relabels_nothing_elsewhere(service: Service) -> None:
    here, there = bound(service, "clinic-a"), bound(service, "clinic-b", name="other")
    own = send(service, here, None, request_id="r").json()["predictions"][0]["prediction_id"]
    foreign = send(service, there, None, request_id="r").json()["predictions"][0]["prediction_id"]
    label = {"label": 1}
    alone = service.client.post("/v1/feedback", json={"prediction_id": foreign, **label}, headers=here)
    missing = service.client.post(
        "/v1/feedback", json={"prediction_id": own[:-4] + "0000", **label}, headers=here
    )
    assert (alone.status_code, alone.json()) == (missing.status_code, missing.json()), "it tells nothing"
    assert alone.status_code == 404
    assert "clinic-a" in error_of(alone)["message"]
    several = service.client.post(
        "/v1/feedback",
        json={"labels": [{"prediction_id": one, **label} for one in (own, foreign)]},
        headers=here,
    )
    assert [one["outcome"] for one in several.json()["labels"]] == ["stored", "unknown"]
    # Without an environment, the request of its own is meant, although the other has one of this id.
    named = {"request_id": "r", "model": "remote", "row": 1, **label}
    assert service.client.post("/v1/feedback", json=named, headers=here).json()["outcome"] == "stored"
    refused = service.client.post(
        "/v1/feedback",
        json={"labels": [named, {**named, "environment": "clinic-b"}]},
        headers=here,
    )
    assert (refused.status_code, error_of(refused)["field"]) == (403, "labels.1.environment")
    partial = service.client.post(
        "/v1/feedback",
        json={"labels": [{**named, "environment": "clinic-b"}, named], "partial": True},
        headers=here,
    ).json()["labels"]
    assert [one["outcome"] for one in partial] == ["refused", "unchanged"]
    assert partial[0]["error"]["code"] == "forbidden"
    assert partial[0]["prediction_id"] is None
    labelled = service.store.labels.newest_labelled(
        service.store.models.get("remote").id, "clinic-b", limit=9, classes=3
    )
    assert len(labelled.ids) == 0


def test_one_token_does_not_fill_the_environments(service: Service) -> None:
    header = bound(service)
    answers = [send(service, header, f"site-{number}") for number in range(14)]
    assert [answer.status_code for answer in answers] == [200] * 10 + [429] * 4
    assert answers[-1].headers["retry-after"] == "3600"
    assert "lifelong environments add site-13" in error_of(answers[-1])["hint"]
    assert len(service.store.environments.list()) == 11
    assert send(service, header, "site-0").status_code == 200
    assert send(service, bound(service, name="another"), "site-99").status_code == 200


def test_where_environments_are_listed_a_prediction_adds_none(
    registered: None, serve: Callable[..., Service]
) -> None:
    service = serve(environment_creation="listed")
    header = bound(service)
    refused = send(service, header, "clinic-a")
    assert (refused.status_code, error_of(refused)["field"]) == (404, "environment")
    assert service.client.post("/v1/predict?environment=clinic-a", content=png()).status_code == 404
    assert service.store.environments.list() == ["default"]
    added = service.client.post("/v1/admin/environments", json={"name": "clinic-a"})
    assert (added.status_code, added.json()["created_by"]) == (201, "admin-token")
    soon(lambda: send(service, header, "clinic-a"), 200)
    assert send(service, header, None).status_code == 200


def test_an_environment_is_disabled_enabled_and_deleted(service: Service) -> None:
    client, header = service.client, bound(service)
    logged = send(service, header, "clinic-a").json()["predictions"][0]["prediction_id"]
    assert client.request("DELETE", "/v1/admin/environments/clinic-a").status_code == 409
    disabled = client.post("/v1/admin/environments/clinic-a/disable").json()
    assert disabled["disabled_at"] is not None
    refused = soon(lambda: send(service, header, "clinic-a"), 403)
    assert error_of(refused)["field"] == "environment"
    label = {"prediction_id": logged, "label": 1}
    assert client.post("/v1/feedback", json=label, headers=header).json()["outcome"] == "stored"
    assert client.post("/v1/admin/environments/clinic-a/enable").json()["disabled_at"] is None
    soon(lambda: send(service, header, "clinic-a"), 200)
    client.post("/v1/admin/environments", json={"name": "typo"})
    assert client.request("DELETE", "/v1/admin/environments/typo").status_code == 204
    listed = client.get("/v1/admin/environments").json()
    assert listed["environments"] == ["clinic-a", "default"] == [one["name"] for one in listed["details"]]
    assert client.post("/v1/admin/environments/typo/disable").status_code == 404


def test_a_deleted_environment_is_created_anew_by_the_worker_that_created_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = bound(service)
    assert send(service, header, "clinic-a").status_code == 200
    with service.store.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM predictions")
    service.store.environments.delete("clinic-a", actor="test")
    monkeypatch.setattr(new_environments, "CREATED_SECONDS", 0)
    revision = service.store.registry().revision
    eventually(lambda: service.worker.serving.revision == revision)
    assert send(service, header, "clinic-a").status_code == 200
    assert "clinic-a" in service.store.environments.list()


def test_a_token_is_bound_and_rotated_over_http(service: Service) -> None:
    client = service.client
    wanted = {"name": "gateway", "scopes": ["predict"], "environments": ["clinic-a"]}
    made = client.post("/v1/admin/tokens", json=wanted).json()
    assert made["environments"] == ["clinic-a"]
    old = {"Authorization": f"Bearer {made['secret']}"}
    assert send(service, old, "clinic-b").status_code == 403
    rotated = client.post("/v1/admin/tokens/gateway/rotate", json={"overlap_seconds": 0}).json()
    new = {"Authorization": f"Bearer {rotated['secret']}"}
    assert send(service, new, None).json()["environment"] == "clinic-a"
    soon(lambda: send(service, old, None), 401)
    for body in ({**wanted, "name": "x", "environments": []}, {**wanted, "name": "x", "scopes": ["read"]}):
        refused = client.post("/v1/admin/tokens", json=body)
        assert (refused.status_code, error_of(refused)["field"]) == (422, "environments")


def test_the_last_use_of_a_token_is_shown(service: Service) -> None:
    header = bound(service)
    assert send(service, header, None).status_code == 200
    heartbeat = service.worker._parts.periodic.heartbeat
    heartbeat._seconds = 0.01
    heartbeat.offer(service.worker.snapshot.registry)

    def used() -> bool:
        tokens = {one.name: one for one in service.store.tokens.list()}
        return tokens["clinic"].last_used_at is not None and tokens["feedback-token"].last_used_at is None

    eventually(used)
