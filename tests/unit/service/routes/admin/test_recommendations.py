"""Recommendations of a task over HTTP: attached from an interview or a document, with their effect on heads."""

import json
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from lifelong_core.entities.entity import text_digest
from lifelong_core.store.schema import tables
from tests.unit.design.interviews import ALL_ALIKE
from tests.unit.service.conftest import CLASS_NAMES, Service, calibration, png
from tests.unit.service.conftest import COSTS as OLD_COSTS
from tests.unit.service.routes.admin.test_admin import eventually
from tests.unit.service.routes.admin.test_interviews import ANSWERS, COSTS, started
from tests.unit.service.routes.test_operations import error_of
from tests.unit.store.design_samples import SENSITIVITY, binary_recommendation

PATH = "/v1/admin/tasks/skin/recommendations"
FINGERPRINT = {"number_of_classes": 3} | ANSWERS
EFFECTS = (
    "costs",
    "decision_rule",
    "decision_rule_text",
    "not_executed",
    "differing_heads",
    "hint",
)
REFIT = ("model", "head_version", "published", "kept")
BALANCED = {"number_of_classes": 3, **ALL_ALIKE}
"""Recommends BA, TPR and AUROC, and rests on no costs."""


def attached(service: Service, **body: Any) -> dict[str, Any]:
    answer = service.client.post(PATH, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def actions(service: Service) -> list[str]:
    return [entry.action for entry in service.store.audit.list()]


def test_the_outcome_of_an_interview_is_attached_with_its_costs(service: Service) -> None:
    interview = started(service, task="skin", answers=ANSWERS)
    thresholds = [
        {"metric": "EC", "value": 0.5, "by": "estimate"},
        {"metric": "TPR", "value": 0.8, "class_index": 2},
    ]
    found = attached(service, interview=interview["id"], thresholds=thresholds)
    assert (found["task"], found["version"], found["created_by"]) == ("skin", 1, "admin-token")
    assert found["labels"] == ["EC", "TPR", "AUROC"]
    assert [threshold["by"] for threshold in found["thresholds"]] == ["estimate", "interval"]
    assert found["costs"] == COSTS
    assert {name: found[name] for name in REFIT} == {
        "model": None,
        "head_version": None,
        "published": [],
        "kept": [],
    }
    assert service.client.get("/v1/admin/tasks").json()["tasks"][0]["costs"] == COSTS
    assert service.client.get("/v1/admin/models/linear").json()["heads"] == {"*": 1}
    kept = {name: value for name, value in found.items() if name not in (*EFFECTS, *REFIT)}
    assert service.client.get(f"{PATH}/current").json() == service.client.get(f"{PATH}/1").json() == kept
    assert {"recommendations.attach", "tasks.costs"} <= set(actions(service))


def test_the_answer_names_the_rule_and_the_heads_that_still_decide_otherwise(service: Service) -> None:
    service.store.heads.publish(
        "linear", service.store.heads.get("linear", 1).head, environment="clinic-a", actor="test"
    )
    service.store.heads.pin("linear", environment="clinic-a", reason="study", actor="ann")
    found = attached(service, fingerprint=BALANCED)
    assert (found["decision_rule"], found["not_executed"]) == ({"kind": "argmax"}, None)
    assert found["decision_rule_text"] == "highest probability"
    default, own = found["differing_heads"]
    assert (default["model"], default["environment"], default["version"]) == ("linear@1", None, 1)
    assert default["differs_in"] == ["decision_rule"]
    assert default["sentence"] == (
        "the default head of linear@1 (version 1) still has another decision rule (least expected cost)."
    )
    assert (own["environment"], own["version"]) == ("clinic-a", 2)
    assert "(version 2, pinned)" in own["sentence"]
    assert found["hint"].startswith("Unpin the pinned heads, then attach")
    assert "--attach skin --refit-head" in found["hint"]
    task = service.client.get("/v1/admin/tasks").json()["tasks"][0]
    assert (task["decision_rule"], task["decision_rule_text"]) == ({"kind": "argmax"}, "highest probability")
    again = attached(service, fingerprint=BALANCED, refit_head=True)
    assert [(one["environment"], one["version"]) for one in again["published"]] == [(None, 3)]
    assert [one["environment"] for one in again["differing_heads"]] == ["clinic-a"]
    service.store.heads.unpin("linear", environment="clinic-a", actor="ann")
    last = attached(service, fingerprint=BALANCED, refit_head=True)
    assert (last["differing_heads"], last["hint"]) == ([], None)
    head = service.client.get("/v1/admin/models/linear/heads/3").json()
    assert (head["decision_rule_text"], head["head"]["decision_rule"]) == (
        "highest probability",
        {"kind": "argmax"},
    )
    assert "decision_rule" not in service.client.get("/v1/admin/models/linear/heads/1").json()["head"]


def test_a_default_head_for_another_class_mix_than_the_stated_one_is_named(service: Service) -> None:
    shares = {"target_prevalences_known": True, "target_prevalences": [0.7, 0.2, 0.1]}
    stated = {
        **BALANCED,
        "class_contribution": "target_prevalences",
        **shares,
        "prevalences_representative": False,
    }
    found = attached(service, fingerprint=stated)
    (default,) = found["differing_heads"]
    assert default["differs_in"][-1] == "prevalence"
    assert "stated for the use: " in default["sentence"]
    again = attached(service, fingerprint=stated, refit_head=True)
    assert (again["differing_heads"], again["hint"]) == ([], None)


@pytest.mark.parametrize("refit", [False, True])
def test_costs_that_reward_errors_need_a_reason(service: Service, refit: bool) -> None:
    asked = {
        "fingerprint": FINGERPRINT | {"costs": [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 2, 1]]},
        "refit_head": refit,
    }
    answer = service.client.post(PATH, json=asked)
    assert (answer.status_code, error_of(answer)["field"]) == (422, "costs")
    assert attached(service, **asked, force_reason="a test")["costs"] == asked["fingerprint"]["costs"]


