"""Rules for costs in words, read back by the parser of rules."""

import pytest

from lifelong_core.design import start_interview
from lifelong_core.design.interview.cost_builders import (
    RULES,
    block_costs,
    equal_costs_but,
    ordinal_costs,
    rule_of,
    rules_hint,
)
from lifelong_core.design.interview.cost_rules import costs_from_text
from lifelong_core.values.errors import InvalidInputError


def test_the_examples_of_the_hint_are_rules():
    names = ("benign", "malignant")
    assert [costs_from_text(rule, 2, names) for rule in RULES[:3]] == [
        ordinal_costs(2),
        ordinal_costs(2, power=2),
        equal_costs_but(2, {(1, 0): 50}),
    ]
    four = ("nevus", "keratosis", "melanoma", "carcinoma")
    assert costs_from_text(RULES[3], 4, four) == block_costs(4, [[0, 1], [2, 3]])


@pytest.mark.parametrize(
    ("costs", "rule"),
    [
        (ordinal_costs(4), "linear"),
        (ordinal_costs(4, power=2), "quadratic"),
        (equal_costs_but(4, {}), "all 1"),
        (equal_costs_but(4, {(2, 1): 50.0, (0, 3): 0.5}, cost=3), "all 3 but a -> d = 0.5; 2 -> b = 50"),
        (((0, 1), (9, 0)), "all 1 but b -> a = 9"),
        (((0, 1, 1), (9, 0, 1)), None),
        (((1, 1), (9, 0)), None),
        ([[abs(i - j) ** 1.5 for j in range(4)] for i in range(4)], None),
    ],
)
def test_costs_are_said_as_the_rule_that_gives_them(costs, rule):
    names = ("a", "b", "c;c", "d")[: len(costs)]
    assert rule_of(costs, names) == rule
    if rule is not None:
        assert costs_from_text(rule, len(costs), names) == tuple(map(tuple, costs))


def test_hints_fit_the_classes():
    assert rules_hint(2, ("benign", "malignant")) == (
        "A rule is one of: 50:1 (a missed case to a false alarm); all 1 but malignant -> benign = 50. "
        "Or paste a table from a spreadsheet."
    )
    names = ("nv", "mel", "bcc", "df", "vasc")
    assert "all 1 but vasc -> nv = 50; blocks 1, 10: nv | mel, ..., vasc" in rules_hint(5, names)
    with pytest.raises(InvalidInputError) as caught:
        start_interview(class_names=names).parse_answer("costs", "0 1 9 0")
    assert "vasc -> nv" in caught.value.hint
    assert "0, 1; 9, 0" not in caught.value.hint
