"""Errors of documents, in plain words."""

import copy
import functools
import json
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, StrictInt, StrictStr

from lifelong_core.design import ProblemFingerprint, Recommendation, recommend
from lifelong_core.design.problem_fingerprint import FIELDS
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.validation_errors import read_json
from tests.unit.design.recommendation.test_progress import SCREENING

JARGON = ("Input should", "valid tuple", "valid integer", "Value error", "ctx", "input_type")


def complaint(call):
    """The error that a call ends with, if any."""
    try:
        call()
    except InvalidInputError as error:
        return [error]
    return []


@pytest.mark.parametrize(
    ("item", "value", "message"),
    [
        ("number_of_classes", 1, "number_of_classes: expected a number of at least 2, got 1."),
        ("number_of_classes", 2.5, "number_of_classes: expected a whole number, got 2.5. For example 3."),
        ("FP5.1", "yes", "class_scores_available: expected true or false, got 'yes'."),
        ("target_value", True, "target_value: expected a number, got true. For example 0.95."),
        ("target_value", 95, "target_value: expected a number of at most 1, got 95."),
        ("target_value", 0, "target_value: expected a number above 0, got 0."),
        ("risk_threshold", 1, "risk_threshold: expected a number below 1, got 1."),
        ("costs", 3, "costs: expected a list, got 3. For example [0.9, 0.1]."),
        (
            "costs",
            [[0, 1], ["a", 2]],
            "costs: expected a number in row 2, column 1, got 'a'. For example 0.95.",
        ),
        ("costs", [[0, 1], 2], "costs: expected a list as entry 2, got 2. For example [0.9, 0.1]."),
        ("costs", [[0, 1], [1]], "costs: every row needs the same number of columns."),
        (
            "costs",
            [[0, 1e200], [1, 0]],
            "costs: expected a number of at most 1e+100 in row 1, column 2, got 1e+200.",
        ),
        (
            "class_weights",
            [1],
            "class_weights: expected a list of at least 2, got 1. For example [0.9, 0.1].",
        ),
        ("class_weights", [0, 0], "class_weights: at least one class must have a weight above 0."),
        (
            "class_weights",
            [1, float("nan")],
            "class_weights: expected a finite number as entry 2, got nan. For example 0.95.",
        ),
        (
            "target_prevalences",
            [0.5, 0.6],
            "target_prevalences: the shares of all classes must sum to 1, these sum to 1.1.",
        ),
        (
            "grouping_variable",
            " ",
            "grouping_variable: expected a text that is not empty, got ' '. For example \"patient\".",
        ),
        ("grouping_variable", 3, 'grouping_variable: expected a text, got 3. For example "patient".'),
    ],
)
def test_it_says_what_was_expected_what_came_and_what_would_do(item, value, message):
    with pytest.raises(InvalidInputError) as caught:
        ProblemFingerprint().with_answer(item, value)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], 'document: expected names with their values, got []. For example {"name": "value"}.'),
        (
            {"surprise": 1},
            "surprise: there is no such field. Check the spelling.",
        ),
        ({"schema_version": 2}, "schema_version: expected 1, got 2."),
    ],
)
def test_a_document_is_checked_as_a_whole(document, message):
    with pytest.raises(InvalidInputError) as caught:
        ProblemFingerprint.from_document(document)
    assert str(caught.value) == message


def test_text_that_is_cut_off_is_said_to_be():
    with pytest.raises(InvalidInputError, match="this is not JSON: EOF") as caught:
        ProblemFingerprint.from_json('{"number_of_')
    assert "cut off" in caught.value.hint


@pytest.mark.parametrize(
    "value", [True, 1, 2.5, -1, 1e200, "x", "", [], [[]], {}, object(), float("nan"), {1}]
)
def test_no_wrong_answer_is_answered_with_jargon(value):
    for field in FIELDS:
        answer = functools.partial(ProblemFingerprint().with_answer, field, value)
        for error in complaint(answer):
            assert error.field == field
            assert not [word for word in JARGON if word in str(error)], str(error)


def leaves(value, path=()):
    """The places in a document where a value stands."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in entries:
        yield (*path, key)
        yield from leaves(inner, (*path, key))


def test_damage_anywhere_in_a_recommendation_is_placed():
    document = recommend(ProblemFingerprint(**SCREENING)).to_document()
    for path in list(leaves(document))[::5]:
        damaged = copy.deepcopy(document)
        inner = damaged
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = {"surprise": [1]}
        for error in complaint(functools.partial(Recommendation.from_document, damaged)):
            assert error.field.split(".")[0] == path[0]
            assert not [word for word in JARGON if word in str(error)], str(error)


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    height: int = 1
    mode: Literal["exact", "shortest_edge"] = "exact"


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    task: str
    resize: Inner | None = None
    rows: list[Inner] = []
    by_name: dict[str, Inner] = {}
    label: StrictInt | StrictStr = 0


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "task: it is missing."),
        (
            {"taks": "skin"},
            "taks: there is no such field (and 1 more problem). Did you mean task?",
        ),
        (
            {"task": "a", "resize": {"hieght": 1}},
            "resize.hieght: there is no such field. Did you mean height?",
        ),
        (
            {"task": "a", "by_name": {"b": {"mdoe": 1}}},
            "by_name.b.mdoe: there is no such field. Did you mean mode?",
        ),
        (
            {"task": "a", "rows": [{}, {"zzz": 1}]},
            "rows.1.zzz: there is no such field. Known fields: height, mode.",
        ),
        (
            {"task": "a", "resize": {"mode": "exakt"}},
            "resize.mode: expected 'exact' or 'shortest_edge', got 'exakt'. Did you mean exact?",
        ),
        (
            {"task": "a", "rows": [{"height": "x"}, {"height": []}]},
            "rows.0.height: expected a whole number, got 'x' (and 1 more problem). For example 3.",
        ),
        (
            {"task": "a", "label": 1.5},
            'label: expected a whole number or a text, got 1.5. For example 3 or "patient".',
        ),
    ],
)
def test_the_most_telling_problem_is_described(document, message):
    with pytest.raises(InvalidInputError) as caught:
        read_json(Outer, json.dumps(document))
    assert str(caught.value) == message


def test_a_long_value_is_cut():
    with pytest.raises(InvalidInputError) as caught:
        read_json(Outer, json.dumps({"task": "a", "resize": ["x" * 1_000_000] * 10}))
    assert len(str(caught.value)) < 300
