"""An interview over HTTP: from the first question to the recommendation, going back, and refusals."""

from typing import Any
from uuid import UUID

import httpx

from tests.unit.service.conftest import CLASS_NAMES, Service
from tests.unit.service.routes.test_operations import error_of

PATH = "/v1/admin/interviews"
COSTS = [[0, 1, 1, 0.5], [1, 0, 1, 0.5], [9, 9, 0, 0.5]]
ANSWERS: dict[str, Any] = {
    "class_scores_available": True,
    "decision_rule": "argmax",
    "unequal_severity": True,
    "costs_available": True,
    "costs": COSTS,
    "prevalences_representative": False,
    "target_prevalences_known": True,
    "target_prevalences": [0.7, 0.2, 0.1],
    "unequal_interest": False,
    "calibration_assessment": False,
    "dependent_cases": False,
    "invalid_outputs": False,
}
"""Recommends EC, TPR and AUROC for the task skin."""
OPEN_CHOICE = {
    "number_of_classes": 3,
    "class_scores_available": False,
    "unequal_severity": True,
    "costs_available": True,
    "costs": [[0, 1, 1], [2, 0, 2], [3, 3, 0]],
    "unequal_interest": False,
    "prevalences_representative": True,
    "predictive_values": "unclear",
    "class_imbalance": False,
    "dependent_cases": False,
    "invalid_outputs": False,
}
"""Leaves DG3.4 open."""


def started(service: Service, **known: Any) -> dict[str, Any]:
    answer = service.client.post(PATH, json=known)
    assert answer.status_code == 201, answer.text
    return answer.json()


def post(service: Service, interview: dict[str, Any], what: str, **body: Any) -> httpx.Response:
    return service.client.post(f"{PATH}/{interview['id']}/{what}", json=body)


