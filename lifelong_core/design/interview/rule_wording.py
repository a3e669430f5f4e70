"""Rules for costs in words: examples for hints, and the rule that gives some costs."""

from collections.abc import Sequence

import numpy as np

from lifelong_core.design.interview.cost_builders import Costs

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


def rules_hint(classes: int | None, class_names: Sequence[str] | None = None) -> str:
    """The rules with examples that fit the classes.

    Examples:
        >>> rules_hint(3, ["nevus", "wart", "melanoma"])[:90]
        'A rule is one of: linear; quadratic; all 1 but melanoma -> nevus = 50; blocks 1, 10: nevus'
    """
    rules = RULES if classes is None else _rules_for(classes, class_names)
    return f"A rule is one of: {'; '.join(rules)}. Or paste a table from a spreadsheet."


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
