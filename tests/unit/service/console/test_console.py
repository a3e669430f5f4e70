"""The console over HTTP: an interview by its forms, and invalid forms."""

import html
import json
import re
from collections.abc import Callable
from uuid import UUID

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.design import recommend
from lifelong_core.design.interview.interview import start_interview
from lifelong_core.store.schema import tables
from tests.unit.service.conftest import CLASS_NAMES, Service
from tests.unit.service.consoles import OURS, Console, with_task
from tests.unit.service.routes.admin.test_interviews import ANSWERS, OPEN_CHOICE


@pytest.fixture
def console(serve: Callable[..., Service]) -> Console:
    return with_task(serve())


def test_an_interview_by_its_forms_leads_to_the_metrics(console: Console) -> None:
    begun = console.post("/console/interviews", {"task": "skin"})
    path, asked = begun.headers["Location"], []
    while "result" not in (answer := console.get(path)).headers.get("Location", ""):
        field = re.search(r'name="field" value="(\w+)"', answer.text)
        asked.append(field[1])
        sent = console.send(path.partition("?")[0], "answers", field=field[1], **filled(field[1]))
        assert sent.status_code == 303, sent.text
        path = sent.headers["Location"]  # of the next question, for which browsers have a way back
        assert path.partition("?")[0] == begun.headers["Location"]
    path = begun.headers["Location"]
    assert asked[0] == "class_scores_available"  # the names of the task's classes say how many there are
    assert sorted(asked) == sorted(ANSWERS)
    expected = recommend(console.record(path).interview.fingerprint).model_copy(
        update={"class_names": CLASS_NAMES}
    )
    shown = console.get(answer.headers["Location"])
    for metric in expected.metrics:
        assert f"<strong>{metric.label}</strong>" in shown.text
    assert "Why not others" in shown.text
    download = console.get(f"{path}/recommendation.json")
    assert json.loads(download.text) == expected.to_document()
    assert "attachment" in download.headers["Content-Disposition"]


def filled(field: str) -> dict[str, str]:
    """The inputs of a question's form, as ANSWERS answers it."""
    value = ANSWERS[field]
    if field == "costs":
        return {f"value-{i}-{j}": str(cost) for i, row in enumerate(value) for j, cost in enumerate(row)}
    if field == "target_prevalences":
        return {f"value-{i}": f"{100 * share:g} %" for i, share in enumerate(value)}
    return {"value": str(value).lower()}


def test_metrics_are_attached_with_their_thresholds(service: Service) -> None:
    console = Console(service)
    path = console.begin(**ANSWERS)
    console.scope = "admin"
    page = console.get(f"{path}/result").text
    labels = re.findall(r'<label for="(threshold-\d+)">([^<]+)</label>', page)
    names = {label: name for name, label in labels}
    form = {"task": "skin", names["EC"]: "0.4", names["AUROC"]: "85 %", f"{names['AUROC']}-class": "2"}
    form[f"{names['AUROC']}-by"] = "estimate"
    answer = console.send(path, "attach", **form)
    assert answer.status_code == 303, answer.text
    current = console.service.store.recommendations.current("skin")
    assert [(one.metric, one.value, one.class_index, one.by) for one in current.thresholds] == [
        ("EC", 0.4, None, "interval"),
        ("AUROC", 0.85, 2, "estimate"),
    ]
    assert console.service.store.tasks.get("skin").costs.tolist() == ANSWERS["costs"]
    assert console.get(f"{path}/attach").headers["location"] == f"{path}/result"
    page = console.get(f"{path}/result").text
    assert "Attached to <strong>skin</strong>" in page
    # Attaching again keeps the thresholds, unless they are changed.
    assert all(f'value="{value}"' in page for value in ("0.4", "0.85"))
    assert '<option value="estimate" selected>' in page
    assert "The default head of linear@1 (version 1) still has other costs" in page
    assert "Attach the recommendation with new heads" in page
    assert "version 1, by admin-token" in console.get("/console/start").text
    heads = console.service.store.heads
    heads.publish("linear", heads.get("linear", 1).head, environment="clinic", actor="test")
    heads.pin("linear", environment="clinic", reason="study", actor="ann")
    refitted = console.send(path, "attach", task="skin", refit="yes")
    assert refitted.status_code == 303, refitted.text
    assert heads.list("linear")[-1].head.costs.tolist() == ANSWERS["costs"]
    page = console.get(f"{path}/result").text
    assert "With the costs and the rule of the task: the default head (version 3)." in page
    assert "The head of clinic of linear@1 (version 2, pinned) still has other costs" in page
    assert "Unpin the pinned heads" in page


