"""Labels to get, in the console."""

import csv

import pytest

from lifelong_core.operations.labelling_plans import plan_lines
from lifelong_core.store import NewLabel, new_prediction_id
from lifelong_service.console.labels import SCALE, plan_view
from tests.unit.service.conftest import Service
from tests.unit.service.consoles import Console
from tests.unit.service.routes.admin.test_labelling_plans import ESTIMATE, plan
from tests.unit.store.labelling_samples import add_plan

PAGE = "/console/labels"


@pytest.fixture
def console(service: Service) -> Console:
    return Console(service)


def test_without_a_plan_there_is_a_form_for_one(console: Console) -> None:
    shown = console.get(PAGE).text
    assert "There is no plan yet." in shown
    assert "<option>linear@1</option>" in shown
    assert 'value="100"' in shown
    assert f'href="{PAGE}"' in shown


def test_each_population_shows_its_newest_plan_with_progress_and_estimate(console: Console) -> None:
    made, rows = plan(console.service)
    shown = console.get(PAGE).text
    for text in (
        "linear@1 in site-<wbr>a",
        "1 of 3 labels",
        "No estimate yet",
        "6 predictions",
        "0.150 with as many labels",
    ):
        assert text in shown
    console.service.store.labelling_plans.note_estimate(made.id, ESTIMATE)
    shown = console.get(PAGE).text
    for text in (
        "95 % intervals, with 1 label (",
        "0.250 to 0.750",
        "Labels alone",
        "Only 1 of 3 labels has arrived.",
        f'href="{PAGE}/{made.id}.csv"',
        '<path d="M6.0 8H194.0"/>',
    ):
        assert text in shown
    assert "No estimate yet" not in shown
    newer = add_plan(console.service.store, rows, chosen=[2])
    shown = console.get(PAGE).text
    assert f"{PAGE}/{newer.id}.csv" in shown
    assert f"{PAGE}/{made.id}.csv" not in shown


def test_the_file_of_a_plan_is_downloaded(console: Console) -> None:
    made, rows = plan(console.service)
    answer = console.get(f"{PAGE}/{made.id}.csv")
    assert answer.headers["content-disposition"].startswith("attachment")
    lines = list(csv.DictReader(answer.text.splitlines()))
    assert [line["prediction_id"] for line in lines] == [str(rows[index].id) for index in (1, 4, 0)]
    assert console.get(f"{PAGE}/{new_prediction_id()}.csv").status_code == 404


def test_the_form_submits_the_job_and_leads_to_its_page(console: Console) -> None:
    sent = console.post(PAGE, {"model": "linear@1", "environment": "default", "size": "50"})
    (job,) = console.service.store.jobs.list("labelling_plan")
    assert (sent.status_code, sent.headers["Location"]) == (303, f"/console/jobs/{job.id}")
    assert (job.payload["model"], job.payload["environment"], job.payload["size"]) == (
        "linear@1",
        "default",
        50,
    )
    assert console.get(sent.headers["Location"]).status_code == 200


def test_a_wrong_form_is_shown_again(console: Console) -> None:
    for wrong in (
        {"size": "0"},
        {"size": "<b>"},
        {"size": ""},
        {"size": "10001"},
        {"environment": "nowhere"},
        {"model": "other"},
    ):
        answer = console.post(PAGE, {"model": "linear@1", "environment": "default", "size": "5"} | wrong)
        assert answer.status_code in (404, 422)
        assert 'role="alert"' in answer.text
        assert "<b>" not in answer.text
        assert console.service.store.jobs.list("labelling_plan") == []


def test_a_reader_sees_plans_and_no_form(console: Console) -> None:
    plan(console.service)
    reader = Console(console.service, scope="read")
    shown = reader.get(PAGE).text
    assert "1 of 3 labels" in shown
    assert "New plan" not in shown
    assert reader.post(PAGE, {"model": "linear@1", "environment": "default", "size": "5"}).status_code == 403


def test_intervals_of_all_methods_share_one_scale(console: Console) -> None:
    store = console.service.store
    made, rows = plan(console.service)
    store.labels.record([NewLabel(rows[1].id, 0)])
    wide = {"value": 1.0, "low": 0.0, "high": 2.0}
    narrow = {"value": 1.0, "low": 0.5, "high": 1.5}
    single = {"value": 0.5, "low": None, "high": None}
    estimate = ESTIMATE | {"labelled": {"EC": narrow, "AC": single}, "labels_alone": {"EC": wide}}
    store.labelling_plans.note_estimate(made.id, estimate)
    found = store.labelling_plans.get(made.id)
    (line,) = plan_lines(store, [found])
    view = plan_view(line)
    cost, accuracy = dict(view["metrics"])["Expected cost"], dict(view["metrics"])["Accuracy"]
    assert [(row.begin, row.at, row.end) for row in cost] == [(53, 100, 147), (6, 100, 194)]
    assert [row.width for row in cost] == [1, 2]
    assert [(row.begin, row.at, row.end, row.width) for row in accuracy] == [(None, SCALE / 2, None, None)]
    assert view["fraction"] == pytest.approx(2 / 3)
