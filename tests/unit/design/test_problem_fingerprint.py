import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.design import ProblemFingerprint
from lifelong_core.design.problem_fingerprint import FIELDS, ITEMS
from lifelong_core.values.errors import InvalidInputError
from tests.unit.design.interviews import sheets


@given(sheet=sheets(), known=st.sets(st.sampled_from(FIELDS)))
def test_survives_json_exactly(sheet, known):
    fingerprint = ProblemFingerprint(**{field: sheet[field] for field in known})
    again = ProblemFingerprint.from_json(fingerprint.to_json())
    assert again == fingerprint
    assert hash(again) == hash(fingerprint)
    assert again.to_json() == fingerprint.to_json()
    assert ProblemFingerprint.from_document(fingerprint.to_document()) == fingerprint
    assert json.loads(fingerprint.to_json())["schema_version"] == 1
    assert set(again.answered_fields()) == known


@given(sheet=sheets(), data=st.data())
def test_answers_come_one_by_one_in_any_order(sheet, data):
    fingerprint = ProblemFingerprint()
    for field in data.draw(st.permutations(FIELDS)):
        before = fingerprint
        fingerprint = before.with_answer(field, sheet[field])
        assert getattr(before, field) is None
    assert fingerprint == ProblemFingerprint(**sheet)


@pytest.mark.parametrize(("item", "value"), [("N_CLASSES", 3), ("FP2.6", "argmax"), ("FP4.5", True)])
def test_an_item_of_the_source_names_a_field(item, value):
    fingerprint = ProblemFingerprint.from_document({item: value})
    assert getattr(fingerprint, ITEMS[item]) == value
    assert ProblemFingerprint().with_answer(item, value) == fingerprint


def test_is_frozen():
    with pytest.raises(ValueError, match="frozen"):
        ProblemFingerprint().decision_rule = "argmax"


def test_takes_arrays_as_values():
    fingerprint = ProblemFingerprint().with_answer("costs", np.array([[0, 1], [5, 0]]))
    assert fingerprint.costs == ((0.0, 1.0), (5.0, 0.0))
    assert fingerprint.with_answer("number_of_classes", np.int64(2)).number_of_classes == 2


@pytest.mark.parametrize(
    ("item", "value", "field"),
    [
        ("number_of_classes", 1, "number_of_classes"),
        ("number_of_classes", 2.5, "number_of_classes"),
        ("number_of_classes", True, "number_of_classes"),
        ("FP2.6", "majority", "decision_rule"),
        ("FP4.2", "yes", "prevalences_representative"),
        ("FP4.2", 1, "prevalences_representative"),
        ("target_value", 0.0, "target_value"),
        ("target_value", 1.1, "target_value"),
        ("target_value", "0.9", "target_value"),
        ("risk_threshold", 1.0, "risk_threshold"),
        ("target_class", -1, "target_class"),
        ("target_metric", "AUROC", "target_metric"),
        ("optimised_metric", "TPR", "optimised_metric"),
        ("costs", [[0.0, 1.0], [1.0]], "costs"),
        ("costs", [[0.0, float("nan")], [1.0, 0.0]], "costs"),
        ("costs", [[0.0, float("inf")], [1.0, 0.0]], "costs"),
        ("class_weights", [0.0, 0.0], "class_weights"),
        ("class_weights", [1.0, -1.0], "class_weights"),
        ("class_weights", [1.0], "class_weights"),
        ("target_prevalences", [0.5, 0.6], "target_prevalences"),
        ("target_prevalences", [1.5, -0.5], "target_prevalences"),
        ("grouping_variable", "  ", "grouping_variable"),
        ("number_of_classes", 1001, "number_of_classes"),
        ("majority", 1, "majority"),
        ("schema_version", 2, "schema_version"),
    ],
)
def test_what_an_item_cannot_be_is_refused_by_name(item, value, field):
    with pytest.raises(InvalidInputError) as caught:
        ProblemFingerprint().with_answer(item, value)
    assert caught.value.field == field


def test_a_misspelt_item_is_understood():
    for typed, meant in (("decison_rule", "decision_rule"), ("fp2.6", "FP2.6"), ("FP43", "FP4.3")):
        with pytest.raises(InvalidInputError, match=f"Did you mean {meant}"):
            ProblemFingerprint().with_answer(typed, "argmax")


def test_two_answers_to_one_question_are_refused():
    with pytest.raises(InvalidInputError, match=r"decision_rule and FP2\.6 are the same question") as caught:
        ProblemFingerprint().with_answers({"decision_rule": "argmax", "FP2.6": "none"})
    assert caught.value.field == "FP2.6"


def test_a_thousand_classes_are_enough():
    assert ProblemFingerprint(number_of_classes=1000).number_of_classes == 1000


@pytest.mark.parametrize(
    "document",
    [None, [], "text", {"schema_version": 2}, {"surprise": 1}, {"FP2.6": "argmax", "decision_rule": "none"}],
)
def test_another_document_is_refused(document):
    with pytest.raises(InvalidInputError):
        ProblemFingerprint.from_document(document)


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", '{"target_value": NaN}', "[" * 100_000])
def test_text_that_is_no_fingerprint_is_refused(text):
    with pytest.raises(InvalidInputError):
        ProblemFingerprint.from_json(text)