def test_costs_that_reward_errors_are_attached_only_with_a_reason(console: Console) -> None:
    gains = [[1, 0, 0], [0, 1, 0], [0, 0, 2]]
    path = console.begin(**ANSWERS | {"costs": gains})
    console.scope = "admin"
    assert 'name="reason"' not in console.get(f"{path}/result").text
    refused = console.send(path, "attach", task="skin")
    assert (refused.status_code, 'name="reason"' in refused.text) == (422, True)
    assert console.send(path, "attach", task="skin", reason="a test").status_code == 303
    assert console.service.store.tasks.get("skin").costs.tolist() == gains


def test_thresholds_that_cannot_be_read_keep_what_was_typed(console: Console) -> None:
    path = console.begin(**ANSWERS)
    console.scope = "admin"
    for wrong in ("much", "1e999"):
        answer = console.send(path, "attach", task="skin", **{"threshold-0": wrong, "threshold-1": "0.5"})
        assert answer.status_code == 422
        assert re.search(
            rf'name="threshold-0" value="{wrong}"[^>]*aria-invalid="true"[^>]*autofocus', answer.text
        )
        assert 'name="threshold-1" value="0.5"' in answer.text
    assert console.send(path, "attach", task="elsewhere").status_code == 422
    assert console.send(path, "attach").status_code == 422
    assert console.service.store.recommendations.current("skin") is None


def test_metrics_are_attached_only_where_the_classes_are_the_same(console: Console) -> None:
    """What was said of a class would be taken for another's."""
    turned = start_interview(class_names=CLASS_NAMES[::-1], answers=ANSWERS)
    record = console.service.store.interviews.start(turned, task=None, actor="somebody")
    path = f"/console/interviews/{record.id}"
    console.scope = "admin"
    assert "There is no task with these classes." in console.get(f"{path}/result").text
    assert console.send(path, "attach", task="skin").status_code == 422
    assert console.service.store.recommendations.current("skin") is None


def test_an_open_choice_is_explained_made_and_taken_back(console: Console) -> None:
    path = console.begin(**OPEN_CHOICE)
    page = console.get(path).text
    assert 'name="guide" value="DG3.4"' in page
    assert "For:" in page
    assert "Against:" in page
    console.scope = "admin"
    result = console.get(f"{path}/result").text
    assert "A choice is open, and its metrics are missing" in result
    assert "Decide the open choice first" in result
    assert console.send(path, "choices", guide="DG3.4").status_code == 422
    assert console.send(path, "choices", guide="DG3.4", option="TPR").status_code == 303
    assert console.get(path).headers["Location"] == f"{path}/result"
    assert "You decided for it." in console.get(f"{path}/result").text
    again = console.get(f"{path}?item=DG3.4").text
    assert re.search(r'value="TPR"\s+required checked\s+autofocus', again)
    assert console.send(path, "choices", guide="DG3.4", withdraw="yes").status_code == 303
    assert console.record(path).interview.stage == "choices"
    assert console.send(path, "choices", guide="DG9", option="TPR").status_code == 404


def test_a_contradiction_is_explained_and_resolved_by_a_button(console: Console) -> None:
    path = console.begin(decision_rule="target_value")
    page = console.get(path).text
    assert "With three or more classes there is no such cut-off." in page
    assert "Choose another decision rule." in page
    contradiction = {"contradiction": "target_value_with_many_classes", "resolution": "0"}
    assert console.send(path, "resolve", **contradiction).status_code == 303
    assert console.record(path).interview.contradictions == ()
    assert console.send(path, "resolve", **contradiction).status_code == 404


