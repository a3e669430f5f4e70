"""The base class of things that are stored or shown: JSON documents and schemas follow from their fields.

An entity is a frozen dataclass. The text under a field is its meaning, and its description in the API. Pydantic
derives the JSON document, its schema and the way back; making an entity costs nothing more than a dataclass.
"""

import hashlib
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from functools import cache
from threading import RLock
from typing import Annotated, Any, Self, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    ConfigDict,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from lifelong_core.values.arrays import Floats, read_only
from lifelong_core.values.errors import InvalidInputError, UnavailableError
from lifelong_core.values.validation_errors import as_input_error

Value = TypeVar("Value")
MODEL_KEY = "x-model"
"""Key of a JSON schema that the description of the API replaces by the schema of a model."""
RESTORE = "Bring the row back from a backup."
"""Hint of an error for a stored document that was changed."""
_building = RLock()

Moment: TypeAlias = Annotated[
    datetime, PlainSerializer(datetime.isoformat, return_type=str, when_used="json")
]
"""A point in time, aware; as JSON in ISO 8601 with its offset."""


class Entity:
    """A thing that is stored or shown.

    What people see are the fields of the class that an answer names; a subclass adds what only the store needs (row
    ids), so that an answer never shows it.
    """

    __pydantic_config__ = ConfigDict(use_attribute_docstrings=True, arbitrary_types_allowed=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The schema of pydantic; a document has all fields, those with a default included."""
        described = handler(schema)
        fields_of = handler.resolve_ref_schema(described)
        if handler.mode == "serialization" and "properties" in fields_of:
            fields_of["required"] = list(fields_of["properties"])
        return described

    def to_document(self) -> dict[str, Any]:
        """The fields and computed fields as JSON values."""
        return document_of(self, type(self))

    @classmethod
    def of(cls, entity: object, **further: Any) -> Self:
        """Return an entity of this class with the fields of another object, and with further fields."""
        names = [item.name for item in fields(cast("Any", cls)) if item.name not in further]
        return cls(**{name: getattr(entity, name) for name in names}, **further)

    @classmethod
    def from_document(cls, document: object) -> Self:
        """Return the entity that `to_document` wrote; computed fields are ignored.

        Raises:
            InvalidInputError: a field is missing or has an illegal value.
        """
        return read_document(document, cls)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    # Descriptions are read from the source, and two threads that parse at once fail on some versions of Python 3.11.
    with _building:
        return TypeAdapter(kind)


def document_of(value: Any, kind: Any) -> Any:
    """The JSON values of an answer of a declared type; fields that only a subclass has are left out."""
    return _adapter(kind).dump_python(value, mode="json", by_alias=True, warnings=False)


def read_document(document: object, kind: Any) -> Any:
    """The value of a declared type that `document_of` wrote.

    Raises:
        InvalidInputError: a field is missing or has an illegal value.
    """
    try:
        return _adapter(kind).validate_python(document)
    except ValidationError as error:
        raise as_input_error(error, kind) from error


def schema_of(path: str) -> WithJsonSchema:
    """Return an annotation with the schema of a model, without its import.

    Args:
        path: `package.module:Class`.
    """
    return WithJsonSchema({MODEL_KEY: path})


def read_kept(read: Callable[[str], Value], text: str, *, name: str) -> Value:
    """Parse a stored text with `read`.

    Raises:
        UnavailableError: `read` refuses the text: it was changed, or a newer version wrote it.
    """
    try:
        return read(text)
    except InvalidInputError as error:
        raise damage_error(name, str(error)) from error


def damage_error(name: str, reason: str) -> UnavailableError:
    """Return the error for a stored document that was changed."""
    return UnavailableError(f"{name} is damaged: {reason}", hint=RESTORE)


def text_digest(*texts: str) -> str:
    """Return the SHA-256 (hex) of texts, each with its length, so that different splits give different digests."""
    digest = hashlib.sha256()
    for text in texts:
        content = text.encode()
        digest.update(f"{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _numbers(array: NDArray[Any]) -> list[Any]:
    return array.tolist()


def _array(numbers: Any) -> Floats:
    return read_only(np.asarray(numbers, dtype=np.float64))


Vector: TypeAlias = Annotated[
    Floats,
    PlainSerializer(_numbers, return_type=list[float]),
    PlainValidator(_array, json_schema_input_type=list[float]),
]
"""An array of shape (N,); as JSON a list."""
Matrix: TypeAlias = Annotated[
    Floats,
    PlainSerializer(_numbers, return_type=list[list[float]]),
    PlainValidator(_array, json_schema_input_type=list[list[float]]),
]
"""An array of shape (N, M); as JSON a list of rows."""


class Described:
    """Annotation: JSON values that are kept as they are, described by the schema of another type.

    Args:
        kind: the type.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The schema of the other type."""
        del schema
        return handler(_adapter(self._kind).core_schema)
