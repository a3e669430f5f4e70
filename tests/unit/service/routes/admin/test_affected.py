"""The list of decisions that a swap affects, over HTTP."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from lifelong.client import Client
from lifelong.commands.cycles import cycles as command
from lifelong_core.deploy.adaptation.affected_decisions import find_affected
from lifelong_core.operations import cycles as affected
from lifelong_core.store import Cycle, logged_at, new_prediction_id
from tests.unit.service.conftest import Service
from tests.unit.service.routes.admin.test_pins_and_proposals import NOON

LOGITS = [[0.5 * (i % 7), 0.4 * (i % 5), 0.3 * (i % 3)] for i in range(1, 61)]
COLUMNS = {
    "prediction_id",
    "logged_at",
    "head_version",
    "decision",
    "label",
    "new_decision",
    "new_label",
    "expected_cost",
    "group",
    "true_class",
}


def predict(service: Service, *, group: str | None = None) -> list[dict[str, Any]]:
    query = "model=remote&environment=site-a" + ("" if group is None else f"&group={group}")
    answer = service.client.post(f"/v1/logits?{query}", json={"logits": LOGITS})
    assert answer.status_code == 200, answer.text
    return answer.json()["predictions"]


def swap(service: Service, first: str, mode: str = "auto") -> Cycle:
    """A monitor publishes a head for which class 0 is far more frequent."""
    store = service.store
    served = store.heads.get("remote", 1).head
    done = Cycle(
        id=new_prediction_id(),
        model_id=store.models.get("remote").id,
        environment="site-a",
        due_at=NOON,
        started_at=NOON,
        finished_at=NOON,
        outcome="swap",
        report={
            "schema_version": 2,
            "outcome": "swap",
            "reasons": [{"code": "gain_sufficient", "text": "It pays."}],
            "assumed_prevalence": [1 / 3] * 3,
            "samples": 60,
        },
        window_samples=60,
        log_position=17,
        head_version=1,
        published_version=None,
    )
    candidate = replace(
        served, bias=served.bias + np.array([2.0, 0, 0]), provenance={"window": {"first": first}}
    )
    return store.cycles.finish(done, candidate=candidate, expected_sequence=None, mode=mode)  # type: ignore[arg-type]


def test_the_list_is_paged_and_says_what_changes(service: Service) -> None:
    answered = predict(service, group="patient-1") + predict(service)
    done = swap(service, answered[0]["prediction_id"])
    url = f"/v1/admin/cycles/{done.id}/affected"
    whole = service.client.get(url, params={"limit": 1000}).json()
    head = service.store.heads.get("remote", 2).head
    expected = find_affected(LOGITS * 2, [one["decision"] for one in answered], head)
    assert len(expected.rows) > 10
    assert (whole["model"], whole["environment"], whole["head_version"]) == ("remote@1", "site-a", 2)
    assert whole["decisions"] == ["benign", "unclear", "malignant", "abstain"]
    assert whole["next"] is None
    figures = whole["figures"]
    assert (figures["predictions"], figures["affected"]) == (120, len(expected.rows))
    assert figures["expected_cost"] == pytest.approx(expected.expected_costs.sum())
    assert figures["mean_cost"] == pytest.approx(expected.expected_costs.mean())
    assert (figures["groups"], figures["quarantined"], figures["other_models"]) == (1, 0, 0)
    listed = whole["predictions"]
    assert all(set(one) == COLUMNS for one in listed)
    assert {one["prediction_id"] for one in listed} == {
        answered[row]["prediction_id"] for row in expected.rows
    }
    assert [one["expected_cost"] for one in listed] == sorted(expected.expected_costs, reverse=True)
    assert {one["label"] for one in listed} <= set(whole["decisions"])
    grouped = {one["prediction_id"] for one in listed if one["group"] is not None}
    assert grouped == {one["prediction_id"] for one in answered[:60]} & {
        one["prediction_id"] for one in listed
    }
    pages, after = [], None
    while True:
        page = service.client.get(url, params={"limit": 4} | ({"after": after} if after else {})).json()
        assert page["figures"]["affected"] == figures["affected"]
        pages += page["predictions"]
        if (after := page["next"]) is None:
            break
        assert len(page["predictions"]) == 4
    assert pages == listed


def test_a_remote_command_reads_the_whole_list_in_pages(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = swap(service, predict(service)[0]["prediction_id"])
    whole = service.client.get(f"/v1/admin/cycles/{done.id}/affected", params={"limit": 1000}).json()
    monkeypatch.setattr(command, "LARGEST_PAGE", 4)
    client = Client("http://test")
    client._client = service.client

    def read(limit: int | None) -> list[str]:
        pages = command.read_affected(client, str(done.id)[:13], limit)
        return [str(one.prediction_id) for page in pages for one in page.predictions]

    expected = [one["prediction_id"] for one in whole["predictions"]]
    assert len(expected) > 6
    assert read(None) == expected
    assert read(6) == expected[:6]


def test_a_cycle_shows_the_figures_once_they_are_counted(service: Service) -> None:
    done = swap(service, predict(service)[0]["prediction_id"])
    url = f"/v1/admin/cycles/{done.id}"
    assert service.client.get(url).json()["affected"] is None
    *_, figures = service.store.affected.scan(service.store.affected.period(done))
    service.store.swaps.record(done.id, figures, is_final=False)
    shown = service.client.get(url).json()["affected"]
    assert shown["predictions"] == 60
    assert shown["affected"] == sum(change["count"] for change in shown["changes"])
    assert service.client.get("/v1/admin/cycles").json()["cycles"][0]["affected"] == shown


def test_an_open_proposal_shows_what_it_would_change(service: Service) -> None:
    done = swap(service, predict(service)[0]["prediction_id"], mode="propose")
    answer = service.client.get(f"/v1/admin/cycles/{done.id}/affected").json()
    assert (answer["head_version"], answer["activated_at"]) == (None, None)
    assert answer["figures"]["affected"] > 0


def test_an_erased_group_is_gone_from_the_list(service: Service) -> None:
    first = predict(service, group="patient-1")[0]["prediction_id"]
    predict(service, group="patient-2")
    url = f"/v1/admin/cycles/{swap(service, first).id}/affected"
    before = service.client.get(url).json()
    assert before["figures"]["groups"] == 2
    erased = service.client.post("/v1/admin/groups/erase", json={"group": "patient-1"})
    assert erased.json()["predictions"] == 60
    after = service.client.get(url).json()
    assert (after["figures"]["predictions"], after["figures"]["groups"]) == (60, 1)
    hashes = {one["group"] for one in before["predictions"]}
    assert {one["group"] for one in after["predictions"]} < hashes


def test_a_period_that_is_too_long_for_a_request_can_be_narrowed(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(affected, "MOST_COMPARED", 60)
    first = predict(service)
    second = predict(service)
    url = f"/v1/admin/cycles/{swap(service, first[0]['prediction_id']).id}/affected"
    refused = service.client.get(url)
    assert refused.status_code == 422
    assert refused.json()["error"]["field"] == "since"
    assert "120 predictions" in refused.json()["error"]["message"]
    assert "lifelong cycles affected" in refused.json()["error"]["hint"]
    cut = logged_at(UUID(second[0]["prediction_id"])).isoformat()
    for bound, part in (("since", second), ("until", first)):
        narrowed = service.client.get(url, params={bound: cut, "limit": 1000}).json()
        assert narrowed["figures"]["predictions"] == 60
        assert {one["prediction_id"] for one in narrowed["predictions"]} <= {
            one["prediction_id"] for one in part
        }


def test_wrong_queries_name_the_field(service: Service) -> None:
    done = swap(service, predict(service)[0]["prediction_id"])
    for query, status, field in (
        ({"limit": "0"}, 422, "limit"),
        ({"limit": "1001"}, 422, "limit"),
        ({"after": "somewhere"}, 422, "after"),
        ({"after": "x" * 101}, 422, "after"),
        ({"since": "yesterday"}, 422, "since"),
        ({"since": "2026-01-01T00:00:00"}, 422, "since"),
        ({"until": "2001-01-01T00:00:00Z"}, 422, "since"),
        ({"since": (datetime.now(UTC) + timedelta(days=2)).isoformat()}, 422, "since"),
    ):
        answer = service.client.get(f"/v1/admin/cycles/{done.id}/affected", params=query)
        assert (answer.status_code, answer.json()["error"]["field"]) == (status, field)


def test_an_unknown_cycle_and_one_without_a_head_have_no_list(service: Service) -> None:
    assert service.client.get(f"/v1/admin/cycles/{new_prediction_id()}/affected").status_code == 404
    kept = replace(swap(service, predict(service)[0]["prediction_id"]), id=new_prediction_id())
    kept = replace(kept, outcome="keep", due_at=NOON + timedelta(hours=1), published_version=None)
    service.store.cycles.finish(kept, candidate=None, expected_sequence=None)
    assert service.client.get(f"/v1/admin/cycles/{kept.id}/affected").status_code == 409


def test_one_list_is_made_at_a_time(service: Service) -> None:
    url = f"/v1/admin/cycles/{swap(service, predict(service)[0]['prediction_id']).id}/affected"
    with affected._comparing:
        busy = service.client.get(url)
    assert (busy.status_code, busy.headers["retry-after"]) == (503, "1")
    assert service.client.get(url).status_code == 200