def test_answers_are_changed_and_taken_back(console: Console) -> None:
    path = console.begin(class_scores_available=True, decision_rule="argmax")
    page = console.get(path).text
    assert f'href="{path}?item=decision_rule">Back</a>' in page
    earlier = console.get(f"{path}?item=decision_rule").text
    assert re.search(r'value="argmax" required\s+checked autofocus', earlier)
    assert f'href="{path}?item=class_scores_available">Back</a>' in earlier
    console.send(path, "answers", field="decision_rule", value="none")
    assert console.record(path).interview.fingerprint.decision_rule == "none"
    console.send(path, "withdraw", field="decision_rule")
    assert console.record(path).interview.question.field == "decision_rule"


UNREADABLE: list[tuple[str, dict[str, str], str | None, str]] = [
    ("decision_rule", {}, None, "Choose one of the answers."),
    ("decision_rule", {"value": "majority"}, None, "Choose one of the answers."),
    ("target_class", {"value": "3"}, None, "Choose one of the classes."),
    ("risk_threshold", {"value": ""}, "value", "There is no answer yet."),
    ("risk_threshold", {"value": "10 percent"}, "value", "Expected a number"),
    ("risk_threshold", {"value": "1.5"}, "value", "below 1"),
    ("grouping_variable", {"value": "x" * 201}, "value", "at most 200"),
    (
        "target_prevalences",
        {"value-0": "0.5", "value-1": "", "value-2": "0"},
        "value-1",
        "for unclear is missing",
    ),
    ("target_prevalences", {"value-0": "0.5", "value-1": "0", "value-2": "0"}, None, "must sum to 1"),
    ("costs", {"value-0-0": "0", "value-0-1": "x"}, "value-0-1", "unclear, where benign is true"),
    (
        "costs",
        {f"value-{i}-{j}": "1" for i in range(3) for j in range(3)} | {"value-0-0": "1e999"},
        None,
        "finite number",
    ),
]
"""Field, what is sent, the input at fault where there are several, and what is said."""


def test_what_cannot_be_read_is_shown_again_with_a_message(console: Console) -> None:
    path = console.begin()
    for field, form, wrong, words in UNREADABLE:
        answer = console.send(path, "answers", field=field, **form)
        assert answer.status_code == 422, field
        text = html.unescape(answer.text)
        assert 'id="error" role="alert"' in text
        assert words in text
        assert "autofocus" in text
        for name, typed in form.items():
            if field not in ("decision_rule", "target_class"):
                assert f'name="{name}" value="{typed}"' in text
        if wrong is not None:
            assert re.search(rf'id="{wrong}"[^>]*autofocus[^>]*aria-invalid="true"[^>]*error"', text)
    assert console.record(path).revision == 1


def test_who_answers_what_has_changed_meanwhile_is_told(console: Console) -> None:
    path = console.begin()
    form = {"field": "class_scores_available", "value": "true", "revision": "1"}
    assert console.post(f"{path}/answers", form).status_code == 303
    other = console.post(f"{path}/answers", form | {"value": "false"})
    assert other.status_code == 409
    assert "Your answer is not saved yet" in other.text
    assert re.search(r'value="false" required\s+checked', other.text)
    assert 'name="revision" value="2"' in other.text
    twice = console.post(f"{path}/answers", form)
    assert twice.headers["Location"] == f"{path}?item=decision_rule"
    assert console.post(f"{path}/resolve", form).status_code == 409
    console.scope = "admin"
    assert "operate-token has changed this interview" in console.post(f"{path}/answers", form).text
    assert console.record(path).revision == 2
    unfinished = console.send(path, "attach", task="skin")
    assert unfinished.status_code == 409
    assert "The interview has open questions" in unfinished.text


def test_whatever_people_write_is_text(console: Console) -> None:
    evil = '"><script>alert(1)</script>'
    begun = console.post("/console/interviews", {"classes": f"{evil}, fine"})
    path = begun.headers["Location"]
    console.send(path, "answers", field="grouping_variable", value=evil)
    for page in (
        "/console/start",
        path,
        f"{path}?item=grouping_variable",
        f"{path}?item={evil}",
        f"/console/{evil}",
    ):
        text = console.get(page).text
        assert "<script" not in text
        assert "&lt;script" in text