def answered(service: Service, interview: dict[str, Any], **answers: Any) -> dict[str, Any]:
    answer = post(service, interview, "answers", answers=answers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_one_question_after_the_other_as_texts(service: Service) -> None:
    interview = started(service, task="skin")
    assert (interview["task"], interview["revision"], interview["stage"]) == ("skin", 1, "questions")
    assert interview["class_names"] == list(CLASS_NAMES)
    assert interview["answers"] == {"number_of_classes": 3}
    texts = {
        "class_scores_available": "yes",
        "decision_rule": "highest score wins",
        "unequal_severity": "yes",
        "costs_available": "y",
        "costs": "0, 1, 1, 0.5; 1, 0, 1, 0.5; 9, 9, 0, 0.5",
        "prevalences_representative": "no",
        "target_prevalences_known": "yes",
        "target_prevalences": "benign: 70 %, unclear: 20 %, malignant: 10 %",
    }
    asked: list[str] = []
    progress = [interview["progress"]["answered"]]
    while interview["question"] is not None:
        question = interview["question"]
        asked.append(question["field"])
        assert question["question"].endswith("?")
        assert all(question[part] for part in ("id", "kind", "example", "pitfall", "source"))
        if question["kind"] in ("choice", "yes_no"):
            assert all(answer["label"] and answer["explanation"] for answer in question["answers"])
        interview = answered(service, interview, **{question["field"]: texts.get(question["field"], "no")})
        progress.append(interview["progress"]["answered"])
    assert sorted(asked) == sorted(ANSWERS)
    assert progress == sorted(progress)
    assert interview["stage"] == "complete"
    assert interview["answers"] == {"number_of_classes": 3} | ANSWERS
    assert [said["item"] for said in interview["history"]] == asked
    said = {one["item"]: one for one in interview["history"]}
    assert said["decision_rule"] | {"name": ""} == {
        "item": "decision_rule",
        "name": "",
        "value": "argmax",
        "text": "highest score wins",
    }
    assert service.client.get(f"{PATH}/{interview['id']}").json() == interview


def test_the_recommendation_holds_cards_paths_and_reasons(service: Service) -> None:
    interview = started(service, task="skin", answers=ANSWERS)
    answer = service.client.post(f"{PATH}/{interview['id']}/finish")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert [metric["label"] for metric in found["metrics"]] == ["EC", "TPR", "AUROC"]
    cost = found["metrics"][0]
    assert cost["name"] == "Expected cost"
    assert cost["meaning"]
    assert cost["parameters"]["costs"] == COSTS
    assert cost["parameters"]["prevalence"] == [0.7, 0.2, 0.1]
    (why,) = cost["why"]
    assert (why["subprocess"], why["row"][:2]) == ("S2", "S2")
    assert {"costs_available", "unequal_severity"} <= {entry["field"] for entry in why["path"]}
    assert any(entry["metric"] == "AC" and entry["reason"] for entry in found["rejected"])
    assert all(guide["arguments"] for guide in found["guides"])
    assert found["confidence"] in ("stated", "forced", "inferred", "not_in_source")
    assert found["advice"]
    assert found["open_choices"] == []
    assert "confusion_matrix" in found["displays"]
    assert found["document"]["fingerprint"]["costs"] == COSTS


def test_a_task_with_a_class_of_interest_offers_its_classes(service: Service) -> None:
    interview = started(service, class_names=["healthy", "ill"])
    interview = answered(
        service, interview, **{"FP5.1": True, "FP2.6": "target_value", "FP2.6.target_metric": "sensitivity"}
    )
    while interview["question"]["field"] != "target_class":
        interview = answered(service, interview, **{interview["question"]["field"]: "no"})
    assert interview["question"]["answers"] == [
        {"value": 0, "label": "healthy", "explanation": ""},
        {"value": 1, "label": "ill", "explanation": ""},
    ]
    interview = answered(service, interview, target_class="ill", target_value="95 %")
    assert (interview["answers"]["target_class"], interview["answers"]["target_value"]) == (1, 0.95)


def test_back_withdraws_what_was_said_last(service: Service) -> None:
    interview = started(service, task="skin")
    first = answered(service, interview, class_scores_available=True)
    second = answered(service, first, decision_rule="argmax")
    back = service.client.post(f"{PATH}/{interview['id']}/back").json()
    assert back["revision"] == 4
    assert back["question"] == first["question"]
    assert back["answers"] == first["answers"] != second["answers"]
    post(service, interview, "back", revision=4)
    nothing = post(service, interview, "back")
    assert (nothing.status_code, error_of(nothing)["field"]) == (422, "history")


def test_null_withdraws_an_answer(service: Service) -> None:
    interview = started(service, task="skin", answers=ANSWERS)
    assert answered(service, interview, costs=None)["question"]["field"] == "costs"


def test_finishing_names_what_is_missing(service: Service) -> None:
    interview = started(service, task="skin")
    refused = post(service, interview, "finish")
    assert refused.status_code == 409
    error = error_of(refused)
    assert (error["code"], error["field"]) == ("conflict", "class_scores_available")
    assert "FP5.1 (class_scores_available)" in error["message"]
    assert f"/v1/admin/interviews/{interview['id']}/answers" in error["hint"]


def test_contradictions_are_explained_and_their_mends_accepted(service: Service) -> None:
    interview = started(
        service, task="skin", answers=ANSWERS | {"costs": [[0, 1, 1, 1]] + [[1, 0, 1, 1]] * 2}
    )
    interview = answered(service, interview, costs=[[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    assert interview["stage"] == "contradictions"
    (contradiction,) = interview["contradictions"]
    assert "costs" in contradiction["answers"]
    refused = post(service, interview, "finish")
    error = error_of(refused)
    assert refused.status_code == 409
    assert contradiction["explanation"] in error["message"]
    assert contradiction["resolutions"][0]["text"] in error["hint"]
    resolved = answered(service, interview, **contradiction["resolutions"][0]["answers"])
    assert resolved["contradictions"] == []


def test_an_open_choice_is_decided(service: Service) -> None:
    interview = started(service, answers=OPEN_CHOICE)
    assert (interview["stage"], interview["question"]) == ("choices", None)
    (guide,) = interview["open_choices"]
    assert (guide["guide"], guide["options"]) == ("DG3.4", ["LR+", "TPR", "F_beta"])
    assert {argument["polarity"] for argument in guide["arguments"]} >= {"pro", "con"}
    refused = post(service, interview, "finish")
    assert (refused.status_code, error_of(refused)["field"]) == (409, "DG3.4")
    decided = post(service, interview, "choices", choices={"DG3.4": "TPR"}).json()
    assert (decided["stage"], decided["choices"]) == ("complete", {"DG3.4": ["TPR"]})
    assert decided["history"][-1]["text"] == "TPR"
    found = post(service, interview, "finish").json()
    assert "TPR" in [metric["label"] for metric in found["metrics"]]
    undone = post(service, interview, "choices", choices={"DG3.4": None}).json()
    assert undone["stage"] == "choices"


def test_whoever_looked_at_another_revision_is_told(service: Service) -> None:
    interview = started(service, answers=OPEN_CHOICE)
    answered(service, interview, invalid_outputs=True)
    calls: dict[str, dict[str, Any]] = {
        "answers": {"answers": {"invalid_outputs": False}},
        "choices": {"choices": {"DG3.4": "TPR"}},
        "back": {},
        "finish": {},
    }
    for what, body in calls.items():
        refused = post(service, interview, what, revision=1, **body)
        assert (refused.status_code, error_of(refused)["field"]) == (409, "revision"), what
    present = service.client.get(f"{PATH}/{interview['id']}").json()
    assert (present["revision"], present["answers"]["invalid_outputs"]) == (2, True)


def test_bad_answers_name_the_item_and_change_nothing(service: Service) -> None:
    interview = started(service, task="skin", answers=ANSWERS)
    cases = [
        ({"answers": {"unequal_severity": "perhaps"}}, "unequal_severity"),
        ({"answers": {"unequal_severity": 1}}, "unequal_severity"),
        ({"answers": {"decision_rule": "majority"}}, "decision_rule"),
        ({"answers": {"target_prevalences": [0.5, 0.5, 0.5]}}, "target_prevalences"),
        ({"answers": {"costs": [[0, 1], [1]]}}, "costs"),
        ({"answers": {"costs": "0 1"}}, "costs"),
        ({"answers": {"risk_threshold": 10**400}}, "risk_threshold"),
        ({"answers": {"number_of_classes": {"a": []}}}, "number_of_classes"),
        ({"answers": {"FP9.9": True}}, "FP9.9"),
        ({"answers": {"FP2.6": "argmax", "decision_rule": "none"}}, "decision_rule"),
        ({"answers": {"number_of_classes": 1001}}, "number_of_classes"),
        ({"answers": {"DG3.4": 1}}, "choices"),
        ({"answers": {}}, "answers"),
        ({}, "answers"),
        ({"answers": {"FP5.1": True}, "revision": 0}, "revision"),
        ({"answers": {"FP5.1": True}, "colour": 1}, "colour"),
    ]
    for body, field in cases:
        refused = post(service, interview, "answers", **body)
        assert refused.status_code == 422, body
        error = error_of(refused)
        assert error["field"] == field, (body, error)
        if "revision" not in body:
            assert "Input should" not in error["message"]
    for choices, field in (({"DG9": "AC"}, "choices"), ({"DG2.1": "AUROC"}, "choices"), ({}, "choices")):
        refused = post(service, interview, "choices", choices=choices)
        assert (refused.status_code, error_of(refused)["field"]) == (422, field)
    assert service.client.get(f"{PATH}/{interview['id']}").json() == interview


def test_interviews_that_do_not_begin(service: Service) -> None:
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({"task": "nothing"}, 404, "task"),
        ({"task": "skin", "class_names": ["a", "b", "c"]}, 422, "class_names"),
        ({"class_names": ["a", "a"]}, 422, "class_names"),
        ({"class_names": ["a", "b"], "answers": {"FP5.1": "what"}}, 422, "class_scores_available"),
        ({"answers": {"N_CLASSES": "1"}}, 422, "number_of_classes"),
    ]
    for known, status, field in cases:
        refused = service.client.post(PATH, json=known)
        assert (refused.status_code, error_of(refused)["field"]) == (status, field), known
    assert service.client.get(PATH).json() == {"interviews": []}


def test_unknown_interviews(service: Service) -> None:
    unknown = f"{PATH}/{UUID(int=7)}"
    answers = [
        service.client.get(unknown),
        service.client.request("DELETE", unknown),
        service.client.post(f"{unknown}/back"),
        service.client.post(f"{unknown}/finish"),
        service.client.post(f"{unknown}/answers", json={"answers": {"FP5.1": True}}),
    ]
    assert [(answer.status_code, error_of(answer)["field"]) for answer in answers] == [(404, "interview")] * 5
    assert service.client.get(f"{PATH}/1").status_code == 422


def test_interviews_are_listed_and_discarded_and_all_of_it_is_in_the_audit_log(service: Service) -> None:
    first, second = started(service), started(service, task="skin")
    listed = service.client.get(PATH).json()["interviews"]
    assert [one["id"] for one in listed] == [second["id"], first["id"]]
    assert "question" not in listed[0]
    assert [one["id"] for one in service.client.get(f"{PATH}?limit=1").json()["interviews"]] == [second["id"]]
    answered(service, first, number_of_classes=2)
    gone = service.client.request("DELETE", f"{PATH}/{first['id']}")
    assert (gone.status_code, gone.content) == (204, b"")
    assert service.client.get(f"{PATH}/{first['id']}").status_code == 404
    log = [entry for entry in service.store.audit.list() if entry.subject == first["id"]]
    assert [entry.action for entry in log] == ["interviews.discard", "interviews.answer", "interviews.start"]
    assert {entry.actor for entry in log} == {"admin-token"}


def test_hostile_costs_are_refused_with_their_field(service: Service) -> None:
    interview = started(service, class_names=["a", "b"])
    for text in (
        "all 1 but a->" + " " * 20_000 + "b",
        "all 1 but " + "a->b=1;" * 5_000,
        "all 1 but " + "x" * 300_000,
        "all 1 but a->b=1,000",
        "all 1 but 0000000001->a=1",
    ):
        refused = post(service, interview, "answers", answers={"costs": text})
        assert (refused.status_code, error_of(refused)["field"]) == (422, "costs"), text[:40]


def test_a_ratio_costs_the_class_of_the_same_request(service: Service) -> None:
    interview = started(service, class_names=["ill", "healthy"])
    first = answered(service, interview, costs="50:1")
    assert first["answers"]["costs"] == [[0, 1], [50, 0]]
    both = answered(service, interview, **{"costs": "50:1", "FP2.6.target_class": "ill"})
    assert both["answers"]["costs"] == [[0, 50], [1, 0]]
    refused = post(service, interview, "answers", answers={"target_value": "150 %"})
    assert "1.5 %" not in error_of(refused)["hint"]
