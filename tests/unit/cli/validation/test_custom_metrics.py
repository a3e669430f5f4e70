"""`lifelong validate --metric MODULE:NAME`, as a person calls it."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from lifelong.cli import cli
from lifelong_core.values.errors import InvalidInputError
from tests.unit.design.validations import recommending, simulated

MODULE = """
from lifelong_core.metrics import CustomMetric

def right(labels, decisions):
    return (labels == decisions).mean()

RIGHT = CustomMetric(
    acronym="RIGHT", name="Share right", function=right, meaning="How often it is right.", orientation="up",
    needs=("labels", "decisions"), bounds=(0, 1),
)
"""


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Labelled data, a recommendation, and modules in the working directory."""
    monkeypatch.chdir(tmp_path)
    labels, probabilities = simulated(60, 3)
    np.savez("test.npz", labels=labels, probabilities=probabilities)
    Path("found.json").write_text(recommending("AC").to_json())
    Path("users_metrics.py").write_text(MODULE)
    Path("users_mistake.py").write_text(MODULE.replace('"RIGHT", name', '"BA", name'))
    Path("users_error.py").write_text("1 / 0")
    yield
    for name in ("users_metrics", "users_mistake", "users_error"):
        sys.modules.pop(name, None)


def run(*arguments: str) -> str:
    call = ["validate", "test.npz", "--recommendation", "found.json", "--replicates", "20", *arguments]
    result = CliRunner().invoke(cli, call, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_metric_stands_beside_the_recommended_ones():
    path = list(sys.path)
    found = json.loads(run("--metric", "users_metrics:RIGHT", "--html", "report.html", "--json"))
    (value,) = found["custom"]
    assert (value["label"], value["name"], value["needs"]) == (
        "RIGHT",
        "Share right",
        ["labels", "decisions"],
    )
    assert value["estimate"] == pytest.approx(found["values"][0]["estimate"])
    assert "How often it is right." in Path("report.html").read_text()
    assert sys.path == path


def test_a_person_reads_what_it_means():
    said = " ".join(run("--metric", "users_metrics:RIGHT").split())
    assert "RIGHT (your metric): 0." in said
    assert "How often it is right." in said


def test_what_it_means_is_no_command_to_the_terminal():
    Path("users_metrics.py").write_text(MODULE.replace("How often it is right.", r"Red\x1b[31m."))
    said = run("--metric", "users_metrics:RIGHT")
    assert "\x1b" not in said
    assert r"Red\x1b[31m." in said


def test_errors_name_the_entry() -> None:
    for entry, message in (
        ("users_metrics", "--metric: expected MODULE:NAME, got 'users_metrics'"),
        ("users_metrics:a b", "--metric: expected MODULE:NAME"),
        ("no_such_module:X", "--metric: no_such_module cannot be imported .ModuleNotFoundError"),
        ("users_error:X", "--metric: users_error cannot be imported .ZeroDivisionError"),
        ("users_metrics:WRONG", "--metric: users_metrics:WRONG has no such name"),
        ("users_metrics:right", "--metric: users_metrics:right is a function, no CustomMetric"),
        ("users_mistake:RIGHT", "--metric: users_mistake:RIGHT: acronym: BA is a metric of the pool"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            run("--metric", entry)
