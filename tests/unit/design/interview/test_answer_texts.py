"""Typed answers, and messages about texts that cannot be read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifelong_core.design import ProblemFingerprint, format_answer, parse_answer, start_interview
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.problem_fingerprint import FIELDS
from lifelong_core.errors import InvalidInputError
from tests.unit.design.interviews import sheets

NAMES = ("benign", "malignant")


def parse(field, text, names=None):
    return parse_answer(load_method().question(field), text, class_names=names)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("number_of_classes", " 2 ", 2),
        ("class_scores_available", "y", True),
        ("class_scores_available", "YES", True),
        ("class_scores_available", "1", True),
        ("class_scores_available", "no, decisions only", False),
        ("costs_available", "not yet", False),
        ("costs_available", "n", False),
        ("dependent_cases", "False", False),
        ("dependent_cases", "2", False),
        ("decision_rule", "4", "cost_benefit"),
        ("decision_rule", "argmax", "argmax"),
        ("decision_rule", "Highest  score wins", "argmax"),
        ("decision_rule", "weigh", "cost_benefit"),
        ("decision_rule", "reach", "target_value"),
        ("target_metric", "Sensitivity", "TPR"),
        ("target_metric", "sens", "TPR"),
        ("target_metric", "tpr", "TPR"),
        ("optimised_metric", "lr+", "LR+"),
        ("calibration_comparison", "u2", "U2"),
        ("output_interpretation", "no", "none"),
        ("target_value", "0.95", 0.95),
        ("target_value", ".95", 0.95),
        ("target_value", "95%", 0.95),
        ("target_value", "95 %", 0.95),
        ("target_value", "1", 1.0),
        ("risk_threshold", "0.6 %", 0.006),
        ("risk_threshold", "1e-3", 0.001),
        ("target_class", "1", 1),
        ("grouping_variable", "  patient  id ", "patient id"),
        ("target_prevalences", "0.994, 0.006", (0.994, 0.006)),
        ("target_prevalences", "99.4 % 0.6 %", (0.994, 0.006)),
        ("target_prevalences", "99.4%;0.6%", (0.994, 0.006)),
        ("target_prevalences", "[0.5, 0.5]", (0.5, 0.5)),
        ("class_weights", "1, 1, 5", (1.0, 1.0, 5.0)),
        ("class_weights", "1,1,5", (1.0, 1.0, 5.0)),
        ("class_weights", "1 1 5", (1.0, 1.0, 5.0)),
        ("costs", "0, 1; 9, 0", ((0.0, 1.0), (9.0, 0.0))),
        ("costs", "0 1; 9 0", ((0.0, 1.0), (9.0, 0.0))),
        ("costs", "0 1\n9 0\n", ((0.0, 1.0), (9.0, 0.0))),
        ("costs", "[[0, 1], [9, 0]]", ((0.0, 1.0), (9.0, 0.0))),
        ("costs", "0,1,0.3; 1,0,0.3", ((0.0, 1.0, 0.3), (1.0, 0.0, 0.3))),
        ("costs", "-1 0; 0 -1", ((-1.0, 0.0), (0.0, -1.0))),
    ],
)
def test_what_a_person_types_is_understood(field, text, value):
    parsed = parse(field, text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("target_class", "malignant", 1),
        ("target_class", "MAL", 1),
        ("target_class", "0", 0),
        ("target_prevalences", "benign: 0.994, malignant: 0.006", (0.994, 0.006)),
        ("target_prevalences", "malignant=0.6 % benign=99.4 %", (0.994, 0.006)),
        ("class_weights", "malignant: 5,benign: 1", (1.0, 5.0)),
        ("class_weights", "1 5", (1.0, 5.0)),
    ],
)
def test_classes_go_by_their_names(field, text, value):
    assert parse(field, text, NAMES) == value


def test_names_that_are_numbers_are_names():
    assert parse("target_class", "1", ("1", "2")) == 0
    with pytest.raises(InvalidInputError, match="none of the classes"):
        parse("target_class", "0", ("1", "2"))


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("number_of_classes", "1", "at least 2"),
        ("number_of_classes", "two", "whole number"),
        ("number_of_classes", "2.5", "whole number"),
        ("number_of_classes", "²", "whole number"),
        ("number_of_classes", "9" * 5000, "whole number"),
        ("class_scores_available", "maybe", "expected yes or no"),
        ("class_scores_available", "3", "expected yes or no"),
        ("class_scores_available", "", "expected an answer"),
        ("decision_rule", "6", "Type a number: 1 reach a target"),
        ("decision_rule", "0", "none of the answers"),
        ("output_interpretation", "yes", "may be yes, of the calibration alone or yes, together"),
        ("target_value", "95", "at most 1"),
        ("target_value", "0", "above 0"),
        ("target_value", "0,95", "with a decimal point, got '0,95'. Write 0.95."),
        ("target_value", "1:4", "expected a number"),
        ("target_value", "nan", "expected a number"),
        ("target_value", "1e999", "expected"),
        ("risk_threshold", "100 %", "below 1"),
        ("target_class", "malignant", "no names here"),
        ("target_class", "-1", "number of a class"),
        ("target_prevalences", "0.9, 0.2", "must sum to 1, these sum to 1.1"),
        ("target_prevalences", "0,9 0,1", "read in several ways"),
        ("target_prevalences", "0.9, few", "expected a number"),
        ("target_prevalences", "1.5, -0.5", "at most 1"),
        ("class_weights", "0 0", "above 0"),
        ("class_weights", "[[1], [2]]", "expected numbers in brackets"),
        ("class_weights", "7", "at least 2"),
        ("costs", "0 1 9 0", "semicolon between the rows"),
        ("costs", "0 1; 9", "same number of columns"),
        ("costs", "0,5 1; 9 0", "read in several ways"),
        ("costs", "[[0, 1], [9, ", "expected numbers in brackets"),
        ("costs", "[" * 100_000, "expected numbers in brackets"),
        ("costs", "0 many; 9 0", "expected a number"),
        ("grouping_variable", "x" * 201, "at most 200"),
        ("target_value", "95", "got 95. 95 % is 0.95."),
        ("risk_threshold", "250", "got 250. For example: 0.1"),
        ("number_of_classes", "1001", "at most 1000"),
    ],
)
def test_what_cannot_be_understood_is_explained(field, text, said):
    with pytest.raises(InvalidInputError) as caught:
        parse(field, text)
    assert said in str(caught.value)
    assert caught.value.field == field
    assert caught.value.hint
    assert "Input should" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.9 0.05 0.05", "expected 2 numbers"),
        ("0,9,0,1", "Write decimals with a point"),
        ("benign: 0.9", "missing: malignant"),
        ("benign: 0.9, healthy: 0.1", "Type a name or a number: 0 benign, 1 malignant"),
        ("benign: 0,9 malignant: 0,1", "a number with a decimal point, got '0,9'. Write 0.9."),
        ("benign: most", "a class and its number"),
        ("benign: 0.9, benign: 0.1", "two numbers for the class 'benign'"),
    ],
)
def test_values_by_name_are_checked_against_the_names(text, said):
    with pytest.raises(InvalidInputError) as caught:
        parse("target_prevalences", text, NAMES)
    assert said in str(caught.value)


@given(sheet=sheets(), named=st.booleans())
@settings(max_examples=20)
def test_what_is_shown_can_be_typed(sheet, named):
    count = len(sheet["costs"])
    names = ("benign", "malignant", "hard to say")[:count] if named else None
    for field in FIELDS:
        question = load_method().question(field)
        text = format_answer(question, sheet[field], class_names=names)
        assert parse_answer(question, text, class_names=names) == sheet[field], (field, text)


@given(weights=st.lists(st.floats(0, 1e100), min_size=2, max_size=4).filter(any))
@settings(max_examples=20)
def test_no_digit_is_lost(weights):
    question = load_method().question("class_weights")
    assert parse_answer(question, format_answer(question, tuple(weights))) == tuple(weights)


@pytest.mark.parametrize("names", [("a, b", "c"), ("A", "a"), ("x: 1", "y"), ("[0", "1")])
def test_names_that_could_be_torn_apart_are_left_out(names):
    question = load_method().question("class_weights")
    text = format_answer(question, (1.0, 2.0), class_names=names)
    assert text == "1, 2"
    assert parse_answer(question, text, class_names=names) == (1.0, 2.0)


@pytest.mark.parametrize("names", [("1", "2"), ("A", "a"), ("ab", "abc"), ("a, b", "c")])
def test_every_class_can_be_named(names):
    question = load_method().question("target_class")
    for k in range(2):
        assert parse_answer(question, format_answer(question, k, class_names=names), class_names=names) == k


@given(text=st.text(max_size=40), field=st.sampled_from(FIELDS))
@settings(max_examples=30)
def test_any_text_is_an_answer_or_is_explained(text, field):
    try:
        value = parse(field, text)
    except InvalidInputError:
        return
    assert ProblemFingerprint().with_answer(field, value).answered_fields() == (field,)


def test_numbers_count_the_offered_options_where_these_are_shown():
    eight = start_interview(answers={"number_of_classes": 8, "class_scores_available": True})
    assert eight.parse_answer("decision_rule", "1", as_shown=True) == "optimization"
    assert eight.parse_answer("decision_rule", "1") == "target_value"
    assert eight.parse_answer("decision_rule", "reach a target", as_shown=True) == "target_value"
    with pytest.raises(InvalidInputError, match="none of the answers"):
        eight.parse_answer("decision_rule", "reach", as_shown=True)
