"""Costs of many classes: equal, ordinal and in blocks; the shortest rule that gives them. Each row is a true class."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from lifelong_core.design.interview.class_names import list_class_names
from lifelong_core.values.arrays import LARGEST_NUMBER
from lifelong_core.values.errors import InvalidInputError

Costs: TypeAlias = tuple[tuple[float, ...], ...]
"""shape (C, D): cost of deciding on class j where class i is true, row i, column j"""


FIELD = "costs"


RULES = (
    "linear",
    "quadratic",
    "all 1 but malignant -> benign = 50",
    "blocks 1, 10: nevus, keratosis | melanoma, carcinoma",
)
"""One example of each rule."""


RATIO = "50:1"
"""Example of the rule for two classes: the cost of a missed case to that of a false alarm."""


MOST_EXCEPTIONS = 4
"""Most errors with another cost that a rule of `rule_of` names."""


def ordinal_costs(classes: int, power: Literal[1, 2] = 1) -> Costs:
    """Costs of classes in an order: the number of steps between them, or its square.

    Args:
        classes: number of classes, at least 2.
        power: 1 for linear, 2 for quadratic costs.

    Raises:
        InvalidInputError: fewer than 2 classes.

    Examples:
        >>> ordinal_costs(3)
        ((0.0, 1.0, 2.0), (1.0, 0.0, 1.0), (2.0, 1.0, 0.0))
        >>> ordinal_costs(3, power=2)[0]
        (0.0, 1.0, 4.0)
    """
    _check_classes(classes)
    return tuple(tuple(float(abs(i - j) ** power) for j in range(classes)) for i in range(classes))


def equal_costs_but(classes: int, exceptions: Mapping[tuple[int, int], float], *, cost: float = 1.0) -> Costs:
    """The same cost of every error, except for some.

    Args:
        classes: number of classes, at least 2.
        exceptions: (true class, decision) -> cost.
        cost: of all other errors.

    Raises:
        InvalidInputError: an exception is no error between two of the classes, or a cost is no number in range.

    Examples:
        >>> equal_costs_but(3, {(2, 0): 50.0})
        ((0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (50.0, 1.0, 0.0))
    """
    _check_classes(classes)
    for true, decided in exceptions:
        if not (0 <= true < classes and 0 <= decided < classes) or true == decided:
            raise InvalidInputError(
                f"({true}, {decided}) is no error between two of {classes} classes.",
                field=FIELD,
                hint=f"Name the true class and another one that is decided, both from 0 to {classes - 1}.",
            )
    rows = [[check_cost(cost)] * classes for _ in range(classes)]
    for index in range(classes):
        rows[index][index] = 0.0
    for (true, decided), error_cost in exceptions.items():
        rows[true][decided] = check_cost(error_cost)
    return tuple(tuple(row) for row in rows)


def block_costs(
    classes: int,
    blocks: Sequence[Sequence[int]],
    *,
    within: float = 1.0,
    across: float = 10.0,
    class_names: Sequence[str] | None = None,
) -> Costs:
    """Costs of classes in blocks: one cost of an error within a block, another one across blocks.

    Args:
        classes: number of classes, at least 2.
        blocks: the classes of each block; together they hold every class once.
        within: cost of deciding on another class of the same block.
        across: cost of deciding on a class of another block.
        class_names: names of the classes, for errors.

    Raises:
        InvalidInputError: a class is in no block or in several, or a cost is no number in range.

    Examples:
        >>> block_costs(3, [[0, 1], [2]], across=20.0)
        ((0.0, 1.0, 20.0), (1.0, 0.0, 20.0), (20.0, 20.0, 0.0))
    """
    _check_classes(classes)
    times = Counter(index for block in blocks for index in block)
    wrong = [index for index in range(classes) if times[index] != 1]
    if wrong or len(times) > classes:
        called = [class_names[index] if class_names else str(index) for index in wrong]
        raise InvalidInputError(
            f"each of the {classes} classes belongs to one block; "
            f"these are in none or in several: {list_class_names(called) or 'others'}.",
            field=FIELD,
            hint="Name every class once.",
        )
    block_of = {index: number for number, block in enumerate(blocks) for index in block}
    near, far = check_cost(within), check_cost(across)
    return tuple(
        tuple(0.0 if i == j else near if block_of[i] == block_of[j] else far for j in range(classes))
        for i in range(classes)
    )


def check_cost(value: float) -> float:
    """Return a cost as a float.

    Raises:
        InvalidInputError: it is not in the range of costs.
    """
    if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
        raise InvalidInputError(f"expected a number up to {LARGEST_NUMBER:g}, got {value:g}.", field=FIELD)
    return float(value)


def rule_of(costs: Costs, class_names: Sequence[str] | None = None) -> str | None:
    """The shortest rule that gives these costs; None: none does, or it would name too many errors.

    Examples:
        >>> rule_of(((0.0, 1.0, 2.0), (1.0, 0.0, 1.0), (2.0, 1.0, 0.0)))
        'linear'
        >>> rule_of(((0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (50.0, 1.0, 0.0)))
        'all 1 but 2 -> 0 = 50'
    """
    rows = np.array(costs, dtype=np.float64)
    classes, decisions = rows.shape
    if classes != decisions or rows.diagonal().any():
        return None
    for name, power in (("linear", 1), ("quadratic", 2)):
        places = np.arange(classes, dtype=np.float64)
        if np.array_equal(rows, np.abs(np.subtract.outer(places, places)) ** power):
            return name
    values, counts = np.unique(rows[~np.eye(classes, dtype=bool)], return_counts=True)
    usual = float(values[counts.argmax()])
    others = np.argwhere((rows != usual) & ~np.eye(classes, dtype=bool)).tolist()
    if len(others) > MOST_EXCEPTIONS:
        return None
    called = _writable(class_names, classes)
    named = "; ".join(f"{called[i]} -> {called[j]} = {_plain(rows[i, j])}" for i, j in others)
    return f"all {_plain(usual)}{f' but {named}' if named else ''}"


def rules_hint(classes: int | None, class_names: Sequence[str] | None = None) -> str:
    """The rules with examples that fit the classes.

    Examples:
        >>> rules_hint(3, ["nevus", "wart", "melanoma"])[:90]
        'A rule is one of: linear; quadratic; all 1 but melanoma -> nevus = 50; blocks 1, 10: nevus'
    """
    rules = RULES if classes is None else _rules_for(classes, class_names)
    return f"A rule is one of: {'; '.join(rules)}. Or paste a table from a spreadsheet."


def _check_classes(classes: int) -> None:
    if classes < 2:
        raise InvalidInputError(f"expected at least 2 classes, got {classes}.", field=FIELD)


def _rules_for(classes: int, names: Sequence[str] | None) -> tuple[str, ...]:
    called = _writable(names, classes)
    if classes == 2:
        return (f"{RATIO} (a missed case to a false alarm)", f"all 1 but {called[1]} -> {called[0]} = 50")
    rest = ", ".join(called[1:]) if classes <= 4 else f"{called[1]}, ..., {called[-1]}"
    exception = f"all 1 but {called[-1]} -> {called[0]} = 50"
    return ("linear", "quadratic", exception, f"blocks 1, 10: {called[0]} | {rest}")


def _writable(names: Sequence[str] | None, classes: int) -> list[str]:
    """The names of the classes, or the number of a class whose name a rule would tear apart."""
    if names is None:
        return [str(index) for index in range(classes)]
    return [
        str(index) if any(sign in name for sign in ("->", *";=,|\n")) else name
        for index, name in enumerate(names)
    ]


def _plain(number: float) -> str:
    return repr(float(number)).removesuffix(".0")
