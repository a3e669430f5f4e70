"""Typed answers, and messages about texts that cannot be read."""

import re
from re._constants import MAXREPEAT
from re._parser import SubPattern
from re._parser import parse as parse_pattern

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.design import ProblemFingerprint, format_answer, parse_answer, start_interview
from lifelong_core.design.interview import answer_texts, class_names, cost_builders, cost_rules
from lifelong_core.design.interview.cost_rules import LONGEST_RULE
from lifelong_core.design.interview.cost_tables import LONGEST_TABLE
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.problem_fingerprint import FIELDS
from lifelong_core.values.errors import InvalidInputError
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
        ("target_value", "100 %", 1.0),
        ("target_value", "1 %", 0.01),
        ("target_value", "1.0", 1.0),
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
        ("target_value", "1", "may be 1 % or 100 %"),
        ("risk_threshold", " 1 ", "may be 1 % or 100 %"),
        ("grouping_variable", "1", "expected a name, got '1'"),
        ("grouping_variable", "Y", "expected a name, got 'Y'"),
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
def test_what_is_shown_can_be_typed(sheet, named):
    count = len(sheet["costs"])
    names = ("benign", "malignant", "hard to say")[:count] if named else None
    for field in FIELDS:
        question = load_method().question(field)
        text = format_answer(question, sheet[field], class_names=names)
        assert parse_answer(question, text, class_names=names) == sheet[field], (field, text)


def test_a_share_of_one_is_shown_as_it_can_be_typed():
    question = load_method().question("target_value")
    assert parse_answer(question, format_answer(question, 1.0)) == 1.0


@given(weights=st.lists(st.floats(0, 1e100), min_size=2, max_size=4).filter(any))
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
    assert eight.parse_answer("decision_rule", "reach a target") == "target_value"
    for typed in ("reach a target", "Target_Value"):
        with pytest.raises(
            InvalidInputError, match=r"not offered for these answers.*Two classes only"
        ) as caught:
            eight.parse_answer("decision_rule", typed, as_shown=True)
        assert "1 best value of a metric" in str(caught.value)
    with pytest.raises(InvalidInputError, match="none of the answers"):
        eight.parse_answer("decision_rule", "reach", as_shown=True)


def test_an_answer_of_a_document_is_told_the_values_that_are_offered():
    eight = start_interview(answers={"number_of_classes": 8})
    with pytest.raises(InvalidInputError, match="'majority' is none of the answers") as caught:
        eight.parse_answer("decision_rule", "majority")
    assert caught.value.hint.startswith("Write one of: optimization (best value of a metric), argmax")
    assert "reach a target" not in caught.value.hint


@pytest.mark.parametrize(("text", "hint"), [("150 %", "at most 100 %"), ("95", "95 % is 0.95")])
def test_a_share_that_is_too_large_is_told_what_it_is(text, hint):
    with pytest.raises(InvalidInputError) as caught:
        parse("target_value", text)
    assert hint in caught.value.hint
    assert "1.5 %" not in caught.value.hint


@pytest.mark.parametrize("text", ["0000000001", "00000000010"])
def test_no_digit_of_the_number_of_a_class_is_cut(text):
    for names in (NAMES, None):
        with pytest.raises(InvalidInputError):
            parse("target_class", text, names)
    with pytest.raises(InvalidInputError):
        parse("decision_rule", f"0001{text}")


def test_names_that_differ_in_case_are_found_exactly_or_refused():
    names = ("Nv", "nv", "mel")
    assert [parse("target_class", text, names) for text in ("Nv", "nv", "MEL", "1")] == [0, 1, 2, 1]
    with pytest.raises(InvalidInputError, match="differ only in case"):
        parse("target_class", "NV", names)


@pytest.mark.parametrize("module", [answer_texts, class_names, cost_builders, cost_rules])
def test_no_text_makes_a_pattern_slow(module):
    """One unbounded repetition at most, and none within another: the work grows with the length of a text."""
    for pattern in vars(module).values():
        if isinstance(pattern, re.Pattern):
            assert unbounded(parse_pattern(pattern.pattern)) <= 1, pattern.pattern


def unbounded(parts):
    """Number of unbounded repetitions in a parsed pattern."""
    if isinstance(parts, tuple | list | SubPattern):
        repeats = (
            isinstance(parts, tuple)
            and len(parts) == 2
            and "REPEAT" in str(parts[0])
            and parts[1][1] == MAXREPEAT
        )
        return repeats + sum(unbounded(part) for part in parts)
    return 0


@pytest.mark.parametrize("pattern", [r".+?\s*->", r"(a+)+"])
def test_the_check_of_patterns_finds_slow_ones(pattern):
    assert unbounded(parse_pattern(pattern)) > 1


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("class_weights", "1 " * LONGEST_RULE),
        ("costs", "0, " * LONGEST_TABLE),
        ("costs", "all 1 but a->" + " " * LONGEST_RULE + "b"),
        ("costs", "0;1" + "0" * LONGEST_TABLE + "\n9;0"),
    ],
)
def test_texts_that_are_too_long_are_refused_before_they_are_read(field, text):
    with pytest.raises(InvalidInputError, match="has at most") as caught:
        parse_answer(load_method().question(field), text, classes=2)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "text",
    [
        "all 1 but a->" + " " * 100_000 + "b",
        "all 1 but " + "->" * 100_000,
        "all 1 but " + "=" * 200_000,
        "all 1 but " + "a->b=1;" * 30_000,
        "0" + " " * 1_000_000 + "1; x",
        "0\t1\n" * 1_500_000,
        "0 1\n" * 1_500_000,
        "0\t1" + "\t" * 1_000_000 + "\n9\t0\t" + "\t" * 1_000_000 + "x",
        "blocks 1, 10: " + "0," * 100_000,
    ],
)
def test_hostile_costs_end_in_an_error(text):
    with pytest.raises(InvalidInputError) as caught:
        parse_answer(load_method().question("costs"), text, classes=2)
    assert caught.value.field == "costs"
    assert len(str(caught.value)) < 1500
