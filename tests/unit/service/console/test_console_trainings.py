"""Trainings in the console: the list, one training with its curves, its recipe as a file, and its report."""

from uuid import uuid4

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits
from lifelong_core.develop.training.recipe import Optimisation, Recipe
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.console.trainings import charts_of
from tests.unit.develop.training.results import make_result
from tests.unit.service.conftest import Service
from tests.unit.service.consoles import Console

RECIPE = Recipe(
    scenario="architecture",
    source="moles",
    architecture="resnet10t",
    image_size=32,
    optimisation=Optimisation(learning_rate=0.01),
)
REPORT = (
    b'{"current": {"reference": "linear@1"}, "verdict": {"advice": "promote", "headline": "it is better"}}'
)
"""The part of a promotion report that lists show."""


@pytest.fixture
def console(service: Service) -> Console:
    return Console(service)


def record(service: Service) -> str:
    classes = len(service.store.tasks.get("skin").class_names)
    labels = np.arange(20 * classes) % classes
    return service.store.trainings.record(
        "skin",
        "trained",
        onnx=b"graph",
        preprocessing=Preprocessing(),
        recipe=RECIPE,
        result=make_result(RECIPE).to_json().encode(),
        calibration=LabeledLogits(2.0 * np.eye(classes)[labels], labels),
        test_set=b"test",
        job_id=uuid4(),
        actor="ann",
    ).reference


def test_a_training_is_listed_and_shown_with_its_curves(console: Console) -> None:
    assert "No model was trained here." in console.get("/console/trainings").text
    model = record(console.service)
    assert f'href="/console/trainings/{model}"' in console.get("/console/trainings").text
    shown = console.get(f"/console/trainings/{model}").text
    for text in (
        "architecture from moles",
        "It was not evaluated.",
        "Loss, training; dashed: best epoch, 3",
        "Balanced accuracy on the validation split",
        "learning rate 0.01, balanced sampling",
        "deleted after its retention time",
        "torch 2.13.0",
    ):
        assert text in shown
    assert "Promotion report" not in shown
    assert shown.count("<polyline") == 3
    exported = console.get(f"/console/trainings/{model}/recipe.json")
    assert Recipe.from_json(exported.text) == RECIPE
    assert "attachment" in exported.headers["content-disposition"]


def test_the_report_of_a_training_is_a_page(console: Console) -> None:
    model = record(console.service)
    job = console.service.store.trainings.get(model).job_id
    assert console.get(f"/console/models/{model}/reports/{job}").status_code == 404
    console.service.store.trainings.put_report(
        model, test_set=b"both", report=REPORT, page=b"<h1>Promotion</h1>", actor="ann"
    )
    assert "Promotion report" in console.get(f"/console/trainings/{model}").text
    report = console.get(f"/console/models/{model}/reports/{job}")
    assert report.text == "<h1>Promotion</h1>"
    assert "default-src 'none'" in report.headers["content-security-policy"]


def test_a_model_that_was_not_trained_here_has_no_page(console: Console) -> None:
    assert console.get("/console/trainings/linear@1").status_code == 404


def test_curves_fill_the_chart_from_the_first_to_the_last_epoch() -> None:
    loss, accuracy = charts_of(make_result(RECIPE, epochs=4))
    assert [line.name for line in loss.lines] == ["training", "validation"]
    assert (loss.low, loss.high, loss.last) == ("0.25", "1.2", 4)
    first, *_, last = loss.lines[1].points.split()
    assert first == "44.0,8.0"
    assert last.startswith("552.0,")
    assert accuracy.best == 552.0
    assert charts_of(make_result(RECIPE, epochs=1)) == []
