"""Base class of documents in request bodies."""

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, model_validator

from lifelong_core.fail_fast import FailFastModel


class RequestDocument(FailFastModel):
    """A document in the body of a request without unknown fields; an error names the first one only."""

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
