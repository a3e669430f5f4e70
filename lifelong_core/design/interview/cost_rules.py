"""Costs from a text: a rule in words, or a table."""

from collections.abc import Sequence

from lifelong_core.design.interview.class_names import ClassLookup, number_class_names
from lifelong_core.design.interview.cost_builders import (
    FIELD,
    Costs,
    block_costs,
    equal_costs_but,
    ordinal_costs,
    rules_hint,
)
from lifelong_core.design.interview.cost_tables import check_length, costs_from_table, is_ambiguous, is_number
from lifelong_core.values.errors import InvalidInputError

LONGEST_RULE = 250_000
"""Characters of a rule: 1,000 classes with names of 200 characters, and the signs between them."""


BEGINNINGS = ("all ", "blocks ")


def costs_from_text(
    text: str, classes: int | None, class_names: Sequence[str] | None = None, *, positive: int = 1
) -> Costs | None:
    """Costs from a rule or from a table with names, tabs or decimal commas; None for any other text.

    `linear` and `quadratic` are for classes in an order; `all 1 but malignant -> benign = 50; ...` names errors with
    another cost, the true class first; `blocks 1, 10: a, b | c` has a cost within and one across blocks; `50:1` is the
    cost of a missed case to that of a false alarm, of two classes. Classes are named, or numbered from 0.

    Args:
        text: what was typed or pasted.
        classes: number of classes; None: unknown, for which there is no rule.
        class_names: names of the classes.
        positive: of two classes, the class whose cases may be missed.

    Raises:
        InvalidInputError: the text begins like a rule or is a table, and has a mistake, or it is too long.

    Examples:
        >>> costs_from_text("all 1 but malignant -> benign = 50", 2, ["benign", "malignant"])
        ((0.0, 1.0), (50.0, 0.0))
        >>> costs_from_text("50:1", 2)
        ((0.0, 1.0), (50.0, 0.0))
        >>> costs_from_text("0, 1; 9, 0", 2) is None
        True
    """
    given = text.strip()
    if given.startswith("["):
        return None
    has_rule, has_table = is_rule(given), _is_table(given)
    begins_like_rule = given.casefold().startswith(BEGINNINGS) and not _has_cells_in_each_line(given)
    if not (has_rule or has_table or begins_like_rule):
        return None
    if classes is None:
        raise InvalidInputError(
            "the number of classes is not known.", field=FIELD, hint="State the number of classes first."
        )
    if has_rule or begins_like_rule:
        return _by_rule(given, classes, class_names, positive)
    return costs_from_table(given, classes, class_names)


def needs_more_lines(lines: Sequence[str], classes: int | None) -> bool:
    """Whether typed lines are the beginning of a table of costs, with rows still to come.

    The first line decides: cells of a row or of a header, separated by tabs, semicolons or commas, or as many numbers
    as there are classes. Rules, rows in one line, and JSON are complete.

    Args:
        lines: the lines so far, without empty ones.
        classes: number of classes; None: unknown, so no table is complete.

    Examples:
        >>> needs_more_lines(["0 1 2"], 3), needs_more_lines(["0 1 2", "1 0 1", "2 1 0"], 3)
        (True, False)
        >>> needs_more_lines(["linear"], 3), needs_more_lines(["0, 1; 9, 0"], 2)
        (False, False)
    """
    if classes is None or not lines:
        return False
    first = lines[0].strip()
    cells = _cells_of_row(first, classes)
    if cells is None or first.startswith("[") or is_rule(first):
        return False
    has_header = any(not is_number(cell) for cell in cells[1:])
    return len(lines) < classes + has_header


def is_rule(text: str) -> bool:
    """Whether a text has the form of a rule, perhaps with mistakes in its parts."""
    folded = text.casefold()
    if folded in ("linear", "quadratic") or _ratio(text) is not None:
        return True
    return _all_but(text) is not None or _blocks(text) is not None


def has_letters(text: str) -> bool:
    """Whether a text has letters other than that of an exponent."""
    return any(sign.isalpha() and sign not in "eE" for sign in text)


def _is_table(text: str) -> bool:
    """Whether there are several lines with what only tables have: tabs, semicolons within a line, names."""
    lines = text.splitlines()
    return len(lines) > 1 and any(
        "\t" in line or ";" in line.strip().rstrip("; \t") or has_letters(line) for line in lines
    )