def test_a_rule_that_no_head_executes_is_refused(service: Service) -> None:
    asked = {**BALANCED, "decision_rule": "optimization", "optimised_metric": "LR+"}
    answer = service.client.post(PATH, json={"fingerprint": asked})
    assert answer.status_code == 422
    assert "calls almost nothing positive" in error_of(answer)["message"]


def test_a_rule_that_no_head_executes_is_said_so(service: Service) -> None:
    service.store.tasks.add("screening", ("no", "yes"), [[0, 1], [1, 0]], actor="test")
    asked = binary_recommendation({**SENSITIVITY, "target_value": 1.0})
    answer = service.client.post(
        "/v1/admin/tasks/screening/recommendations", json={"recommendation": json.loads(asked.to_json())}
    )
    assert answer.status_code == 201, answer.text
    found = answer.json()
    assert found["decision_rule"] == {"kind": "bayes"}
    assert found["not_executed"] == "a target of 1 leaves no cut-off to choose; state one below 1."
    assert found["differing_heads"] == []


def test_a_document_and_a_fingerprint_are_attached(service: Service) -> None:
    first = attached(service, fingerprint=BALANCED)
    assert first["labels"] == ["BA", "TPR", "AUROC"]
    assert first["costs"] == OLD_COSTS
    second = attached(service, fingerprint=BALANCED, choices={"DG3.3": "TPR"})
    assert second["labels"] == ["BA", "TPR", "AUROC"]
    third = attached(service, recommendation=second["recommendation"]["document"], expected_version=2)
    assert third["recommendation"] == second["recommendation"]
    listed = service.client.get(PATH).json()["recommendations"]
    assert [(one["version"], one["labels"]) for one in listed] == [
        (1, ["BA", "TPR", "AUROC"]),
        (2, ["BA", "TPR", "AUROC"]),
        (3, ["BA", "TPR", "AUROC"]),
    ]
    assert service.client.get(f"{PATH}/current").json()["version"] == 3


def test_the_head_is_fitted_anew_for_costs_and_prevalences(service: Service) -> None:
    found = attached(service, fingerprint=FINGERPRINT, refit_head=True)
    assert (found["model"], found["head_version"]) == ("linear@1", 2)
    assert (found["published"], found["kept"]) == ([{"environment": None, "version": 2}], [])
    head = service.client.get("/v1/admin/models/linear/heads/2").json()["head"]
    assert head["costs"] == COSTS
    assert head["assumed_prevalence"] == pytest.approx([0.7, 0.2, 0.1])
    assert head["class_names"] == list(CLASS_NAMES)
    assert head["provenance"] | {"calibration_digest": ""} == {
        "calibration_digest": "",
        "origin": "recommendation",
        "model": "linear@1",
        "task": "skin",
        "recommendation": 1,
    }
    assert head["provenance"]["calibration_digest"] == calibration().digest
    eventually(lambda: service.client.post("/v1/predict", content=png()).json()["head_version"] == 2)
    again = attached(service, fingerprint=BALANCED, refit_head=True)
    assert (again["head_version"], again["published"]) == (2, []), (
        "no other costs, rule or class mix were stated"
    )
    assert [(one["version"], one["cause"]) for one in again["kept"]] == [(2, "fits")]


