"""Base classes of documents: frozen, strict, read from and written to JSON; a list stops at its first wrong element."""

from collections.abc import Mapping
from typing import Any, Self, cast

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError, model_validator
from pydantic_core import CoreSchema

from lifelong_core.values.validation_errors import as_input_error, read_json

LISTS = ("list", "tuple", "set", "frozenset")
"""Core schemas of collections, which validate their elements one by one."""


def _stop_at_first_error(schema: object) -> None:
    if isinstance(schema, dict):
        parts = cast("dict[str, object]", schema)
        if parts.get("type") in LISTS:
            parts["fail_fast"] = True
        for part in parts.values():
            _stop_at_first_error(part)
    elif isinstance(schema, list | tuple):
        for part in cast("list[object]", schema):
            _stop_at_first_error(part)


class FailFastModel(BaseModel):
    """A model whose lists stop at their first wrong element: errors on a million elements would take gigabytes.

    Nested models must be of this class, too.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of pydantic, with `fail_fast` in all its lists."""
        schema = handler(source)
        _stop_at_first_error(schema)
        return schema


class Frozen(FailFastModel):
    """An immutable value without unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class FrozenDocument(Frozen):
    """A value that is stored as JSON."""

    def to_document(self) -> dict[str, Any]:
        """The value as JSON values."""
        return self.model_dump(mode="json")

    def to_json(self) -> str:
        """`to_document` as a string, equal for equal values."""
        return self.model_dump_json()

    @classmethod
    def from_document(cls, document: object) -> Self:
        """Return the value that `to_document` wrote.

        Raises:
            InvalidInputError: a field is missing, unknown or has an illegal value; the message names it.
        """
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise as_input_error(error, cls) from error

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the value that `to_json` wrote.

        Raises:
            InvalidInputError: not JSON, or a field is missing, unknown or has an illegal value.
        """
        return read_json(cls, text)


class RequestDocument(FailFastModel):
    """A JSON document in a request body without unknown fields; an error names only the first one."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _keep_one_unknown(cls, given: Any) -> Any:
        """Keep only one unknown field: pydantic would describe each of a million fields, in gigabytes."""
        if not isinstance(given, Mapping):
            return given
        fields = cast("Mapping[object, Any]", given)
        if len(fields) <= len(cls.model_fields):
            return fields
        known: dict[object, Any] = {name: fields[name] for name in cls.model_fields if name in fields}
        unknown = next(name for name in fields if name not in cls.model_fields)
        return known | {unknown: fields[unknown]}
