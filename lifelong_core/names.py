"""Names of tasks, models, environments and classes, keys of patients, and reasons for decisions."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from lifelong_core.errors import InvalidInputError

NAME_PATTERN = r"[a-z0-9][a-z0-9._-]{0,63}"
_LEGAL = re.compile(NAME_PATTERN)

DEFAULT_ENVIRONMENT = "default"


LONGEST_REASON = 200
_INDEX = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"[+-]?[\d.,]*\d[\d.,]*")
_MISSING = frozenset({"", "nan", "none", "null", "na", "n/a", "#n/a", "<na>"})


def composed(text: str) -> str:
    """The text in Unicode's form NFC, in which names are compared: macOS names files in NFD."""
    return unicodedata.normalize("NFC", text)


def is_missing(key: str) -> bool:
    """Whether a key of a patient or study is what programs write where there is none: an empty cell, NaN, None, null.

    Examples:
        >>> is_missing(" NaN "), is_missing("0")
        (True, False)
    """
    return key.strip().casefold() in _MISSING


def are_numbers(class_names: Sequence[str]) -> bool:
    """Whether some class has a number as its name, so that a label "2" is a name and no index."""
    return any(_NUMBER.fullmatch(name.strip()) for name in class_names)


def class_index(label: int | str, class_names: Sequence[str]) -> int | None:
    """Index of a class given by name or index; None: there is no such class.

    A whole number means the same as its text: a name, or an index where no class has a number as its name.

    Examples:
        >>> [class_index(label, ("1", "2", "3")) for label in (1, "1", 0)], class_index(1, ("nevus", "melanoma"))
        ([0, 0, None], 1)
    """
    text, names = composed(str(label)), [composed(name) for name in class_names]
    if text in names:
        return names.index(text)
    is_index = _INDEX.fullmatch(text) and not are_numbers(names) and int(text) < len(names)
    return int(text) if is_index else None


def describe_labels(class_names: Sequence[str]) -> str:
    """How to write a label: the names, and the indices where `class_index` takes them."""
    indices = "" if are_numbers(class_names) else f", or an index in 0..{len(class_names) - 1}"
    return f"Give one of {', '.join(class_names)}{indices}."


def check_name(value: str, *, field: str) -> str:
    """A legal name of a task, model or environment.

    Raises:
        InvalidInputError: the name has other characters or is too long.
    """
    if not _LEGAL.fullmatch(value):
        raise InvalidInputError(
            f"{value[:80]!r} is not a legal name." if value else "the name is empty.",
            field=field,
            hint="Use 1 to 64 lower-case letters, digits, '.', '_' or '-', starting with a letter or digit.",
        )
    return value


def _legal_name(value: str) -> str:
    try:
        return check_name(value, field="name")
    except InvalidInputError as error:  # the validation of the document adds the field
        raise ValueError(f"{error.message} {error.hint}") from error


Name: TypeAlias = Annotated[str, AfterValidator(_legal_name)]
"""A name of a task, model or environment in a document or a query."""


def check_reason(value: str, *, hint: str, field: str = "reason") -> str:
    """A reason for a decision, 1 to 200 printable characters.

    Raises:
        InvalidInputError: it is empty, too long or cannot be printed.
    """
    if not value.strip() or len(value) > LONGEST_REASON or not value.isprintable():
        raise InvalidInputError(
            f"expected 1 to {LONGEST_REASON} printable characters.", field=field, hint=hint
        )
    return value
