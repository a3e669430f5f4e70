"""`lifelong performance` on an installation without a running process."""

import json
from collections.abc import Callable

import pytest

from lifelong.commands.common import open_store
from lifelong_core.values.errors import NotFoundError
from tests.unit.performance_samples import comparison


@pytest.fixture
def model(installed: Callable[..., str]) -> str:
    """A model with a comparison in its environment site-a."""
    del installed
    with open_store() as store:
        store.tasks.add("skin", ("benign", "malignant"), [[0, 1], [1, 0]], actor="test")
        made = store.models.add("skin", "skin", kind="external", actor="test")
        store.environments.ensure("site-a", limit=9)
        store.performance.store(made.id, "site-a", comparison())
        return made.reference


def test_statements_warnings_and_a_row_for_each_day(installed: Callable[..., str], model: str) -> None:
    shown = installed("performance", "skin", "site-a")
    for text in (
        f"{model} in site-a, computed 2026-03-10 00:00Z (later labels count after about a minute)",
        "and 0.750 (0.650 to 0.850) on 60 labelled predictions. They disagree (p = 0.003).",
        "Warning: The answered probabilities are not calibrated: too sure.",
        "estimated accuracy",
    ):
        assert text in shown
    flowing = " ".join(shown.split())
    for text in (
        "Expected cost (EC) is 0.093 (0.073 to 0.113) at the stated prevalences (benign 0.98, malignant 0.02),"
        " 1.500 (1.480 to 1.520) at the estimated prevalences (benign 0.65, malignant 0.35) and"
        " 1.760 (1.740 to 1.780) at the realised prevalences (benign 0.60, malignant 0.40), on 360"
        " labelled predictions.",
        "Warning: Expected cost (EC) reaches its threshold 0.2 at the stated prevalences, but misses it at the"
        " realised ones.",
    ):
        assert text in flowing
    rows = [line.split() for line in shown.splitlines() if line.startswith("2026-")]
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        (f"2026-03-0{day}", head, agrees)
        for day, head, agrees in zip("456789", "111222", ["yes"] * 5 + ["no"], strict=True)
    ]


def test_json_holds_the_whole_comparison(installed: Callable[..., str], model: str) -> None:
    document = json.loads(installed("performance", model, "site-a", "--json"))
    assert (document["model"], document["environment"]) == (model, "site-a")
    assert document["days"] == comparison().to_document()["days"]
    assert document["class_mixes"][2] == {
        "label": "EC",
        "mix": "realised",
        "prevalences": {"benign": 0.6, "malignant": 0.4},
        "samples": 360,
        "metric": [1.76, 1.74, 1.78],
        "threshold": 0.2,
        "accepted": False,
    }


def test_a_population_without_one_is_explained(installed: Callable[..., str], model: str) -> None:
    with pytest.raises(NotFoundError, match="no comparison of the performance of skin@1 in default"):
        installed("performance", model)
    with pytest.raises(NotFoundError, match="nowhere"):
        installed("performance", model, "nowhere")


def test_without_a_model_the_populations_are_listed(installed: Callable[..., str], model: str) -> None:
    (line,) = json.loads(installed("performance", "--json"))
    assert (line["model"], line["environment"]) == (model, "site-a")
    assert "They disagree" in line["statements"]
    assert "They disagree" in installed("performance")
