"""The base of the documents that requests hold."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, FailFast, model_validator

Item = TypeVar("Item")


class _FailFast(FailFast):
    """As in pydantic; with a hash, which members of unions need."""

    def __hash__(self) -> int:
        return id(type(self))


ListOf = Annotated[list[Item], _FailFast()]
"""A list that is checked up to its first wrong entry: a body of 20 MB holds millions of them."""


class RequestDocument(BaseModel):
    """A document in the body of a request; it has no unknown fields, of which only the first is reported."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _keep_one_unknown(cls, given: Any) -> Any:
        """pydantic would describe each of a million unknown fields, in gigabytes."""
        if not isinstance(given, Mapping) or len(given) <= len(cls.model_fields):
            return given
        known = {name: given[name] for name in cls.model_fields if name in given}
        unknown = next(name for name in given if name not in cls.model_fields)
        return known | {unknown: given[unknown]}
