"""Names of tasks, models and environments, and reasons for decisions."""

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
