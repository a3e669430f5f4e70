"""Typed answers as values."""

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from lifelong_core.design.interview.class_names import ClassLookup
from lifelong_core.design.interview.cost_builders import rules_hint
from lifelong_core.design.interview.cost_rules import LONGEST_RULE, costs_from_text
from lifelong_core.design.interview.cost_tables import LONGEST_TABLE
from lifelong_core.design.method.schema import AnswerText, Question
from lifelong_core.design.problem_fingerprint import MOST_CLASSES, Answers, ProblemFingerprint
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.validation_errors import format_value

YES_NO: Mapping[str, bool] = MappingProxyType(
    {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
)


NUMBER = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?")
NAMED_NUMBER = re.compile(
    r"(?P<name>.{1,200}?) ?[:=] ?(?P<number>[-+.\deE]{1,60}(?:,\d{1,30}(?=[ ,;]|$))?(?: ?%)?)(?:[ ,;]+|$)"
)
"""In a text whose blanks are single."""
DECIMAL_COMMA = re.compile(r"\d,\d")


def parse_answer(
    question: Question,
    text: str,
    *,
    class_names: Sequence[str] | None = None,
    classes: int | None = None,
    answers: Answers | None = None,
    is_document: bool = False,
    target_class: int | None = None,
) -> object:
    """Return the value of a typed answer, as `Interview.answer` takes it.

    Accepted are: yes and no; an option by its number, its label or its value, or by the beginning of one where
    that is clear; numbers, also as '10 %'; a class by its name or its number, from 0; a value for each class as '0.9,
    0.1' or 'benign: 0.9, malignant: 0.1'; a matrix as rows, '0, 1; 9, 0', on lines of their own or as JSON; costs also
    by a rule or as a pasted table, see `cost_rules`.

    Args:
        question: the question.
        text: what was typed.
        class_names: the names of the classes.
        classes: their number, where they have no names; rules for costs need it.
        answers: the other answers: numbers and beginnings are those of the options that they leave, as the terminal
            shows them, and other options are refused; None: all options are read.
        is_document: whether the text stands in a document, which may contradict itself: all options are read and
            numbered, whatever `answers` leave; only errors list what they leave.
        target_class: the class that must be found, for costs such as `50:1`; None: class 1.

    Raises:
        InvalidInputError: the text is no answer to this question; the message says what is expected.

    Examples:
        >>> from lifelong_core.design import next_questions
        >>> classes, scores, *_ = next_questions(ProblemFingerprint())
        >>> parse_answer(classes, "2"), parse_answer(scores, "y")
        (2, True)
        >>> parse_answer(scores, "perhaps")
        Traceback (most recent call last):
        ...
        lifelong_core.values.errors.InvalidInputError: class_scores_available: expected yes or no, got 'perhaps'. \
Type y (yes, scores) or n (no, decisions only).
    """
    longest = LONGEST_TABLE if question.kind == "matrix" else LONGEST_RULE
    if len(text) > longest:
        raise _refusal(question, f"an answer has at most {longest:,} characters, this one has {len(text):,}.")
    given = " ".join(text.split()) if question.kind != "matrix" else text.strip()
    if not given:
        raise _refusal(question, "expected an answer, got nothing.")
    match question.kind:
        case "choice" | "yes_no":
            offered = question.answers if answers is None else question.offered(answers)
            return _option(question, given, offered, is_document=is_document)
        case "class":
            value: object = _class(question, given, ClassLookup(class_names, None))
        case "class_values":
            value = _class_values(question, given, class_names or ())
        case "matrix":
            count = len(class_names) if class_names else classes
            positive = target_class if target_class in (0, 1) else 1
            rule = costs_from_text(given, count, class_names, positive=positive)
            value = _matrix(question, given, count, class_names) if rule is None else rule
        case "count":
            value = _whole_number(question, given)
        case "number" if given == "1":
            raise _refusal(question, "1 may be 1 % or 100 %.", "Type 1 % or 100 %.")
        case "number":
            value = _number(question, given)
        case "text" if NUMBER.fullmatch(given) or given.casefold() in YES_NO:
            raise _refusal(question, f"expected a name, got {format_value(given)}.")
        case "text":
            value = given
    _check(question, value, given)
    return value


def parse_number(text: str) -> float | None:
    """Return a number or a percentage; None for any other text.

    Examples:
        >>> parse_number("10 %"), parse_number("1e-3"), parse_number("0,1")
        (0.1, 0.001, None)
    """
    joined = _joined(text)
    digits = joined.removesuffix("%")
    if not NUMBER.fullmatch(digits):
        return None
    return float(Decimal(digits) / 100 if joined.endswith("%") else Decimal(digits))


def _refusal(question: Question, message: str, hint: str | None = None) -> InvalidInputError:
    return InvalidInputError(message, field=question.field, hint=hint or f"For example: {question.example}")


def _check(question: Question, value: object, text: str) -> None:
    """Check bounds and sums by the rules of the fingerprint, with an example in the hint."""
    try:
        ProblemFingerprint().with_answer(question.field, value)
    except InvalidInputError as error:
        hint = None
        if isinstance(value, float) and value > 1 and text.endswith("%"):
            hint = "A share is at most 100 %."
        elif isinstance(value, float) and 1 < value <= 100:
            hint = f"{value:g} % is {value / 100:g}."
        raise _refusal(question, error.message, hint) from error


def _option(question: Question, text: str, offered: Sequence[AnswerText], *, is_document: bool) -> object:
    typed = text.casefold()
    read = question.answers if is_document else offered
    if question.kind == "yes_no" and typed in YES_NO:
        return YES_NO[typed]
    if text.isdecimal() and len(text) <= 4 and 1 <= int(text) <= len(read):
        return read[int(text) - 1].value
    for fits, options in ((str.__eq__, question.answers), (str.startswith, read)):
        found = {
            option.value for option in options for name in _names(option) if fits(name.casefold(), typed)
        }
        if len(found) == 1:
            value = found.pop()
            if all(option.value != value for option in read):
                option = next(option for option in options if option.value == value)
                raise _refusal(
                    question,
                    f"{option.label!r} is not offered for these answers.",
                    f"{option.meaning} {_listed(offered, is_document=is_document)}",
                )
            return value
        if len(found) > 1:
            which = " or ".join(option.label for option in question.answers if option.value in found)
            raise _refusal(
                question, f"{format_value(text)} may be {which}.", "Type more of it, or its number."
            )
    if question.kind == "yes_no":
        labels = {option.value: option.label for option in question.answers}
        raise _refusal(
            question,
            f"expected yes or no, got {format_value(text)}.",
            f"Type y ({labels[True]}) or n ({labels[False]}).",
        )
    raise _refusal(
        question,
        f"{format_value(text)} is none of the answers.",
        _listed(offered, is_document=is_document),
    )


def _listed(offered: Sequence[AnswerText], *, is_document: bool) -> str:
    """How to give one of the offered options: as a value in a document, by its number in an interview."""
    if is_document:
        return f"Write one of: {', '.join(f'{option.value} ({option.label})' for option in offered)}."
    numbered = (f"{number} {option.label}" for number, option in enumerate(offered, start=1))
    return f"Type a number: {', '.join(numbered)}."


def _names(option: AnswerText) -> tuple[str, str]:
    return option.label, str(option.value)


def _class(question: Question, text: str, lookup: ClassLookup) -> int:
    found = lookup.find(text)
    if found is not None:
        return found
    typed, names = text.casefold(), lookup.names
    if lookup.fits_several(text):
        raise _refusal(
            question,
            f"{format_value(text)} may be several classes, which differ only in case.",
            "Type the name exactly, or the number of the class, from 0.",
        )
    beginnings = [k for k, name in enumerate(lookup.folded) if name.startswith(typed)]
    if len(beginnings) == 1:
        return beginnings[0]
    if not names:
        raise _refusal(
            question,
            f"expected the number of a class, got {format_value(text)}.",
            "The classes have no names here. The first one is 0, the second 1.",
        )
    known = ", ".join(f"{k} {name}" if lookup.has_numbers else name for k, name in enumerate(names))
    raise _refusal(
        question, f"{format_value(text)} is none of the classes.", f"Type a name or a number: {known}."[:1000]
    )


def _number(question: Question, text: str) -> float:
    """A number, or a percentage."""
    if DECIMAL_COMMA.search(text):
        raise _refusal(
            question,
            f"expected a number with a decimal point, got {format_value(text)}.",
            f"Write {text.replace(',', '.')}.",
        )
    value = parse_number(text)
    if value is None:
        raise _refusal(question, f"expected a number, got {format_value(text)}.")
    return value


def _whole_number(question: Question, text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise _refusal(question, f"expected a whole number, got {format_value(text)}.")
    return int(text)


def _class_values(question: Question, text: str, names: Sequence[str]) -> tuple[float, ...]:
    if text.startswith("["):
        values = _json_rows(question, f"[{text}]")[0]
    elif ":" in text or "=" in text:
        values = _named_values(question, text, names)
    else:
        values = _numbers(question, text)
    if names and len(values) != len(names):
        raise _refusal(
            question,
            f"expected {len(names)} numbers, one for each class, got {len(values)}.",
            f"In this order: {', '.join(names)}. Write decimals with a point.",
        )
    return values


def _joined(text: str) -> str:
    """A text with single blanks, and none before a percent sign."""
    return " ".join(text.split()).replace(" %", "%")


def _numbers(question: Question, text: str) -> tuple[float, ...]:
    """Numbers separated by commas, blanks, or both."""
    parts = _joined(text).replace(";", " ").split()
    if len(parts) > 1 and any(DECIMAL_COMMA.search(part) for part in parts):
        raise _refusal(
            question,
            f"{format_value(text)} may be read in several ways.",
            "Write decimals with a point, and a blank between the numbers: 0.9 0.1.",
        )
    return tuple(_number(question, part) for part in " ".join(parts).replace(",", " ").split())


def _named_values(question: Question, text: str, names: Sequence[str]) -> tuple[float, ...]:
    given: dict[int, float] = {}
    lookup = ClassLookup(names, None)
    position = 0
    while position < len(text):
        entry = NAMED_NUMBER.match(text, position)
        if entry is None:
            raise _refusal(question, f"expected a class and its number, got {format_value(text[position:])}.")
        index = _class(question, entry["name"], lookup)
        if index in given:
            raise _refusal(question, f"there are two numbers for the class {format_value(entry['name'])}.")
        given[index] = _number(question, entry["number"])
        position = entry.end()
    missing = [name for k, name in enumerate(names) if k not in given]
    if missing or sorted(given) != list(range(len(given))):
        raise _refusal(
            question, f"expected a number for each class; missing: {', '.join(missing) or 'some'}."
        )
    return tuple(given[k] for k in range(len(given)))


def _matrix(
    question: Question, text: str, classes: int | None, names: Sequence[str] | None
) -> tuple[tuple[float, ...], ...]:
    if text.startswith("["):
        return _json_rows(question, text)
    lines = [line for line in re.split(r"[;\n]", text) if line.strip()]
    if len(lines) > MOST_CLASSES:
        raise _refusal(question, f"expected at most {MOST_CLASSES} rows, got {len(lines):,}.")
    rows = tuple(_numbers(question, line) for line in lines)
    if len(rows) < 2:
        raise _refusal(
            question,
            "expected one row of numbers for each true class.",
            f"Put a semicolon between the rows: {_example_rows(classes)} - a row for each true class, a column for"
            f" each decision. {rules_hint(classes, names)}",
        )
    return rows


def _example_rows(classes: int | None) -> str:
    """Costs of two classes, or the first rows of more."""
    if classes is None or classes == 2:
        return "0, 1; 9, 0"
    return "0, 1, 1; 1, 0, 1; 9, 9, 0" if classes == 3 else "0, 1, 1, 9, ...; 1, 0, 1, 9, ...; ..."


def _json_rows(question: Question, text: str) -> tuple[tuple[float, ...], ...]:
    try:
        rows: Any = json.loads(text)
        return tuple(tuple(float(entry) for entry in row) for row in rows)
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise _refusal(question, f"expected numbers in brackets, got {format_value(text)}.") from error
