"""Neighbours on the command line: rank, source, gain with interval and the reasons, at 80 columns."""

import json

import pytest

from lifelong.commands.common import open_store
from lifelong.commands.knowledge.neighbours import SCENARIOS as CHOICES
from lifelong_core.develop.knowledge.entry import SCENARIOS
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.ranking.fitting import fit_ranker
from lifelong_core.values.errors import InvalidInputError
from tests.unit.develop.ranking.examples import SCENARIO, make_outcomes

TASK = "task0-0"


@pytest.fixture(autouse=True)
def known(installed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with open_store() as store:
        store.knowledge.import_base(KnowledgeBase.from_outcomes(make_outcomes()), actor="tests")


@pytest.fixture
def fitted():
    def fit(level: float) -> None:
        outcomes = make_outcomes(level=level)
        ranker = fit_ranker(outcomes)
        with open_store() as store:
            store.knowledge.import_base(KnowledgeBase.from_outcomes(outcomes), actor="tests")
            store.rankers.put(ranker.to_bytes(), outcomes_digest="a" * 64, revision=2, actor="tests")

    return fit


def test_the_scenarios_are_those_of_the_knowledge_base():
    assert CHOICES == SCENARIOS


def test_sources_are_listed_with_their_gains_and_reasons(installed, fitted):
    fitted(0.05)
    lines = installed("neighbours", TASK, "--scenario", SCENARIO, "--limit", "3").splitlines()
    assert max(map(len, lines)) <= 80
    assert "source tasks are expected to help" in lines[0]
    head = next(place for place, line in enumerate(lines) if line.startswith("rank"))
    assert lines[head].split() == ["rank", "source", "gain", "of", "BA", "80", "%", "interval"]
    assert [line.split()[0] for line in lines[head + 1 :] if not line.startswith(" ")] == ["1", "2", "3"]
    assert any("measured" in line for line in lines)
    document = json.loads(installed("neighbours", TASK, "--scenario", SCENARIO, "--limit", "3", "--json"))
    assert len(document["suggestions"]) == 3


def test_it_is_said_that_nothing_is_expected_to_help(installed, fitted):
    fitted(-0.2)
    said = installed("neighbours", TASK, "--scenario", SCENARIO)
    assert said.startswith("Nothing here is expected to help")


def test_before_the_first_fit_the_closest_tasks_are_listed(installed):
    said = installed("neighbours", TASK, "--scenario", SCENARIO, "--limit", "4")
    assert said.startswith("No ranker is fitted")
    assert len([line for line in said.splitlines() if line.startswith("task0-")]) == 4


def test_an_unknown_strategy_is_named(installed):
    with pytest.raises(InvalidInputError, match=r"^strategy: "):
        installed("neighbours", TASK, "--scenario", SCENARIO, "--strategy", "best")
