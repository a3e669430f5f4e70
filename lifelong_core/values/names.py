"""Names of tasks, models and environments, reasons for decisions, and characters that are unsafe to print."""

import re
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from lifelong_core.values.errors import InvalidInputError

NAME_PATTERN = r"[a-z0-9][a-z0-9._-]{0,63}"
_LEGAL = re.compile(NAME_PATTERN)

DEFAULT_ENVIRONMENT = "default"
MAXIMUM_GROUP_LENGTH = 256
"""Characters of the key of a patient or study."""
LONGEST_REASON = 200


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


_CONTROLS = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters but for the tab, line and paragraph separators, marks of the direction of writing, and surrogates,
which no output can encode."""


def escape_controls(text: str, *, keep_lines: bool = False) -> str:
    r"""The text with its control characters written as escape sequences.

    Args:
        text: from anywhere: names of files may hold all characters, and people read them in a terminal.
        keep_lines: whether line feeds stay.

    Examples:
        >>> escape_controls("a\x1b[2J\u202e.png\n"), escape_controls("a\n", keep_lines=True)
        ('a\\x1b[2J\\u202e.png\\n', 'a\n')
    """
    if keep_lines:
        return "\n".join(map(escape_controls, text.split("\n")))
    return _CONTROLS.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    r"""Beyond ASCII as JSON writes it: JSON may hold such characters as they are, and stays the same document."""
    character = found[0]
    return character.encode("unicode_escape").decode() if character < " " else f"\\u{ord(character):04x}"
