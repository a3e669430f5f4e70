"""Costs from a text: a rule in words, a pasted table, or nothing that is known here."""

import re
from collections.abc import Sequence

from lifelong_core.design.interview.cost_builders import (
    FIELD,
    NUMBER,
    Costs,
    block_costs,
    costs_from_table,
    equal_costs_but,
    ordinal_costs,
)
from lifelong_core.errors import InvalidInputError

RULES = (
    "linear",
    "quadratic",
    "all 1 but malignant -> benign = 50",
    "blocks 1, 10: nevus, keratosis | melanoma, carcinoma",
)
"""One example of each rule."""

RULES_HINT = f"A rule is one of: {'; '.join(RULES)}. Or paste a table from a spreadsheet."

ALL_BUT = re.compile(r"all\s+(?P<cost>[^\s]+)(?:\s+but\s+(?P<exceptions>.+))?", re.IGNORECASE | re.DOTALL)
EXCEPTION = re.compile(r"(?P<true>.+?)\s*->\s*(?P<decided>.+?)\s*=\s*(?P<cost>[^\s=]+)")
BLOCKS = re.compile(
    r"blocks\s+(?P<within>[^\s,]+)\s*,\s*(?P<across>[^\s:]+)\s*:\s*(?P<blocks>.+)", re.IGNORECASE | re.DOTALL
)
TABLE = re.compile(r"\t|;[ \t]*\S|[^\W\de_]")
"""What only tables have: tabs, semicolons within a line, names."""
BEGINNINGS = ("linear", "quadratic", "all ", "blocks ")


def costs_from_text(text: str, classes: int | None, class_names: Sequence[str] | None = None) -> Costs | None:
    """Costs from a rule or from a table with names, tabs or decimal commas; None for any other text.

    `linear` and `quadratic` are for classes in an order; `all 1 but malignant -> benign = 50; ...` names errors with
    another cost, the true class first; `blocks 1, 10: a, b | c` has a cost within and one across blocks. Classes are
    named, or numbered from 0.

    Args:
        text: what was typed or pasted.
        classes: number of classes; None: unknown, for which there is no rule.
        class_names: names of the classes.

    Raises:
        InvalidInputError: the text begins like a rule or is a table, and has a mistake.

    Examples:
        >>> costs_from_text("all 1 but malignant -> benign = 50", 2, ["benign", "malignant"])
        ((0.0, 1.0), (50.0, 0.0))
        >>> costs_from_text("0, 1; 9, 0", 2) is None
        True
    """
    given = text.strip()
    is_rule = given.casefold().startswith(BEGINNINGS)
    is_table = "\n" in given and TABLE.search(given) is not None
    if given.startswith("[") or not (is_rule or is_table):
        return None
    if classes is None:
        raise InvalidInputError(
            "the number of classes is not known.", field=FIELD, hint="State the number of classes first."
        )
    if is_rule:
        return _by_rule(given, classes, class_names)
    return costs_from_table(given, classes, class_names)


def _by_rule(text: str, classes: int, names: Sequence[str] | None) -> Costs:
    match text.casefold():
        case "linear":
            return ordinal_costs(classes)
        case "quadratic":
            return ordinal_costs(classes, power=2)
        case _:
            pass
    if (found := ALL_BUT.fullmatch(text)) is not None:
        parts = re.split(r"[;\n]", found["exceptions"] or "")
        exceptions = dict(_exception(part, classes, names) for part in parts if part.strip())
        return equal_costs_but(classes, exceptions, cost=_number(found["cost"]))
    if (found := BLOCKS.fullmatch(text)) is not None:
        blocks = [
            [_class(one, classes, names) for one in block.split(",") if one.strip()]
            for block in re.split(r"[|\n]", found["blocks"])
        ]
        within, across = _number(found["within"]), _number(found["across"])
        return block_costs(classes, [block for block in blocks if block], within=within, across=across)
    raise InvalidInputError(f"{text[:80]!r} cannot be read as a rule.", field=FIELD, hint=RULES_HINT)


def _exception(text: str, classes: int, names: Sequence[str] | None) -> tuple[tuple[int, int], float]:
    found = EXCEPTION.fullmatch(text.strip())
    if found is None:
        raise InvalidInputError(
            f"{text.strip()[:80]!r} is no error with its cost.",
            field=FIELD,
            hint="Write true class -> decided class = cost, with semicolons between several.",
        )
    pair = (_class(found["true"], classes, names), _class(found["decided"], classes, names))
    return pair, _number(found["cost"])


def _class(text: str, classes: int, names: Sequence[str] | None) -> int:
    typed = text.strip().casefold()
    folded = [name.casefold() for name in names or ()]
    if folded.count(typed) == 1:
        return folded.index(typed)
    if typed.isdecimal() and int(typed[:9]) < classes and not any(name.isdecimal() for name in folded):
        return int(typed)
    known = ", ".join(names) if names else f"0 to {classes - 1}"
    raise InvalidInputError(
        f"{text.strip()[:80]!r} is none of the classes.", field=FIELD, hint=f"The classes are {known}."[:1000]
    )


def _number(text: str) -> float:
    if NUMBER.fullmatch(text) is None:
        raise InvalidInputError(f"{text[:40]!r} is no number.", field=FIELD, hint="For example 0.5.")
    return float(text.replace(",", "."))
