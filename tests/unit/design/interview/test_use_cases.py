"""The seven use cases of docs/design_loop.md: our own answers, and the metrics that follow from them."""

import re
from typing import Any

import numpy as np
import pytest
import yaml

from lifelong_core.design import ProblemFingerprint, contradictions, next_questions, recommend
from lifelong_core.metrics import compute_metrics
from tests.unit.design.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "design_loop.md").read_text()
CASES = {text.split(":", 1)[0]: text for text in re.split(r"^### (?=ImLC-)", PAGE, flags=re.MULTILINE)[1:]}


def answers(case: str) -> dict[str, Any]:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in CASES[case].splitlines()
        if line.startswith("|")
    ]
    assert all(why for _, _, why in rows), "every answer is justified"
    return {item: yaml.safe_load(answer) for item, answer, _ in rows[2:]}


def expected(case: str) -> list[str]:
    return re.search(r"\*\*Recommended:\*\* (.+)", CASES[case]).group(1).split(", ")


def test_there_are_seven():
    assert list(CASES) == [f"ImLC-{number}" for number in range(1, 8)]


@pytest.mark.parametrize("case", [f"ImLC-{number}" for number in range(1, 8)])
def test_the_answers_are_complete_consistent_and_lead_to_what_the_page_says(case):
    fingerprint = ProblemFingerprint.from_document(answers(case))
    assert next_questions(fingerprint) == ()
    assert contradictions(fingerprint) == ()
    found = recommend(fingerprint)
    assert [metric.label for metric in found.metrics] == expected(case)
    assert found.open_choices == ()
    assert found.unused == ()


@pytest.mark.parametrize("case", [f"ImLC-{number}" for number in range(1, 8)])
def test_what_is_recommended_can_be_computed(case):
    found = recommend(ProblemFingerprint.from_document(answers(case)))
    classes = found.fingerprint.number_of_classes
    labels = np.arange(300) % classes
    probabilities = (
        0.6 * np.random.default_rng(0).dirichlet(np.ones(classes), 300) + 0.4 * np.eye(classes)[labels]
    )
    for metric in found.metrics:
        value = compute_metrics(
            [metric.metric], labels=labels, probabilities=probabilities, **metric.parameters
        )
        assert np.shape(value[metric.metric]) == ((classes,) if metric.per_class else ())
        assert np.isfinite(value[metric.metric]).all()


def test_the_first_two_lead_to_the_same_metrics():
    """The one thing that the thesis says about the published outcomes (section 4.2.3)."""
    assert expected("ImLC-1") == expected("ImLC-2")


def test_they_take_different_branches():
    rows = {
        step.row
        for case in CASES
        for step in recommend(ProblemFingerprint.from_document(answers(case))).steps
    }
    assert {"S2.1", "S2.2", "S2.5a", "S2.6a", "S2.7a", "S3.1", "S3.2", "S3.3", "S3.4", "S4.1", "S4.2"} <= rows
    assert {"S5.1.0b", "S5.1.2b", "S5.1.3", "S5.2.1", "S5.2.2b"} <= rows
