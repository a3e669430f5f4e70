"""Costs of many classes, against formulas written out and numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

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
from lifelong_core.design.interview.cost_tables import costs_from_table
from lifelong_core.values.errors import InvalidInputError

NAMES = ("mole", "wart", "melanoma")
TABLE = [[0.0, 1.0, 2.5], [1.0, 0.0, 2.5], [50.0, 25.0, 0.0]]


@pytest.mark.parametrize(("power", "distance"), [(1, "cityblock"), (2, "sqeuclidean")])
@pytest.mark.parametrize("classes", [2, 8, 20])
def test_ordinal_costs_are_distances(classes, power, distance):
    places = np.arange(classes, dtype=float)[:, np.newaxis]
    np.testing.assert_array_equal(ordinal_costs(classes, power), cdist(places, places, distance))


@given(st.integers(2, 9), st.data())
def test_all_errors_cost_the_same_but_some(classes, data):
    index = st.integers(0, classes - 1)
    pairs = st.tuples(index, index).filter(lambda pair: pair[0] != pair[1])
    exceptions = data.draw(st.dictionaries(pairs, st.floats(0, 100), max_size=4))
    expected = 3 * (np.ones((classes, classes)) - np.eye(classes))
    for (true, decided), cost in exceptions.items():
        expected[true, decided] = cost
    np.testing.assert_array_equal(equal_costs_but(classes, exceptions, cost=3), expected)


@given(st.lists(st.integers(0, 2), min_size=2, max_size=9))
def test_an_error_within_a_block_is_cheap(block_of):
    blocks = [[k for k, one in enumerate(block_of) if one == block] for block in range(3)]
    same = np.equal.outer(block_of, block_of)
    expected = np.where(same, 2.0, 7.0) * (1 - np.eye(len(block_of)))
    found = block_costs(len(block_of), [one for one in blocks if one], within=2, across=7)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("separator", "end"), [("\t", "\n"), ("\t", "\r\n"), (";", "\n"), (",", "\r\n")])
@pytest.mark.parametrize(
    ("has_row", "has_column", "corner"),
    [(False, False, ""), (True, False, ""), (False, True, ""), (True, True, ""), (True, True, "true class")],
)
def test_a_table_is_read_with_and_without_headers(separator, has_row, has_column, corner, end):
    point = "." if separator == "," else ","
    rows = [[f"{cost:g}".replace(".", point) for cost in row] for row in TABLE]
    if has_column:
        rows = [[name, *row] for name, row in zip(NAMES, rows, strict=True)]
    if has_row:
        rows.insert(0, [*([corner] if has_column else []), *NAMES])
    text = end.join(separator.join(row) for row in rows) + end
    np.testing.assert_array_equal(costs_from_table(text, 3, NAMES), TABLE)


def test_headers_put_rows_and_columns_in_the_order_of_the_classes():
    text = "\tmelanoma\tMole\twart\nwart\t2,5\t1\t0\nmelanoma\t0\t50\t25\nmole\t2,5\t0\t1"
    np.testing.assert_array_equal(costs_from_table(text, 3, NAMES), TABLE)


def test_a_further_column_is_the_decision_for_no_class():
    text = "\tmole\twart\tmelanoma\tabstain\n" + "\n".join(
        "\t".join([name, *(f"{cost:g}" for cost in row), "0.5"])
        for name, row in zip(NAMES, TABLE, strict=True)
    )
    np.testing.assert_array_equal(costs_from_table(text, 3, NAMES), [[*row, 0.5] for row in TABLE])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\t1\n1\t0", "expected 3 rows of 3 numbers"),
        ("0\t1\t2\n1\t0\t\n2\t1\t0", "a cell is empty"),
        ("0\t1\t2\n1\t0\tx\n2\t1\t0", "'x' is no number"),
        ("a\t0\t1\t2\nb\t1\t0\t1\nc\t2\t1\t0", "the header names a, b, c"),
        ("0\t1\t2", "several lines"),
        ("0\t1\t1e999\n1\t0\t1\n1\t1\t0", "up to"),
    ],
)
def test_a_table_that_cannot_be_read_says_why(text, message):
    with pytest.raises(InvalidInputError, match=message) as caught:
        costs_from_table(text, 3, NAMES)
    assert caught.value.field == "costs"
    assert caught.value.hint or "up to" in message


@pytest.mark.parametrize("blocks", [[[0, 1]], [[0, 1], [1, 2]], [[0, 1, 2], [3]]])
def test_every_class_is_in_one_block(blocks):
    with pytest.raises(InvalidInputError, match="belongs to one block"):
        block_costs(3, blocks)


@pytest.mark.parametrize("pair", [(0, 0), (0, 3), (-1, 0)])
def test_an_exception_is_an_error_between_two_classes(pair):
    with pytest.raises(InvalidInputError, match="no error between two"):
        equal_costs_but(3, {pair: 1.0})


def test_one_class_has_no_costs():
    with pytest.raises(InvalidInputError, match="at least 2 classes"):
        ordinal_costs(1)


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