def test_what_does_not_fit_is_refused_and_changes_nothing(service: Service) -> None:
    kept = attached(service, fingerprint=BALANCED)["recommendation"]["document"]
    changed = json.loads(json.dumps(kept).replace('"BA"', '"XY"'))
    interview = started(service, task="skin")
    elsewhere = started(service, answers={"number_of_classes": 2})
    service.store.tasks.add("other", ["a", "b"], [[0, 1], [1, 0]], actor="test")
    foreign = started(service, task="other")
    turned = started(service, class_names=list(reversed(CLASS_NAMES)))
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({}, 422, "body"),
        ({"interview": interview["id"], "fingerprint": BALANCED}, 422, "body"),
        ({"interview": interview["id"], "choices": {"DG3.3": "TPR"}}, 422, "body"),
        ({"interview": "7"}, 422, "interview"),
        ({"interview": str(UUID(int=7))}, 404, "interview"),
        ({"interview": interview["id"]}, 409, "class_scores_available"),
        ({"interview": elsewhere["id"]}, 409, "class_scores_available"),
        ({"interview": foreign["id"]}, 422, "interview"),
        ({"interview": turned["id"]}, 422, "interview"),
        ({"recommendation": {"steps": []}}, 422, "recommendation.method_version"),
        ({"recommendation": changed}, 422, "recommendation"),
        ({"recommendation": kept | {"method_version": 99}}, 422, "recommendation"),
        ({"fingerprint": {"colour": 1}}, 422, "fingerprint.colour"),
        ({"fingerprint": {"number_of_classes": 3}}, 422, "class_scores_available"),
        ({"fingerprint": BALANCED | {"number_of_classes": 4}}, 422, "number_of_classes"),
        ({"fingerprint": BALANCED, "choices": {"DG9": "AC"}}, 422, "choices"),
        ({"fingerprint": BALANCED, "expected_version": 0}, 409, "expected_version"),
        ({"fingerprint": BALANCED, "refit_head": True, "expected_version": 7}, 409, "expected_version"),
        ({"fingerprint": FINGERPRINT | {"costs": [row[:3] for row in COSTS]}}, 409, "costs"),
        ({"fingerprint": BALANCED, "thresholds": [{"metric": "AC", "value": 0.9}]}, 422, "thresholds"),
        ({"fingerprint": BALANCED, "thresholds": [{"metric": "BA"}]}, 422, "thresholds.0.value"),
        (
            {"fingerprint": BALANCED, "thresholds": [{"metric": "AUROC", "value": 0.9, "class_index": 3}]},
            422,
            "thresholds",
        ),
        (
            {"fingerprint": BALANCED, "thresholds": [{"metric": "BA", "value": 1e300}]},
            422,
            "thresholds.0.value",
        ),
    ]
    for body, status, field in cases:
        refused = service.client.post(PATH, json=body)
        assert (refused.status_code, error_of(refused)["field"]) == (status, field), (body, refused.text)
    assert len(service.client.get(PATH).json()["recommendations"]) == 1
    assert service.client.get("/v1/admin/models/linear").json()["heads"] == {"*": 1}
    assert service.client.get("/v1/admin/tasks").json()["tasks"][0]["costs"] == OLD_COSTS


def test_tasks_and_versions_that_are_not_there(service: Service) -> None:
    missing = service.client.get(f"{PATH}/current")
    assert (missing.status_code, error_of(missing)["field"]) == (404, "version")
    assert PATH in error_of(missing)["hint"]
    for path in (f"{PATH}/1", "/v1/admin/tasks/nothing/recommendations", f"{PATH}/0", f"{PATH}/newest"):
        answer = service.client.get(path)
        assert answer.status_code == (422 if path[-1] in "0t" else 404), path
    unknown = service.client.post("/v1/admin/tasks/nothing/recommendations", json={"fingerprint": BALANCED})
    assert (unknown.status_code, error_of(unknown)["field"]) == (404, "task")


@pytest.mark.parametrize("what", ["document", "thresholds"])
def test_a_damaged_one_is_marked_and_hides_no_other_of_the_list(service: Service, what: str) -> None:
    for _ in range(2):
        attached(service, fingerprint=BALANCED)
    texts = {
        "document": service.store.recommendations.get("skin", 1).document,
        "thresholds": "[]",
        what: "{}",
    }
    values = texts | {"digest": text_digest(*texts.values())}  # as a newer version may have written it
    rows = tables.recommendations
    with service.store.database.write() as connection:
        connection.execute(sa.update(rows).where(rows.c.version == 1).values(values))
    answer = service.client.get(PATH)
    assert answer.status_code == 200, answer.text
    damaged, sound = answer.json()["recommendations"]
    assert (damaged["version"], damaged["created_by"], damaged["labels"]) == (1, "admin-token", [])
    assert damaged["damaged"].startswith("recommendation 1 of skin is damaged")
    assert damaged["created_at"] < sound["created_at"]
    assert (sound["version"], sound["labels"], sound["damaged"]) == (2, ["BA", "TPR", "AUROC"], None)
    one = service.client.get(f"{PATH}/1")
    assert (one.status_code, error_of(one)["code"]) == (503, "unavailable")
    assert service.client.get(f"{PATH}/current").json()["version"] == 2


def test_the_names_of_the_classes_travel_with_a_recommendation(service: Service) -> None:
    found = attached(service, fingerprint=BALANCED)
    document = found["recommendation"]["document"]
    assert document["class_names"] == list(CLASS_NAMES)
    assert attached(service, recommendation=document)["version"] == 2
    turned = {**document, "class_names": list(CLASS_NAMES[::-1])}
    answer = service.client.post(PATH, json={"recommendation": turned})
    assert (answer.status_code, error_of(answer)["field"]) == (422, "recommendation.class_names")
