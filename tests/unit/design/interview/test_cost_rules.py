"""Costs typed as a rule or pasted as a table, on every surface that reads texts."""

import pytest

from lifelong_core.design import start_interview
from lifelong_core.design.interview.cost_builders import (
    block_costs,
    costs_from_table,
    equal_costs_but,
    ordinal_costs,
)
from lifelong_core.design.interview.cost_rules import RULES, costs_from_text
from lifelong_core.errors import InvalidInputError

NAMES = ("nevus", "keratosis", "malignant")


@pytest.mark.parametrize(
    ("text", "costs"),
    [
        ("linear", ordinal_costs(3)),
        (" Quadratic\n", ordinal_costs(3, power=2)),
        ("all 2", equal_costs_but(3, {}, cost=2)),
        ("all 1 but malignant -> nevus = 50", equal_costs_but(3, {(2, 0): 50})),
        (
            "all 1 but malignant->nevus=50; Malignant -> 1 = 20,5",
            equal_costs_but(3, {(2, 0): 50, (2, 1): 20.5}),
        ),
        ("blocks 1, 10: nevus, keratosis | malignant", block_costs(3, [[0, 1], [2]])),
        ("blocks 1,10:\nnevus, 1\n2", block_costs(3, [[0, 1], [2]])),
        ("0;1;2\n1;0;1\n2;1;0", ordinal_costs(3)),
    ],
)
def test_a_rule_or_a_table_gives_costs(text, costs):
    assert costs_from_text(text, 3, NAMES) == costs
    interview = start_interview(class_names=NAMES)
    assert interview.answer("costs", interview.parse_answer("costs", text)).fingerprint.costs == costs


@pytest.mark.parametrize(
    "text",
    ["0, 1, 2; 1, 0, 1; 2, 1, 0", "0 1 2\n1 0 1\n2 1 0", "0, 1, 2;\n1, 0, 1;\n2, 1, 0", "[[0, 1], [9, 0]]"],
)
def test_rows_as_before_are_no_rule(text):
    assert costs_from_text(text, 3, NAMES) is None
    if not text.startswith("["):
        assert start_interview(class_names=NAMES).parse_answer("costs", text) == ordinal_costs(3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("all many", "'many' is no number"),
        ("all 1 but malignant = 50", "no error with its cost"),
        ("all 1 but wart -> nevus = 50", "'wart' is none of the classes"),
        ("blocks 1: nevus | malignant", "cannot be read as a rule"),
        ("blocks 1, 10: nevus | malignant", "belongs to one block"),
    ],
)
def test_a_mistake_in_a_rule_is_named(text, message):
    with pytest.raises(InvalidInputError, match=message) as caught:
        costs_from_text(text, 3, NAMES)
    assert caught.value.field == "costs"
    assert caught.value.hint


def test_classes_without_names_are_numbered_and_counted():
    four = start_interview(answers={"number_of_classes": 4})
    assert four.parse_answer("costs", "all 1 but 3 -> 0 = 50") == equal_costs_but(4, {(3, 0): 50})
    with pytest.raises(InvalidInputError, match="number of classes is not known"):
        start_interview().parse_answer("costs", "linear")


def test_the_examples_of_the_hint_are_rules():
    names = ("benign", "malignant")
    assert [costs_from_text(rule, 2, names) for rule in RULES[:3]] == [
        ordinal_costs(2),
        ordinal_costs(2, power=2),
        equal_costs_but(2, {(1, 0): 50}),
    ]
    four = ("nevus", "keratosis", "melanoma", "carcinoma")
    assert costs_from_text(RULES[3], 4, four) == block_costs(4, [[0, 1], [2, 3]])


def test_a_semicolon_table_is_a_table():
    assert costs_from_text("0;1,5;1\n1;0;1\n9;1;0", 3) == costs_from_table("0;1,5;1\n1;0;1\n9;1;0", 3)
