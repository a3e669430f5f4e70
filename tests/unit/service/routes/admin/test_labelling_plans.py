"""Labelling plans over HTTP."""

import csv

from lifelong_core.entities.labelling import LabellingPayload, LabellingPlan
from lifelong_core.store import NewLabel, Prediction, new_prediction_id
from tests.unit.service.conftest import Service
from tests.unit.store.labelling_samples import WIDTHS, add_plan, logged

PLANS = "/v1/admin/labelling-plans"
ESTIMATE = {
    "method": "difference",
    "labels": 1,
    "confidence": 0.95,
    "labelled": {"EC": {"value": 0.5, "low": 0.25, "high": 0.75}},
    "labels_alone": {"EC": {"value": 0.5, "low": None, "high": None}},
    "label_free": None,
    "notes": ["Only 1 of 3 labels has arrived."],
}


def path(model: str = "linear", environment: str = "site-a") -> str:
    return f"/v1/admin/populations/{model}/{environment}/labelling-plan"


def plan(service: Service) -> tuple[LabellingPlan, list[Prediction]]:
    """A plan that chose three of six predictions, one of which has a label."""
    rows = logged(service.store, 6, service.store.models.get("linear").id, b"a" * 16, b"a" * 16)
    made = add_plan(service.store, rows, chosen=[1, 4, 0], labelled=[5])
    service.store.labels.record([NewLabel(rows[4].id, 2)])
    return made, rows


def test_a_plan_that_is_asked_for_is_a_job(service: Service) -> None:
    service.store.environments.ensure("site-a", limit=9)
    answer = service.client.post(path(), json={"size": 50, "window_seconds": 3600})
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert answer.headers["Location"] == f"/v1/admin/jobs/{job['id']}"
    assert (job["kind"], job["state"], job["created_by"]) == ("labelling_plan", "queued", "admin-token")
    payload = LabellingPayload.from_document(job["payload"])
    assert (payload.model, payload.environment, payload.size) == ("linear@1", "site-a", 50)
    assert (payload.window_samples, payload.window_seconds) == (None, 3600.0)
    entry = service.store.audit.list(1)[0]
    assert (entry.actor, entry.action, entry.subject) == ("admin-token", "jobs.submit", job["id"])


def test_a_wrong_request_names_its_field(service: Service) -> None:
    service.store.environments.ensure("site-a", limit=9)
    for body, field in (
        ({}, "size"),
        ({"size": 0}, "size"),
        ({"size": 10_001}, "size"),
        ({"size": "many"}, "size"),
        ({"size": 5, "window_samples": 20_001}, "window_samples"),
        ({"size": 5, "window_seconds": 0}, "window_seconds"),
        ({"size": 5, "weather": 1}, "weather"),
    ):
        answer = service.client.post(path(), json=body)
        assert answer.status_code == 422, answer.text
        assert answer.json()["error"]["field"] == field
        assert service.store.jobs.list("labelling_plan") == []


def test_the_limits_themselves_are_allowed(service: Service) -> None:
    service.store.environments.ensure("site-a", limit=9)
    for body in ({"size": 1}, {"size": 10_000, "window_samples": 20_000}):
        assert service.client.post(path(), json=body).status_code == 202


def test_unknown_populations_and_models_without_calibration_are_refused(service: Service) -> None:
    body = {"size": 5}
    assert service.client.post(path("other"), json=body).status_code == 404
    assert service.client.post(path(environment="nowhere"), json=body).status_code == 404
    service.store.models.add("skin", "raw", kind="external", actor="test")
    refused = service.client.post(path("raw", "default"), json=body)
    assert refused.status_code == 409
    assert "lifelong calibrate raw@1" in refused.json()["error"]["hint"]


def test_the_newest_plan_is_shown_in_the_order_of_labelling(service: Service) -> None:
    assert service.client.get(path("linear", "default")).status_code == 404
    made, rows = plan(service)
    shown = service.client.get(path()).json()
    assert [one["prediction_id"] for one in shown["predictions"]] == [
        str(rows[index].id) for index in (1, 4, 0)
    ]
    assert [one["label"] for one in shown["predictions"]] == [None, 2, None]
    assert [one["group"] for one in shown["predictions"]] == [0, None, 0]
    assert (shown["id"], shown["task"], shown["model"]) == (str(made.id), "skin", "linear@1")
    assert (shown["size"], shown["labelled_before"]) == (3, 1)
    assert (shown["expected_widths"], shown["estimate"]) == (WIDTHS, None)
    assert service.client.get(f"{PLANS}/{made.id}").json() == shown
    assert service.client.get(f"{PLANS}/{new_prediction_id()}").status_code == 404
    newer = add_plan(service.store, rows, chosen=[2])
    assert service.client.get(path()).json()["id"] == str(newer.id)


def test_plans_are_listed_with_their_estimates(service: Service) -> None:
    assert service.client.get(PLANS).json() == {"plans": []}
    made, rows = plan(service)
    service.store.labelling_plans.note_estimate(made.id, ESTIMATE)
    newer = add_plan(service.store, rows, chosen=[2], environment="site-b")
    listed = service.client.get(PLANS).json()["plans"]
    assert [one["id"] for one in listed] == [str(newer.id), str(made.id)]
    assert listed[1]["estimate"] == ESTIMATE
    assert listed[1]["progress"] == {"chosen": 3, "labelled": 1}
    for query, expected in (
        ("environment=site-a", [made]),
        ("model=linear@1&limit=1", [newer]),
        ("model=remote", []),
    ):
        found = service.client.get(f"{PLANS}?{query}").json()["plans"]
        assert [one["id"] for one in found] == [str(one.id) for one in expected], query


def test_a_plan_is_a_csv_file_for_clients_that_want_one(service: Service) -> None:
    made, rows = plan(service)
    for address in (path(), f"{PLANS}/{made.id}"):
        answer = service.client.get(address, headers={"Accept": "text/csv, application/json;q=0.5"})
        assert answer.headers["content-type"].startswith("text/csv")
        assert f"labels-to-get-{made.id}.csv" in answer.headers["content-disposition"]
        lines = list(csv.DictReader(answer.text.splitlines()))
        assert [line["prediction_id"] for line in lines] == [str(rows[index].id) for index in (1, 4, 0)]
        assert (b"a" * 16).hex() not in answer.text
    assert service.client.get(path(), headers={"Accept": "*/*"}).json()["id"] == str(made.id)
