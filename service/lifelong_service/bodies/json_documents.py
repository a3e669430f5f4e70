"""JSON in request bodies, by the rules of the standard and within limits of its structure.

The structure is checked on the bytes, before they are parsed. The parser itself limits the nesting of lists and objects
to 200 levels.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel
from pydantic_core import from_json

from lifelong_core.values.errors import (
    InvalidInputError,
    PayloadTooLargeError,
)
from lifelong_core.values.validation_errors import read_json
from lifelong_service.bodies.parsing import SMALL_BODY

Document = TypeVar("Document", bound=BaseModel)
NUL = "a text holds the character U+0000, which no database keeps"
SEE_OPENAPI = "See /openapi.json for what is expected."
MAXIMUM_NAMES = 10_000
"""Feedback on 1,000 predictions has 7,000 names."""
MAXIMUM_CONTAINERS = 50_000
"""An empty list takes 3 bytes of text and up to 300 bytes of memory."""
MAXIMUM_VALUES = 250_000
"""Up to 80 bytes of memory each while they are parsed. 10,000 rows of 20 classes are some 4 MB."""
_LIMITS = (
    ("names", b":", MAXIMUM_NAMES),
    ("lists and objects", b"[{", MAXIMUM_CONTAINERS),
    ("values", b",[{", MAXIMUM_VALUES),  # at most one value follows each of these
)
_CHUNK = 1 << 18
_QUOTE = ord('"')
_ESCAPED_NUL = b"\\u0000"
_HOLDING_TEXTS = frozenset((str, list, dict))


def read_values(body: bytes) -> Any:
    """Return the values in a JSON body, by the rules of the standard.

    Python's own reader accepts NaN and lone surrogates, which a later JSON answer cannot contain.

    Raises:
        ValueError: it is not JSON.
        PayloadTooLargeError: it has too many parts.
    """
    _check_size(body)
    return from_json(body, allow_inf_nan=False, cache_strings="none")


def parse_document(body: bytes, document: type[Document]) -> Document:
    """Return the JSON body as a validated document.

    Raises:
        PayloadTooLargeError: it has too many parts.
        InvalidInputError: it is not JSON, or does not fit; the message names the first field at fault.
    """
    _check_size(body)
    try:
        parsed = read_json(document, body, is_request=True)
    except InvalidInputError as error:
        raise body_error(error) from error
    if (field := field_with_nul(body)) is not None:
        raise InvalidInputError(f"{NUL}.", field=field, hint="Send it without.")
    return parsed


def _check_size(body: bytes) -> None:
    if len(body) > SMALL_BODY:  # a smaller one cannot exceed the limits
        check_structure(body)


def body_error(error: InvalidInputError) -> InvalidInputError:
    """Return an error of a document as an error of the request body."""
    field = "body" if error.field in (None, "document") else error.field
    return InvalidInputError(error.message, field=field, hint=error.hint or SEE_OPENAPI)


def field_with_nul(body: bytes) -> str | None:
    """Return the place of a text or field name with U+0000, which PostgreSQL refuses and SQLite truncates."""
    if _ESCAPED_NUL not in body:
        return None
    place = _place_of_nul(from_json(body))
    return None if place is None else ".".join(map(str, place)) or "body"


def _place_of_nul(value: Any) -> tuple[int | str, ...] | None:
    """Names and indices that lead to the text; those of the object where it is a name."""
    if isinstance(value, str):
        return () if "\0" in value else None
    parts: Iterable[tuple[int | str, Any]] = ()
    if isinstance(value, dict):
        if any("\0" in name for name in value):
            return ()
        parts = value.items()
    elif isinstance(value, list) and _HOLDING_TEXTS.intersection(map(type, value)):
        parts = enumerate(value)
    for name, part in parts:
        if (place := _place_of_nul(part)) is not None:
            return (name, *place)
    return None


def check_structure(text: bytes) -> None:
    """Check that a JSON text has few enough parts to be parsed; characters inside strings do not count.

    Args:
        text: any bytes; the parser rejects invalid JSON.

    Raises:
        PayloadTooLargeError: it has too many names, lists and objects, or values.
    """
    exact: bytes | None = None
    for what, characters, maximum in _LIMITS:
        if _count(text, characters) > maximum:  # texts included
            exact = without_texts(text) if exact is None else exact
            if (count := _count(exact, characters)) > maximum:
                raise PayloadTooLargeError(
                    f"the JSON document has {count} {what}, at most {maximum} are accepted.",
                    field="body",
                    hint="Send less; send arrays as npy or npz where the call accepts them.",
                )


def without_texts(text: bytes) -> bytes:
    """Return a JSON text without the content of its strings.

    Examples:
        >>> without_texts(b'{"a, b": ["c", 1]}')
        b'{": [", 1]}'
    """
    if b"\\" in text:
        text = text.replace(rb"\\", b"  ").replace(rb"\"", b"  ")
    parts: list[bytes] = []
    is_inside = np.uint8(0)
    for begin in range(0, len(text), _CHUNK):
        part = np.frombuffer(text, np.uint8, min(_CHUNK, len(text) - begin), begin)
        inside = (np.cumsum(part == _QUOTE, dtype=np.uint8) + is_inside) & 1
        is_inside = inside[-1]
        parts.append(part[inside == 0].tobytes())
    return b"".join(parts)


def _count(text: bytes, characters: bytes) -> int:
    return sum(text.count(character) for character in characters)
