"""Documents stored as text, unchanged: their size is limited on write, and they are parsed on demand."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import sqlalchemy as sa

from lifelong_core.deploy.documents import canonical
from lifelong_core.errors import InvalidInputError, PayloadTooLargeError, UnavailableError

LARGEST_DOCUMENT = 4 * 2**20
"""Bytes of an interview or a recommendation: enough for a cost matrix of some 500 classes."""

Value = TypeVar("Value")


def document_text(write: Callable[[], str], *, field: str) -> str:
    """A document as the database keeps it.

    Args:
        write: gives it as JSON.
        field: how errors name it.

    Raises:
        PayloadTooLargeError: it is larger than LARGEST_DOCUMENT.
        InvalidInputError: it holds what JSON cannot, half a character for instance.
    """
    return _bounded(write, LARGEST_DOCUMENT, field)


def values_text(values: Mapping[str, Any], *, most: int, field: str) -> str:
    """JSON values as the database keeps them.

    Args:
        values: a JSON object.
        most: bytes that they may take.
        field: how errors name them.

    Raises:
        PayloadTooLargeError: they take more.
        InvalidInputError: a value is none of JSON, nan among them.
    """
    return _bounded(lambda: canonical(values), most, field)


def read_kept(read: Callable[[str], Value], text: str, *, name: str) -> Value:
    """What `read` makes of a text of the database.

    Raises:
        UnavailableError: it differs from the stored form: it was changed, or a newer version wrote it.
    """
    try:
        return read(text)
    except InvalidInputError as error:
        raise damage_error(name, str(error)) from error


def as_bytes(connection: sa.Connection, column: sa.Column[str]) -> sa.ColumnElement[Any]:
    """A column of texts, as bytes on SQLite: its driver refuses a whole result for one text that is not UTF-8."""
    if connection.dialect.name == "sqlite":
        return sa.cast(column, sa.LargeBinary).label(column.name)
    return column


def damage_error(name: str, reason: str) -> UnavailableError:
    """The stored document differs from the written one."""
    return UnavailableError(f"{name} is damaged: {reason}", hint="Bring the row back from a backup.")


def text_digest(*texts: str) -> str:
    """SHA-256 (hex) over texts, each with its length, so that nothing can move from one to the next."""
    digest = hashlib.sha256()
    for text in texts:
        content = text.encode()
        digest.update(f"{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


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