def _has_cells_in_each_line(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return len(lines) > 1 and any(all(sign in line for line in lines) for sign in "\t;,")


def _ratio(text: str) -> tuple[str, str] | None:
    """Both numbers of `50:1`, as reports write it: `costs 50:1`."""
    shortened = text[len("costs") :] if text[:6].casefold() == "costs " else text
    miss, colon, alarm = (part.strip() for part in shortened.partition(":"))
    return (miss, alarm) if colon and is_number(miss) and is_number(alarm) else None


def _all_but(text: str) -> tuple[str, str | None] | None:
    """The cost and the exceptions of `all 1 but ...`."""
    words = text.split(maxsplit=3)
    if len(words) < 2 or words[0].casefold() != "all" or "\t" in text.split("\n", 1)[0]:
        return None
    if len(words) == 2:
        return words[1], None
    return (words[1], words[3] if len(words) > 3 else "") if words[2].casefold() == "but" else None


def _blocks(text: str) -> tuple[str, str, str] | None:
    """The cost within, the cost across and the blocks of `blocks 1, 10: ...`."""
    head, colon, blocks = text.partition(":")
    words = head.split(maxsplit=1)
    if not colon or len(words) < 2 or words[0].casefold() != "blocks" or "\t" in head or "\n" in head:
        return None
    within, comma, across = words[1].partition(",")
    return (within.strip(), across.strip(), blocks) if comma else None


def _by_rule(text: str, classes: int, names: Sequence[str] | None, positive: int) -> Costs:
    check_length(text, LONGEST_RULE, "a rule")
    match text.casefold():
        case "linear":
            return ordinal_costs(classes)
        case "quadratic":
            return ordinal_costs(classes, power=2)
        case _:
            pass
    lookup = ClassLookup(names, classes)
    if (ratio := _ratio(text)) is not None:
        return _costs_of_ratio(*ratio, classes, names, positive)
    if (found := _all_but(text)) is not None:
        cost, listed = found
        return equal_costs_but(classes, _exceptions(listed, lookup), cost=_number(cost))
    if (parts := _blocks(text)) is not None:
        blocks = [
            [_class(one, lookup) for one in block.split(",") if one.strip()]
            for block in parts[2].replace("\n", "|").split("|")
        ]
        return block_costs(
            classes,
            [block for block in blocks if block],
            within=_number(parts[0]),
            across=_number(parts[1]),
            class_names=names,
        )
    raise InvalidInputError(
        f"{text[:80]!r} cannot be read as a rule.", field=FIELD, hint=rules_hint(classes, names)
    )


def _costs_of_ratio(miss: str, alarm: str, classes: int, names: Sequence[str] | None, positive: int) -> Costs:
    if classes != 2:
        raise InvalidInputError(
            f"'{miss}:{alarm}' is for two classes, there are {classes}.",
            field=FIELD,
            hint=rules_hint(classes, names),
        )
    return equal_costs_but(2, {(positive, 1 - positive): _number(miss)}, cost=_number(alarm))


def _exceptions(text: str | None, lookup: ClassLookup) -> dict[tuple[int, int], float]:
    if text is None:
        return {}
    exceptions: dict[tuple[int, int], float] = {}
    parts = [part.strip() for part in text.replace("\n", ";").split(";") if part.strip()]
    if not parts:
        raise InvalidInputError(
            "nothing follows 'but'.", field=FIELD, hint="Write true class -> decided class = cost."
        )
    for part in parts:
        pair, cost = _exception(part, lookup)
        if pair in exceptions:
            raise InvalidInputError(
                f"{part[:80]!r} is a second cost of the same error.",
                field=FIELD,
                hint="Name each error once.",
            )
        exceptions[pair] = cost
    return exceptions


def _exception(part: str, lookup: ClassLookup) -> tuple[tuple[int, int], float]:
    true, arrow, rest = part.partition("->")
    decided, equals, cost = rest.rpartition("=")
    if not (arrow and equals and true.strip() and decided.strip() and cost.strip()):
        raise InvalidInputError(
            f"{part[:80]!r} is no error with its cost.",
            field=FIELD,
            hint="Write true class -> decided class = cost, with semicolons between several."
            + _advice_on_names(lookup),
        )
    pair = (_class(true, lookup), _class(decided, lookup))
    if pair[0] == pair[1]:
        raise InvalidInputError(
            f"{part[:80]!r} names the same class twice.",
            field=FIELD,
            hint="An error has a true class and another one that is decided; a correct decision costs 0.",
        )
    return pair, _number(cost.strip())


def _class(text: str, lookup: ClassLookup) -> int:
    named = text.strip()
    found = lookup.find(named)
    if found is not None:
        return found
    if lookup.fits_several(named):
        raise InvalidInputError(
            f"{named[:80]!r} may be several classes, which differ only in case.",
            field=FIELD,
            hint=f"Write the name exactly, or the number of the class: {number_class_names(lookup.names)}."[
                :1000
            ],
        )
    if not lookup.names:
        known = f"The classes are 0 to {(lookup.classes or 1) - 1}."
    elif lookup.has_numbers:
        known = f"The classes are {number_class_names(lookup.names)}."
    else:
        known = f"The classes are {', '.join(lookup.names)}."
    raise InvalidInputError(
        f"{named[:80]!r} is none of the classes.",
        field=FIELD,
        hint=f"{known[:800]}{_advice_on_names(lookup)}",
    )


def _advice_on_names(lookup: ClassLookup) -> str:
    """Advice for a class whose name has the signs of a rule."""
    is_torn = any(sign in name for name in lookup.names for sign in ("->", *";,|"))
    return " For a name with ; , | or -> write the number of the class." if is_torn else ""


def _number(text: str) -> float:
    if not is_number(text) or (len(text) > 1 and text.isdecimal() and text.startswith("0")):
        raise InvalidInputError(f"{text[:40]!r} is no number.", field=FIELD, hint="For example 0.5.")
    if is_ambiguous(text):
        whole, decimal = text.replace(",", ""), text.replace(",", ".")
        raise InvalidInputError(
            f"{text!r} may be {whole} or {float(decimal):g}.",
            field=FIELD,
            hint=f"Write {whole} or {decimal}.",
        )
    return float(text.replace(",", "."))


def _cells_of_row(line: str, classes: int) -> list[str] | None:
    """The cells of a line that may be a row or a header of a table; None: it is none."""
    for separator in ("\t", ";", ",", None):
        if separator is not None and separator not in line:
            continue
        cells = [cell.strip().strip('"').strip() for cell in line.split(separator)]
        while len(cells) > 1 and not cells[-1]:
            cells.pop()
        known = all(not cell or is_number(cell) or has_letters(cell) for cell in cells)
        if separator is None:
            known = all(is_number(cell) for cell in cells)
        has_names = any(not is_number(cell) for cell in cells)
        if known and classes <= len(cells) <= classes + 1 + has_names:
            return cells
        if separator in ("\t", ";"):
            return None
    return None