def test_a_token_that_may_only_look_sees_no_forms(console: Console) -> None:
    path, done = console.begin(), console.begin(**ANSWERS)
    console.scope = "read"
    for page in (
        "/console/start",
        "/console/interviews",
        path,
        f"{done}/result",
        f"{done}?item=decision_rule",
    ):
        text = console.get(page).text
        assert re.findall(r"<button[^>]*>([^<]*)</button>", text) == ["Log out"], page
    assert "needs the scope <code>operate</code>" in console.get("/console/start").text


def test_names_that_are_none_are_explained(console: Console) -> None:
    answer = console.post("/console/interviews", {"classes": "benign, benign"})
    assert answer.status_code == 422
    assert "at least two different names" in answer.text
    assert re.search(r'value="benign, benign"[^>]*aria-invalid="true"[^>]*autofocus', answer.text)
    assert console.post("/console/interviews", {"task": "nothing"}).status_code == 404
    unnamed = console.post("/console/interviews", {}).headers["Location"]
    assert "How many classes can an image be given?" in console.get(unnamed).text


def test_an_interview_is_discarded(console: Console) -> None:
    path = console.begin()
    assert path in console.get("/console/interviews").text
    assert console.post(f"{path}/discard").headers["Location"] == "/console/interviews"
    gone = console.get(path)
    assert gone.status_code == 404
    assert "There is no interview" in gone.text


def test_pages_that_are_not_there_say_so(console: Console) -> None:
    path = console.begin()
    for missing in (
        "/console/nothing",
        "/console/interviews/1",
        f"{path}?item=nothing",
        f"{path}?item=DG2.1",
        f"{path}/nothing",
    ):
        answer = console.get(missing)
        assert answer.status_code == 404, missing
        assert "To the start" in answer.text
    assert console.get(f"{path}/result").headers["Location"] == path
    assert console.get(f"{path}?item=a&item=b").status_code == 422
    json_body = console.service.client.post(f"{path}/answers", json={}, headers=console.headers() | OURS)
    assert json_body.status_code == 415
    assert console.get(f"{path}/recommendation.json").status_code == 422


