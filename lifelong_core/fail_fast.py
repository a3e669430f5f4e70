"""Pydantic models that stop at the first wrong element of a list."""

from typing import Any, cast

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core import CoreSchema

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
