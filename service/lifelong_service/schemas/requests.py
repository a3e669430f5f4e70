"""Base class of documents in request bodies."""

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, model_validator

from lifelong_core.values.documents import FailFastModel


class RequestDocument(FailFastModel):
    """A JSON document in a request body without unknown fields; an error names only the first one."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _keep_one_unknown(cls, given: Any) -> Any:
        """Keep only one unknown field: pydantic would describe each of a million fields, in gigabytes."""
        if not isinstance(given, Mapping) or len(given) <= len(cls.model_fields):
            return given
        known = {name: given[name] for name in cls.model_fields if name in given}
        unknown = next(name for name in given if name not in cls.model_fields)
        return known | {unknown: given[unknown]}
