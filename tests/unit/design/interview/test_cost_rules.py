"""Costs typed as a rule or pasted as a table, on every surface that reads texts."""

import pytest

from lifelong_core.design import start_interview
from lifelong_core.design.interview.cost_builders import block_costs, equal_costs_but, ordinal_costs
from lifelong_core.design.interview.cost_rules import costs_from_text, needs_more_lines
from lifelong_core.design.interview.cost_tables import costs_from_table
from lifelong_core.values.errors import InvalidInputError

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
        ("blocks 1, 10: nevus | malignant", "in none or in several: keratosis"),
        ("all 1 but 0000000001 -> 2 = 5", "'0000000001' is none of the classes"),
        ("all 1 but 0->1=5; 0->1=7", "'0->1=7' is a second cost"),
        ("all 1 but 0->1=5; nevus -> Keratosis=5", "'nevus -> Keratosis=5' is a second cost"),
        ("all 1 but 0 -> 1 = 1,000", "'1,000' may be 1000 or 1"),
        ("all 1,000", "'1,000' may be 1000 or 1"),
        ("all 1 but 0 -> nevus = 5", "'0 -> nevus = 5' names the same class twice"),
        ("all 1 but", "nothing follows 'but'"),
        ("blocks 1,000: nevus | malignant, keratosis", "'000' is no number"),
        ("blocks 1,5, 10: nevus | malignant, keratosis", "'5, 10' is no number"),
        ("50:1", "for two classes, there are 3"),
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


def test_a_semicolon_table_is_a_table():
    assert costs_from_text("0;1,5;1\n1;0;1\n9;1;0", 3) == costs_from_table("0;1,5;1\n1;0;1\n9;1;0", 3)


def test_exact_names_come_first_and_others_in_any_case():
    names = ("A", "a", "b")
    assert costs_from_text("all 1 but a -> A = 5", 3, names) == equal_costs_but(3, {(1, 0): 5})
    assert costs_from_text("all 1 but B -> A = 5", 3, names) == equal_costs_but(3, {(2, 0): 5})
    table = "\ta\tA\tb\na\t0\t2\t3\nA\t4\t0\t5\nb\t6\t7\t0"
    assert costs_from_text(table, 3, names) == ((0, 4, 5), (2, 0, 3), (7, 6, 0))
    with pytest.raises(InvalidInputError, match=r"'NV' may be several classes.*0 Nv, 1 nv"):
        costs_from_text("all 1 but NV -> mel = 5", 3, ("Nv", "nv", "mel"))


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("a;b", "c", "d"), "all 1 but a;b -> c = 5"),
        (("a->b", "c", "d"), "all 1 but a->b -> c = 5"),
        (("a, b", "c", "d"), "blocks 1, 10: a, b | c, d"),
    ],
)
def test_names_with_the_signs_of_a_rule_have_numbers(names, text):
    with pytest.raises(InvalidInputError, match="write the number of the class"):
        costs_from_text(text, 3, names)
    assert costs_from_text("all 1 but 0 -> c = 5", 3, names) == equal_costs_but(3, {(0, 1): 5})
    assert costs_from_text("blocks 1, 10: 0 | c, d", 3, names) == block_costs(3, [[0], [1, 2]])


@pytest.mark.parametrize("header", ["all skin", "blocks of classes", "linear", "all", "true"])
@pytest.mark.parametrize("separator", "\t;,")
def test_a_table_whose_header_begins_like_a_rule_is_a_table(header, separator):
    rows = (
        [header, *NAMES],
        ["nevus", "0", "1", "2"],
        ["keratosis", "1", "0", "3"],
        ["malignant", "9", "8", "0"],
    )
    text = "\n".join(separator.join(row) for row in rows)
    assert costs_from_text(text, 3, NAMES) == ((0, 1, 2), (1, 0, 3), (9, 8, 0))


@pytest.mark.parametrize("text", ["50:1", " 50 : 1 ", "costs 50:1", "50,0:1"])
def test_a_ratio_is_that_of_missed_cases_to_false_alarms(text):
    assert costs_from_text(text, 2) == ((0, 1), (50, 0))
    assert costs_from_text(text, 2, positive=0) == ((0, 50), (1, 0))
    ill_first = start_interview(class_names=("ill", "healthy"), answers={"target_class": 0})
    assert ill_first.parse_answer("costs", text) == ((0, 50), (1, 0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\t1,000\n9,000\t0", "'1,000' may be 1000 or 1"),
        ("0\t1,5\n9.5\t0", "has a point and '1,5' a comma"),
    ],
)
def test_separators_of_thousands_are_not_taken_for_decimals(text, message):
    with pytest.raises(InvalidInputError, match=message):
        costs_from_text(text, 2)
    assert costs_from_text("0\t1,000\n0,125\t0", 2) == ((0, 1), (0.125, 0))


@pytest.mark.parametrize("separator", "\t;,")
def test_a_table_is_read_to_its_last_row(separator):
    header, rows = separator.join(["", *NAMES]), [separator.join((name, "0", "1", "2")) for name in NAMES]
    lines = [header, *rows]
    assert [needs_more_lines(lines[:count], 3) for count in range(1, 5)] == [True, True, True, False]
    assert [needs_more_lines(rows[:count], 3) for count in range(1, 4)] == [True, True, False]


@pytest.mark.parametrize(
    "line",
    [
        "linear", "50:1", "all 1 but 0 -> 1 = 5; 0 -> 2 = 7", "blocks 1, 10: nevus, keratosis | malignant",
        "0, 1, 2; 1, 0, 1; 2, 1, 0", "0 1 2; 1 0 1; 2 1 0", "[[0, 1], [9, 0]]", "many", "0 1",
    ],
)  # fmt: skip
def test_what_is_no_row_of_a_table_is_complete(line):
    assert not needs_more_lines([line], 3)
    assert not needs_more_lines([line], None)
