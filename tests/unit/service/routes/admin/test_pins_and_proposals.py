"""Pinned heads and proposals over HTTP."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.store import Cycle, new_prediction_id
from tests.unit.service.conftest import Service, png
from tests.unit.service.routes.admin.test_admin import eventually

HEADS = "/v1/admin/models/linear/heads"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def propose(
    service: Service, environment: str = "site-a", due_at: datetime = NOON, *, shift: ArrayLike = 1.0
) -> Cycle:
    """What a monitor records in mode propose: the serving head with its bias shifted."""
    store = service.store
    store.environments.ensure(environment, limit=9)
    served = store.heads.get("linear", 1).head
    cycle = Cycle(
        id=new_prediction_id(),
        model_id=store.models.get("linear").id,
        environment=environment,
        due_at=due_at,
        started_at=due_at,
        finished_at=due_at,
        outcome="swap",
        report={
            "schema_version": 2,
            "outcome": "swap",
            "reasons": [{"code": "gain_sufficient", "text": "It pays."}],
            "assumed_prevalence": [1 / 3] * 3,
            "samples": 300,
        },
        window_samples=500,
        log_position=17,
        head_version=1,
        published_version=None,
    )
    candidate = replace(served, bias=served.bias + np.asarray(shift), provenance={"cycle": str(cycle.id)})
    return store.cycles.finish(cycle, candidate=candidate, expected_sequence=0, mode="propose")


def test_pin_list_and_unpin(service: Service) -> None:
    client = service.client
    service.store.environments.ensure("site-a", limit=9)
    made = client.post(f"{HEADS}/pin", json={"environment": "site-a", "reason": "under audit"})
    assert made.status_code == 201
    document = made.json()
    assert (document["environment"], document["reason"], document["pinned_by"]) == (
        "site-a",
        "under audit",
        "admin-token",
    )
    default = client.post(f"{HEADS}/pin", json={"reason": "frozen", "expected_sequence": 1}).json()
    assert default["environment"] is None
    assert client.get(HEADS).json()["pins"] == [default, document]
    again = client.post(f"{HEADS}/pin", json={"environment": "site-a", "reason": "me too"})
    assert again.status_code == 409
    assert "under audit" in again.json()["error"]["message"]
    left = client.post(f"{HEADS}/unpin", json={"environment": "site-a"})
    assert left.json() == {"pins": [default]}
    assert client.post(f"{HEADS}/unpin", json={"environment": "site-a"}).status_code == 409
    actions = [entry["action"] for entry in client.get("/v1/admin/audit?limit=3").json()["audit"]]
    assert actions == ["heads.unpin", "heads.pin", "heads.pin"]


def test_wrong_pins(service: Service) -> None:
    for body, status, field in (
        ({}, 422, "reason"),
        ({"reason": ""}, 422, "reason"),
        ({"reason": "why", "environment": "No Name"}, 422, "environment"),
        ({"reason": "why", "environment": "nowhere"}, 404, "environment"),
        ({"reason": "why", "environment": "nowhere", "expected_sequence": 0}, 404, "environment"),
        ({"reason": "why", "expected_sequence": 7}, 409, "expected_sequence"),
        ({"reason": "why", "expected_sequence": -1}, 422, "expected_sequence"),
        ({"reason": "why", "enviroment": "site-a"}, 422, "enviroment"),
    ):
        answer = service.client.post(f"{HEADS}/pin", json=body)
        assert answer.status_code == status
        assert answer.json()["error"]["field"] == field
        assert service.client.get(HEADS).json()["pins"] == []


def test_a_misspelt_environment_is_answered_with_the_names_there_are(service: Service) -> None:
    service.store.environments.ensure("site-a", limit=9)
    for call in ("pin", "unpin"):
        body = {"environment": "sight-a"} | ({"reason": "why"} if call == "pin" else {})
        answer = service.client.post(f"{HEADS}/{call}", json=body)
        assert answer.status_code == 404
        error = answer.json()["error"]
        assert (error["code"], error["field"]) == ("not_found", "environment")
        assert "default, site-a" in error["message"]
        assert ("default head" in error["hint"]) is (call == "pin")
        assert service.store.environments.list() == ["default", "site-a"]


def test_a_proposal_is_listed_approved_and_served(service: Service) -> None:
    client = service.client
    proposed, other = propose(service), propose(service, "site-b")
    listed = client.get("/v1/admin/cycles?open_proposals=true&environment=site-a").json()["cycles"]
    assert [item["id"] for item in listed] == [str(proposed.id)]
    assert proposed.proposal is not None
    assert PostProcessingHead.from_document(listed[0]["proposal"]) == proposed.proposal
    assert len(client.get("/v1/admin/cycles?open_proposals=true&model=linear").json()["cycles"]) == 2
    assert len(client.get("/v1/admin/cycles?open_proposals=true&limit=1").json()["cycles"]) == 1
    approved = client.post(f"/v1/admin/cycles/{proposed.id}/approve")
    assert approved.status_code == 200
    version = approved.json()["published_version"]

    def served() -> int:
        return client.post("/v1/predict?environment=site-a", content=png()).json()["head_version"]

    eventually(lambda: served() == version)
    shown = client.get(f"{HEADS}/{version}").json()
    assert (shown["head"], shown["created_by"]) == (listed[0]["proposal"], "admin-token")
    left = client.get("/v1/admin/cycles?open_proposals=true").json()["cycles"]
    assert [item["id"] for item in left] == [str(other.id)]
    assert client.get("/v1/admin/audit?limit=1").json()["audit"][0]["action"] == "cycles.approve"


def test_what_overtook_a_proposal_is_said(service: Service) -> None:
    proposed = propose(service)
    path = f"/v1/admin/cycles/{proposed.id}/approve"
    service.client.post(f"{HEADS}/pin", json={"environment": "site-a", "reason": "under audit"})
    refused = service.client.post(path)
    assert refused.status_code == 409
    assert "under audit" in refused.json()["error"]["message"]
    service.client.post(f"{HEADS}/unpin", json={"environment": "site-a"})
    propose(service, due_at=datetime(2026, 1, 1, 13, tzinfo=UTC))
    refused = service.client.post(path)
    assert refused.status_code == 409
    assert "newer cycle" in refused.json()["error"]["message"]
    assert len(service.client.get(HEADS).json()["heads"]) == 1


def test_a_proposal_is_rejected_with_a_reason(service: Service) -> None:
    client, proposed = service.client, propose(service)
    path = f"/v1/admin/cycles/{proposed.id}"
    for body, field in (({}, "reason"), ({"reason": ""}, "reason"), ({"reason": "no", "why": "x"}, "why")):
        refused = client.post(f"{path}/reject", json=body)
        assert (refused.status_code, refused.json()["error"]["field"]) == (422, field)
    rejected = client.post(f"{path}/reject", json={"reason": "the scanner is being tested"})
    assert rejected.status_code == 200
    assert rejected.json()["rejection"]["reason"] == "the scanner is being tested"
    assert rejected.json()["rejection"]["rejected_by"] == "admin-token"
    assert client.get(path).json() == rejected.json()
    assert client.get("/v1/admin/cycles?open_proposals=true").json()["cycles"] == []
    for call, body in (("approve", None), ("reject", {"reason": "again"})):
        refused = client.post(f"{path}/{call}", json=body)
        assert (refused.status_code, refused.json()["error"]["field"]) == (409, "cycle")
        assert "rejected by admin-token at 20" in refused.json()["error"]["message"]
        assert "the scanner is being tested" in refused.json()["error"]["message"]
    entry = client.get("/v1/admin/audit?limit=1").json()["audit"][0]
    assert (entry["action"], entry["details"]["reason"]) == ("cycles.reject", "the scanner is being tested")


def test_one_cycle_is_shown_as_in_the_list(service: Service) -> None:
    proposed = propose(service)
    (listed,) = service.client.get("/v1/admin/cycles").json()["cycles"]
    shown = service.client.get(f"/v1/admin/cycles/{proposed.id}")
    assert (shown.status_code, shown.json()) == (200, listed)
    assert (shown.json()["rejection"], shown.json()["report"]) == (None, proposed.report)
    assert shown.json()["effect"] == "proposes a swap"
    assert service.client.get("/v1/admin/cycles?outcome=swap").json()["cycles"] == [listed]
    assert service.client.get("/v1/admin/cycles?outcome=keep").json()["cycles"] == []
    for query, field in (("outcome=swop", "outcome"), ("environment=", "environment")):
        refused = service.client.get(f"/v1/admin/cycles?{query}")
        assert (refused.status_code, refused.json()["error"]["field"]) == (422, field)


def test_the_audit_log_is_searched_by_action_and_subject(service: Service) -> None:
    service.client.post(f"{HEADS}/pin", json={"reason": "frozen"})
    everything = service.client.get("/v1/admin/audit").json()["audit"]

    def found(query: str) -> list[str]:
        answer = service.client.get(f"/v1/admin/audit?{query}").json()["audit"]
        assert answer == [entry for entry in everything if entry in answer]
        return [entry["action"] for entry in answer]

    assert set(found("action=heads")) == {"heads.pin", "heads.publish"}
    assert found("action=heads.pin") == found("action=heads&limit=1") == ["heads.pin"]
    assert found("action=head") == found("subject=_inear@1/%25") == []
    assert "heads.pin" in found("subject=linear@1/")


def test_only_cycles_that_exist_are_shown_and_answered(service: Service) -> None:
    for method, call, body in (
        ("GET", "", None),
        ("POST", "/approve", None),
        ("POST", "/reject", {"reason": "no"}),
    ):
        unknown = service.client.request(method, f"/v1/admin/cycles/{new_prediction_id()}{call}", json=body)
        assert (unknown.status_code, unknown.json()["error"]["field"]) == (404, "cycle")
        illegal = service.client.request(method, f"/v1/admin/cycles/7{call}", json=body)
        assert (illegal.status_code, illegal.json()["error"]["field"]) == (422, "cycle")
