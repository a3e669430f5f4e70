"""Reading and writing of JSON documents of value types."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, Self, cast

import numpy as np

from lifelong_core.values.errors import InvalidInputError


def canonical(document: Mapping[str, Any]) -> str:
    """JSON with sorted keys and without white space: equal documents give equal strings, and floats keep every bit."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parse_document(text: str, *, field: str) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        InvalidInputError: not JSON, or not an object.
    """
    try:
        document = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError("expected a JSON document.", field=field) from error
    if not isinstance(document, dict):
        raise InvalidInputError("expected a JSON object.", field=field)
    return cast("dict[str, Any]", document)


def take_fields(
    document: object, version: int, *, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the fields of a document without its `schema_version`, which must be `version`.

    Raises:
        InvalidInputError: another version, or a field is missing or unknown.
    """
    if not isinstance(document, Mapping):
        raise InvalidInputError("expected an object.", field="document")
    fields = dict(cast("Mapping[str, Any]", document))
    found_version = fields.pop("schema_version", None)
    if found_version != version:
        raise InvalidInputError(
            f"expected {version}, got {str(found_version)[:80]!r}.",
            field="schema_version",
            hint="Write the document with this version of the product.",
        )
    for name in required:
        if name not in fields:
            raise InvalidInputError("this field is missing.", field=name)
    for name in fields:
        if name not in required and name not in optional:
            raise InvalidInputError("this field is unknown.", field=str(name)[:80])
    return fields


class FlatDocument:
    """Mixin for frozen dataclasses whose fields are JSON values or arrays."""

    def to_document(self) -> dict[str, Any]:
        """All fields as JSON values; every number survives the round trip exactly."""
        values = asdict(self)  # type: ignore[arg-type] # only dataclasses mix this in
        plain = {
            name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()
        }
        return {"schema_version": 1, **plain}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote.

        Raises:
            InvalidInputError: a field is missing or unknown.
        """
        names = tuple(item.name for item in fields(cls))  # type: ignore[arg-type]
        return cls(**take_fields(document, 1, required=names))
