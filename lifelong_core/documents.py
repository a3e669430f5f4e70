"""Base classes of the documents of design and develop loop: frozen, strict, read from and written to JSON."""

from typing import Any, Self

from pydantic import ConfigDict, ValidationError

from lifelong_core.fail_fast import FailFastModel
from lifelong_core.validation_errors import as_input_error, read_json


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
