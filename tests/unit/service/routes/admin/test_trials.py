"""Trials, roll-back and the history of promotions over HTTP."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from lifelong_core.store import Store
from tests.unit.service.conftest import Service, png
from tests.unit.service.prediction.test_trials import add_candidate
from tests.unit.service.waiting import eventually

MODELS, TASK = "/v1/admin/models", "/v1/admin/tasks/skin"


@pytest.fixture
def service(registered: None, store: Store, serve: Callable[..., Service]) -> Service:
    add_candidate(store)
    return serve()


def actions(service: Service) -> list[str]:
    return [entry["action"] for entry in service.client.get("/v1/admin/audit").json()["audit"]]


def refused(service: Service, method: str, path: str, status: int, **arguments: Any) -> dict[str, Any]:
    answer = service.client.request(method, path, **arguments)
    assert answer.status_code == status, answer.text
    return answer.json()["error"]


def test_a_model_goes_from_shadow_to_canary_to_promotion_and_back(service: Service) -> None:
    client = service.client
    assert client.get(f"{TASK}/trial").json() == {
        "task": "skin",
        "promoted_model": "linear@1",
        "trial": None,
        "populations": [],
    }
    shadow = client.post(f"{MODELS}/linear@2/shadow").json()
    assert (shadow["model"], shadow["stage"], shadow["share"]) == ("linear@2", "shadow", 0)
    assert shadow["serving"].startswith("linear@1 stays promoted; linear@2 is on trial as a shadow")
    eventually(lambda: service.worker.snapshot.registry.rollouts)
    answer = client.post("/v1/predict", content=png(7)).json()
    assert answer["model_version"] == 1
    eventually(lambda: service.logged() == 2)
    client.post("/v1/feedback", json={"prediction_id": answer["prediction_id"], "label": 0})
    state = client.get(f"{TASK}/trial").json()
    assert state["trial"]["started_by"] == "admin-token"
    assert [(one["model"], one["role"], one["cycle"]) for one in state["populations"]] == [
        ("linear@1", "promoted", None),
        ("linear@2", "shadow", None),
    ]
    assert [one["labelled"]["samples"] for one in state["populations"]] == [1, 1]
    canary = client.post(f"{MODELS}/linear@2/canary", json={"share": 1}).json()
    assert (canary["stage"], canary["share"], canary["started_at"]) == ("canary", 1, shadow["started_at"])
    assert "answers 1 of the requests that name no version" in canary["serving"]
    eventually(lambda: client.post("/v1/predict", content=png(7)).json()["model_version"] == 2)
    assert client.post(f"{MODELS}/linear@2/promote").json()["promoted"] is True
    assert client.get(f"{TASK}/trial").json()["trial"] is None
    history = client.get(f"{TASK}/promotions").json()
    assert [(one["model"], one["reason"]) for one in history["promotions"]] == [
        ("linear@1", "first"),
        ("linear@2", "promote"),
    ]
    assert history["rollback_model"] == "linear@1"
    back = client.post(f"{TASK}/rollback", json={"expected_sequence": 2}).json()
    assert (back["model"], back["promoted"]) == ("linear@1", True)
    assert "is served now" in back["serving"]
    assert client.get(f"{TASK}/promotions").json()["rollback_model"] is None
    wanted = ["rollouts.start", "rollouts.change", "rollouts.end", "models.promote", "models.rollback"]
    assert set(wanted) <= set(actions(service))


def test_a_trial_can_be_ended(service: Service) -> None:
    service.client.post(f"{MODELS}/linear@2/shadow")
    ended = service.client.request("DELETE", f"{TASK}/trial").json()
    assert (ended["outcome"], ended["ended_by"]) == ("ended", "admin-token")
    assert refused(service, "DELETE", f"{TASK}/trial", 404)["field"] == "task"


def test_conflicts_have_hints(service: Service) -> None:
    service.client.post(f"{MODELS}/linear@2/canary", json={"share": 0.5})
    other = refused(service, "POST", f"{MODELS}/table/shadow", 409)
    assert other["hint"] == "End it: `lifelong models trial skin --end`."
    assert "promote" in refused(service, "POST", f"{MODELS}/remote/shadow", 409)["hint"]
    assert "already" in refused(service, "POST", f"{MODELS}/linear@1/shadow", 409)["message"]
    canary = refused(service, "POST", f"{TASK}/rollback", 409, json={})
    assert canary["field"] == "task"
    service.client.request("DELETE", f"{TASK}/trial")
    assert "promoted before" in refused(service, "POST", f"{TASK}/rollback", 409, json={})["message"]
    stale = {"expected_sequence": 7}
    assert refused(service, "POST", f"{TASK}/rollback", 409, json=stale)


def test_a_share_is_above_zero_and_at_most_one(service: Service) -> None:
    for share in (0, -0.1, 1.01, "half", "0.5", True, None):
        assert (
            refused(service, "POST", f"{MODELS}/linear@2/canary", 422, json={"share": share})["field"]
            == "share"
        )


def test_what_does_not_exist_is_not_found(service: Service) -> None:
    assert refused(service, "POST", f"{MODELS}/linear@9/shadow", 404)
    for method, path in (("GET", "trial"), ("DELETE", "trial"), ("GET", "promotions")):
        assert refused(service, method, f"/v1/admin/tasks/other/{path}", 404)
    assert refused(service, "POST", "/v1/admin/tasks/other/rollback", 404, json={})


def test_a_canary_that_misses_its_thresholds_needs_a_reason(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lifelong_core.store.evaluations.acceptance import NotAcceptedError
    from lifelong_core.store.rollouts import checked_promotion

    def refuse(store: Store, reference: str, force_reason: str | None = None) -> str | None:
        if force_reason is None:
            raise NotAcceptedError(f"{reference} misses", hint="Train.", details={})
        return "it misses"

    monkeypatch.setattr(checked_promotion, "check_accepted", refuse)
    path = f"{MODELS}/linear@2/canary"
    assert refused(service, "POST", path, 409, json={"share": 0.1})["code"] == "not_accepted"
    forced = service.client.post(path, json={"share": 0.1, "force_reason": "a study"})
    assert forced.status_code == 200
    entry = next(
        one
        for one in service.client.get("/v1/admin/audit").json()["audit"]
        if one["action"] == "rollouts.start"
    )
    assert entry["details"]["force_reason"] == "a study"


def test_a_released_model_is_loaded_again_as_a_shadow(service: Service) -> None:
    for name in ("linear@2", "table"):
        service.client.post(f"{MODELS}/{name}/promote", params={"force_reason": "a test"})
    eventually(lambda: service.worker.snapshot.registry.resolve_model(None).name == "table")
    eventually(lambda: 1 not in service.worker.snapshot.classifiers)
    hint = refused(service, "POST", f"{MODELS}/linear@1/canary", 409, json={"share": 0.5})["hint"]
    assert "lifelong models shadow linear@1" in hint
    assert service.client.post(f"{MODELS}/linear@1/shadow").status_code == 200
    eventually(lambda: 1 in service.worker.snapshot.classifiers)
    assert service.client.post(f"{MODELS}/linear@1/canary", json={"share": 1}).status_code == 200
    served = service.client.post("/v1/predict", content=png(9)).json()
    assert UUID(served["prediction_id"])
    eventually(lambda: service.client.post("/v1/predict", content=png(9)).json()["model"] == "linear")
