"""The shortened form of the fault suite, run by its command: every guarantee holds on both databases."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import tools
from tests.databases import KINDS
from tests.faults import figures
from tests.faults.report import render
from tests.faults.scenarios import SCENARIOS

pytestmark = pytest.mark.timeout(900)
"""It takes a minute on two free cores, and several times as long on a busy machine."""

SHORT = [entry for entry in SCENARIOS if not entry.is_long]
CASES = [(entry.name, kind) for entry in SHORT for kind in KINDS if entry.runs_on(kind, is_quick=True)]
NEEDS = {entry.name: entry.needs for entry in SHORT if entry.needs is not None}
Results = dict[str, dict[str, Any]]


def can_run(scenario: str) -> bool:
    """Whether this machine meets the requirements of the scenario; in CI it must."""
    return scenario not in NEEDS or tools.is_ci() or NEEDS[scenario].problem() is None


def chosen() -> list[str]:
    """Arguments of the command for the short scenarios that can run here."""
    return [f"--scenario={entry.name}" for entry in SHORT if can_run(entry.name)]


@pytest.fixture(scope="module")
def results() -> Results:
    """Output of `python -m tests.faults --quick --json` for each database; both run at once, since they mostly wait."""
    running = {
        kind: subprocess.Popen(
            [sys.executable, "-m", "tests.faults", "--quick", "--json", "--database", kind, *chosen()],
            stdout=subprocess.PIPE,
            text=True,
        )
        for kind in KINDS
    }
    printed = {kind: process.communicate()[0] for kind, process in running.items()}
    return {kind: json.loads(text.splitlines()[-1]) for kind, text in printed.items()}


@pytest.mark.parametrize(("scenario", "kind"), CASES)
def test_no_promise_is_broken(scenario: str, kind: str, request: pytest.FixtureRequest) -> None:
    if scenario in NEEDS:
        tools.need(NEEDS[scenario])
    results: Results = request.getfixturevalue("results")
    (outcome,) = (one for one in results[kind]["outcomes"] if one["scenario"] == scenario)
    assert outcome["violations"] == []
    assert outcome["faults"] > 0
    assert outcome["answered"] > 0


def test_the_report_names_every_scenario(results: Results) -> None:
    for kind, result in results.items():
        text = render(result["outcomes"])
        assert all(f"| {name} | {kind} |" in text for name, on in CASES if on == kind and can_run(name))
        assert result["command"] in text


def test_the_report_says_when_a_promise_was_broken(results: Results) -> None:
    result = results["sqlite"]
    broken = result["outcomes"][0] | {
        "violations": ["one prediction is not in the log"],
        "violations_in_all": 1,
    }
    text = render([broken])
    assert "Broken promises" in text
    assert "one prediction is not in the log" in text


def test_runs_that_were_made_in_parts_are_reported_together(results: Results, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    for kind in ("postgresql", "sqlite"):
        for outcome in results[kind]["outcomes"]:
            figures.write(file, figures.with_outcome(figures.read(file), outcome))
    together = figures.read(file)
    assert [(one["scenario"], one["database"]) for one in together] == [
        (name, kind) for kind in KINDS for name, on in CASES if on == kind and can_run(name)
    ]
    newer = together[0] | {"answered": -1}
    assert figures.with_outcome(together, newer) == [newer, *together[1:]]
    text = render(together)
    assert all(result["command"] in text for result in results.values())
    assert text.count("| scenario |") == len(KINDS)