def test_what_fails_inside_gets_a_page_without_details(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("lifelong_service.console.interview.interviews.summary", fail)
    console.begin()
    answer = console.get("/console/start")
    assert answer.status_code == 500
    assert "Tell the operators" in answer.text
    assert "secret" not in answer.text


def test_many_classes_are_pasted_from_a_table(console: Console) -> None:
    count = 21
    path = console.begin(number_of_classes=count, unequal_severity=True, costs_available=True)
    assert '<textarea id="value"' in console.get(f"{path}?item=costs").text
    rows = [[float(row != column) for column in range(count)] for row in range(count)]
    typed = "\n".join(" ".join(f"{cost:g}" for cost in row) for row in rows)
    assert console.send(path, "answers", field="costs", value=typed).status_code == 303
    assert [list(row) for row in console.record(path).interview.fingerprint.costs] == rows


def test_one_of_many_classes_is_picked_from_a_list(console: Console) -> None:
    names = [f"class {letter}" for letter in "abcdefghijklmnopqrst"]
    path = begun(console, names)
    page = console.get(f"{path}?item=target_class").text
    assert re.findall(r"<option [^>]*>([^<]+)</option>", page) == ["choose one of 20", *names]
    assert re.search(r'<select id="value" name="value" required autofocus', page)
    for wrong in ("", "20", "class c"):
        answer = console.send(path, "answers", field="target_class", value=wrong)
        assert answer.status_code == 422
        assert 'aria-invalid="true"' in answer.text
    assert console.send(path, "answers", field="target_class", value="13").status_code == 303
    assert '<option value="13" selected>class n</option>' in console.get(f"{path}?item=target_class").text


def begun(console: Console, names: list[str]) -> str:
    return console.post("/console/interviews", {"classes": ", ".join(names)}).headers["Location"]


def test_who_types_numbers_for_many_classes_is_told_their_order(console: Console) -> None:
    path = begun(console, [f"class {k}" for k in range(21)])
    for field, said in (
        ("class_weights", "21 numbers, one for each class"),
        ("costs", "A line for each true"),
    ):
        page = console.get(f"{path}?item={field}").text
        assert said in page
        assert "in this order: class 0, class 1" in page


def test_a_thousand_classes_have_pages_that_one_can_read(console: Console) -> None:
    names = [f"class {k}" for k in range(1000)]
    path = begun(console, names)
    numbers = {"class_weights": [1.0] * 999 + [2.0], "target_prevalences": [0.001] * 1000}
    interview = console.record(path).interview.with_answers(numbers | WITHOUT_COSTS)
    record = console.service.store.interviews.start(interview, task=None, actor="somebody")
    console.service.store.tasks.add("many", names, np.ones((1000, 1000)) - np.eye(1000), actor="test")
    console.scope = "admin"
    path = f"/console/interviews/{record.id}"
    result = console.get(f"{path}/result").text
    assert "of 1000 classes, as answered" in result
    for page in ("/console/start", "/console/interviews", f"{path}?item=costs"):
        shown = console.get(page).text
        assert "class 500" not in shown
        assert len(shown) < 20_000
    assert "and 988 others" in console.get("/console/start").text
    assert "1000 numbers" in console.get(f"{path}?item=costs").text
    assert len(result) < 60_000
    answer = console.post("/console/interviews", {"classes": ", ".join([*names, "one more"])})
    assert answer.status_code == 422
    assert "at most 1000 names" in answer.text


WITHOUT_COSTS = {
    "class_scores_available": True,
    "decision_rule": "argmax",
    "unequal_severity": True,
    "costs_available": False,
    "unequal_interest": True,
    "importance_mismatch": True,
    "prevalences_representative": False,
    "target_prevalences_known": True,
    "calibration_assessment": False,
    "dependent_cases": False,
    "invalid_outputs": False,
}


def test_a_table_that_is_too_large_to_be_shown_is_given_anew(console: Console) -> None:
    costs = [[float(i + j) * (i != j) for j in range(101)] for i in range(101)]
    path = console.begin(number_of_classes=101, unequal_severity=True, costs_available=True, costs=costs)
    page = console.get(f"{path}?item=costs").text
    assert "too many to be shown" in page
    assert len(page) < 20_000
    assert "101 rows of 101 numbers" in page


def test_what_depends_on_the_classes_can_be_asked_before_they_are_counted(console: Console) -> None:
    path = console.begin(**ANSWERS, number_of_classes=3, target_class=1)
    console.send(path, "withdraw", field="number_of_classes")
    for field, typed in (("costs", "0, 1; 2, 0"), ("target_prevalences", "0.5, 0.5"), ("target_class", "0")):
        page = console.get(f"{path}?item={field}")
        assert page.status_code == 200, field
        assert 'name="value"' in page.text
        assert console.send(path, "answers", field=field, value=typed).status_code == 303
    assert console.record(path).interview.fingerprint.costs == ((0, 1), (2, 0))


def test_what_is_damaged_hides_nothing_else(service: Service) -> None:
    console = Console(service)
    damaged, fine = console.begin(), console.begin(**ANSWERS)
    store = console.service.store
    store.recommendations.attach("skin", console.record(fine).interview.recommendation(), actor="somebody")
    with store.database.write() as connection:
        connection.exec_driver_sql("UPDATE recommendations SET document = '{}'")
        rows = tables.interviews
        change = sa.update(rows).where(rows.c.id == UUID(damaged.split("/")[3]))
        connection.execute(change.values(document='{"schema_version": 2}'))
    for path in ("/console/start", "/console/interviews"):
        page = console.get(path)
        assert page.status_code == 200, page.text
        assert page.text.count("cannot be read") == (2 if path == "/console/start" else 1)
        assert f'href="{fine}/result"' in page.text
    listed = service.client.get("/v1/admin/interviews").json()["interviews"]
    assert [(one["stage"], one["class_names"] is None) for one in listed] == [
        ("complete", False),
        ("damaged", True),
    ]
    assert console.get(damaged).status_code == 503
    assert console.post(f"{damaged}/discard").status_code == 303
    assert "cannot be read" not in console.get("/console/interviews").text


def test_a_column_for_abstaining(console: Console) -> None:
    path = console.begin(unequal_severity=True, costs_available=True)
    plain, wide = (console.get(f"{path}?item=costs{more}").text for more in ("", "&columns=abstain"))
    assert "value-0-3" not in plain
    assert 'name="value-0-3"' in wide
    console.send(path, "answers", field="costs", **filled("costs"))
    assert 'name="value-2-3" value="0.5"' in console.get(f"{path}?item=costs").text


def test_a_rule_fills_in_the_table_of_costs_and_saves_nothing(console: Console) -> None:
    """The page is to be looked through, and its error names the rule."""
    path = console.begin(**{item: ANSWERS[item] for item in ANSWERS if item != "costs"})
    before = console.record(path)
    filled_in = console.send(
        path, "answers", field="costs", fill="1", rule="all 1 but malignant -> benign = 50"
    )
    assert filled_in.status_code == 200
    assert re.search(r'name="value-2-0" value="50"', filled_in.text)
    assert re.search(r'name="value-0-2" value="1"', filled_in.text)
    assert "not saved yet" in filled_in.text
    assert "and press Next." in filled_in.text
    assert '<button class="primary">Next</button>' in filled_in.text
    assert console.record(path) == before
    wrong = console.send(path, "answers", field="costs", fill="1", rule="all 1 but wart -> benign = 50")
    assert wrong.status_code == 422
    assert "is none of the classes" in wrong.text
    assert "all 1 but wart" in wrong.text
    assert "The rule or table: &#39;wart&#39; is none of the classes." in wrong.text
    assert wrong.text.count('id="error"') == 1
    assert re.search(r'<textarea id="rule"[^>]*rules error"[^>]*autofocus aria-invalid="true"', wrong.text)
    assert wrong.text.count("autofocus") == 1
    pasted = console.send(path, "answers", field="costs", fill="1", rule="0\t1\t2\n1\t0\t1\n2,5\t1\t0")
    assert re.search(r'name="value-2-0" value="2.5"', pasted.text)
    console.send(path, "answers", field="costs", **filled("costs"))
    again = console.send(path, "answers", field="costs", fill="1", rule="linear")
    assert "and press Save." in again.text
    assert '<button class="primary">Save</button>' in again.text


def test_costs_of_twenty_classes_are_a_table(console: Console) -> None:
    path = begun(console, [f"finding {k}" for k in range(20)]).partition("?")[0]
    page = console.get(f"{path}?item=costs").text
    assert page.count('name="value-') == 400
    filled_in = console.send(path, "answers", field="costs", fill="1", rule="quadratic")
    values = dict(re.findall(r'name="(value-\d+-\d+)" value="([^"]*)"', filled_in.text))
    assert values["value-0-19"] == "361"
    assert console.send(path, "answers", field="costs", **values).status_code == 303
    assert console.record(path).interview.fingerprint.costs[19][0] == 361


def test_the_addresses_of_forms_lead_back_to_the_interview(console: Console) -> None:
    """Browsers show them after a form, and load them again."""
    path = console.begin()
    for form in ("answers", "choices", "resolve", "withdraw"):
        answer = console.get(f"{path}/{form}")
        assert (answer.status_code, answer.headers["Location"]) == (303, path)


def test_a_number_that_is_none_is_told_how_to_write_one(console: Console) -> None:
    path = console.begin()
    for field, hint in (
        ("costs", "such as 0.5 or 20"),
        ("class_weights", "such as 0.5 or 20"),
        ("target_prevalences", "Write 0.95, or 95 %"),
    ):
        wrong = {"value-0-0": "x"} if field == "costs" else {"value-0": "x"}
        answer = console.send(path, "answers", field=field, **wrong)
        assert answer.status_code == 422
        assert hint in answer.text
        assert ("95 %" in answer.text) == (field == "target_prevalences")


def test_thresholds_in_force_are_shown_where_attaching_replaces_them(console: Console) -> None:
    path = console.begin(**ANSWERS)
    console.scope = "admin"
    assert "In force for skin" not in console.get(f"{path}/result").text
    console.send(path, "attach", task="skin", **{"threshold-0": "0.4"})
    assert "In force for skin: EC 0.4. Attaching again replaces them" in console.get(f"{path}/result").text
