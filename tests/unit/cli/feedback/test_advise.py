"""`lifelong feedback advise` and `plans` on an installation without a running process."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import click
import pytest

from lifelong.commands.common import open_store
from lifelong.commands.connection import Connection
from lifelong.commands.feedback import advise as module
from lifelong.label_import.rows import LabelRow, UnlabelledRow, read_rows
from lifelong_core.entities.jobs import JobAnswer
from lifelong_core.entities.labelling import LabellingPlan
from lifelong_core.operations.labelling_plans import WantedPlan
from lifelong_core.store import NewLabel, Prediction
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError
from tests.unit.store.labelling_samples import add_plan, logged
from tests.unit.store.samples import add_model, add_serving_model

Run = Callable[..., str]


@pytest.fixture
def planned(installed: Run) -> tuple[LabellingPlan, list[Prediction]]:
    """A plan that chose three of six predictions, one of which has a label."""
    del installed
    with open_store() as store:
        model, _ = add_serving_model(store)
        rows = logged(store, 6, model.id, b"a" * 16, b"a" * 16)
        plan = add_plan(store, rows, chosen=[1, 4, 0], labelled=[5])
        store.labels.record([NewLabel(rows[4].id, 2)])
        three = {"value": 0.5, "low": 0.25, "high": 0.75}
        estimate = {
            "labels": 1,
            "confidence": 0.95,
            "labelled": {"EC": three},
            "labels_alone": {"EC": {"value": None, "low": None, "high": None}},
            "label_free": None,
            "notes": ["Only 1 of 3 labels has arrived."],
        }
        store.labelling_plans.note_estimate(plan.id, estimate)
        return plan, rows


def test_plans_are_listed_with_their_progress(
    installed: Run, planned: tuple[LabellingPlan, list[Prediction]]
) -> None:
    plan, _ = planned
    listed = installed("feedback", "plans")
    assert str(plan.id) in listed
    assert "1 of 3" in listed
    (document,) = json.loads(installed("feedback", "plans", "--json", "--model", "dermatology@1"))
    assert document["progress"] == {"chosen": 3, "labelled": 1}
    assert installed("feedback", "plans", "--environment", "site-b") == "There is no labelling plan.\n"


def test_a_plan_is_shown_and_written_as_a_file(
    installed: Run, planned: tuple[LabellingPlan, list[Prediction]], tmp_path: Path
) -> None:
    plan, rows = planned
    file = tmp_path / "labels-to-get.csv"
    shown = installed("feedback", "plans", str(plan.id), "--output", str(file))
    for text in (
        "dermatology@1 in site-a, head 1",
        "6 predictions from",
        "3, of which 1 have a label now",
        "0.1 with these labels, 0.15 with labels at random, 0.3 without labels",
        "with 1 labels     EC 0.5 (0.25 to 0.75)",
        "labels alone      EC undefined",
        "Only 1 of 3 labels has arrived.",
        f"3 predictions to label: {file}",
    ):
        assert text in shown
    lines = list(csv.DictReader(file.read_text().splitlines()))
    assert [line["prediction_id"] for line in lines] == [str(rows[index].id) for index in (1, 4, 0)]
    assert [line["label"] for line in lines] == ["", "2", ""]
    assert [line["group"] for line in lines] == ["0", "", "0"]
    document = json.loads(installed("feedback", "plans", str(plan.id), "--json"))
    assert [one["propensity"] for one in document["predictions"]] == [0.25] * 3
    with pytest.raises(NotFoundError):
        installed("feedback", "plans", "00000000-0000-7000-8000-000000000000")
    with pytest.raises(click.UsageError):
        module.plans.main(["--output", "x.csv"], standalone_mode=False)


def test_the_file_with_labels_filled_in_can_be_imported(
    installed: Run, planned: tuple[LabellingPlan, list[Prediction]], tmp_path: Path
) -> None:
    plan, rows = planned
    file = tmp_path / "plan.csv"
    installed("feedback", "plans", str(plan.id), "--output", str(file))
    filled = file.read_text().replace(f"{rows[1].id},,", f"{rows[1].id},malignant,")
    one, two, three = read_rows(BytesIO(filled.encode()))
    assert isinstance(one, LabelRow)
    assert one.document == {"prediction_id": str(rows[1].id), "label": "malignant", "propensity": 0.25}
    assert isinstance(two, LabelRow)
    assert two.document["label"] in (2, "2")
    assert isinstance(three, UnlabelledRow)


def test_advise_submits_the_job_and_shows_its_plan(
    installed: Run,
    planned: tuple[LabellingPlan, list[Prediction]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    plan, _ = planned
    asked: list[WantedPlan] = []

    def done(connection: Connection, call: WantedPlan, timeout: object) -> JobAnswer:
        del timeout
        asked.append(call)
        job = connection.send(call)
        return replace(job, result={"plan": str(plan.id)})

    monkeypatch.setattr(module, "run_operation", done)
    file = tmp_path / "plan.csv"
    shown = installed(
        "feedback",
        "advise",
        "dermatology",
        "site-a",
        "--size",
        "3",
        "--window-age",
        "30d",
        "--output",
        str(file),
    )
    expected = WantedPlan(model="dermatology", environment="site-a", size=3, window_seconds=30 * 86400.0)
    assert asked == [expected]
    assert str(plan.id) in shown
    assert len(file.read_text().splitlines()) == 4


def test_what_cannot_be_planned_is_refused_before_a_job_is_submitted(
    installed: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store() as store:
        uncalibrated = add_model(store, "second")
        logged(store, 1, uncalibrated.id)
        add_serving_model(store)
    arguments = ("feedback", "advise")
    with pytest.raises(UnavailableError, match="no monitor runs"):
        installed(*arguments, "dermatology@1", "site-a", "--size", "5")
    monkeypatch.setattr("lifelong.commands.jobs.expect_monitor", lambda _: None)
    with pytest.raises(ConflictError, match="no calibration set"):
        installed(*arguments, "second@1", "site-a", "--size", "5")
    with pytest.raises(NotFoundError):
        installed(*arguments, "second@1", "site-b", "--size", "5")
    with pytest.raises(NotFoundError):
        installed(*arguments, "third@1", "site-a", "--size", "5")
    with pytest.raises(InvalidInputError) as refused:
        installed(*arguments, "second@1", "site-a", "--size", "10001")
    assert refused.value.field == "size"
    with open_store() as store:
        assert store.jobs.list() == []
