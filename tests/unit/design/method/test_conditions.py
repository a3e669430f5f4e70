import itertools

import pytest

from lifelong_core.design.method.conditions import parse_condition

CONDITIONS = [
    {},
    {"a": [True]},
    {"a": [True], "b": ["x", "y"]},
    {"any": [{"a": [False]}, {"b": ["x"]}]},
    {"all": [{"a": [True]}, {"not": {"b": ["x"]}}]},
    {"not": {"a": [True], "b": ["x"]}},
    {"any": [{"a": [True], "b": ["x"]}, {"not": {"any": [{"b": ["y"]}, {"a": [False]}]}}]},
]
DOMAINS = {"a": [True, False], "b": ["x", "y", "z"]}


@pytest.mark.parametrize("data", CONDITIONS)
def test_a_decided_condition_keeps_its_value_whatever_is_answered_next(data):
    condition = parse_condition(data)
    partial = [
        dict(zip("ab", pair, strict=True))
        for pair in itertools.product([None, *DOMAINS["a"]], [None, *DOMAINS["b"]])
    ]
    for answers in partial:
        completions = [
            {**answers, "a": a, "b": b}
            for a, b in itertools.product(DOMAINS["a"], DOMAINS["b"])
            if answers["a"] in (None, a) and answers["b"] in (None, b)
        ]
        ends = {condition.holds(completion) for completion in completions}
        assert None not in ends
        if (value := condition.holds(answers)) is not None:
            assert ends == {value}
            assert condition.undecided(answers) is None
        else:
            assert answers[condition.undecided(answers)] is None


def test_nothing_to_hold_holds():
    assert parse_condition({}).holds({}) is True


def test_the_fields_come_in_the_order_of_the_document():
    assert list(parse_condition({"b": ["x"], "not": {"c": [True], "a": ["y"]}}).fields()) == ["b", "c", "a"]


@pytest.mark.parametrize(
    "data",
    [
        3,
        "a",
        ["a"],
        {"a": True},
        {"a": "x"},
        {"a": []},
        {"a": [1.5]},
        {"all": [3]},
        {"any": []},
        {"not": [1]},
    ],
)
def test_anything_else_is_refused(data):
    with pytest.raises(ValueError, match="expected"):
        parse_condition(data)


def test_text_is_never_executed():
    condition = parse_condition({"__import__('os').getcwd()": ["x"]})
    assert condition.holds({}) is None
