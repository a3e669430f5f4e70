"""Documents stored as unchanged text, limited in size; `entities.entity.read_kept` parses them on demand."""

from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

from lifelong_core.deploy.documents import canonical
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError

LARGEST_DOCUMENT = 4 * 2**20
"""Largest size in bytes of an interview or a recommendation: enough for a cost matrix of about 500 classes."""


def document_text(write: Callable[[], str], *, field: str) -> str:
    """Return the stored text of a document.

    Args:
        write: returns the document as JSON.
        field: its name in errors.

    Raises:
        PayloadTooLargeError: it is larger than LARGEST_DOCUMENT.
        InvalidInputError: it cannot be written as JSON, e.g. for a lone surrogate.
    """
    return _bounded(write, LARGEST_DOCUMENT, field)


def values_text(values: Mapping[str, Any], *, most: int, field: str) -> str:
    """Return the stored text of JSON values.

    Args:
        values: a JSON object.
        most: largest size in bytes.
        field: their name in errors.

    Raises:
        PayloadTooLargeError: the text is larger.
        InvalidInputError: a value cannot be written as JSON, e.g. nan.
    """
    return _bounded(lambda: canonical(values), most, field)


def as_bytes(connection: sa.Connection, column: sa.Column[str]) -> sa.ColumnElement[Any]:
    """Return a text column, cast to bytes on SQLite, whose driver refuses a whole result for one text not in UTF-8."""
    if connection.dialect.name == "sqlite":
        return sa.cast(column, sa.LargeBinary).label(column.name)
    return column


def _bounded(write: Callable[[], str], most: int, field: str) -> str:
    try:
        text = write()
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            "this cannot be written as JSON.",
            field=field,
            hint="Use text, finite numbers, lists and objects.",
        ) from error
    if size > most:
        raise PayloadTooLargeError(
            f"this takes {size} bytes, at most {most} are kept.",
            field=field,
            hint="Leave out what is not needed; large data belongs in a file.",
        )
    return text
