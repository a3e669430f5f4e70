"""Tables of costs that are read line by line."""

import pytest

from lifelong_core.design.interview.cost_rules import needs_more_lines

NAMES = ("nevus", "keratosis", "malignant")


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
