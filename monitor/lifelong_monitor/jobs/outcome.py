"""What a job's subprocess tells its runner, as one JSON document on its standard output."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from lifelong_core.errors import LifelongError, UnavailableError


@dataclass(frozen=True)
class JobError:
    """Why a job failed, for the person who submitted it."""

    message: str
    field: str | None = None
    hint: str | None = None

    @classmethod
    def of(cls, error: LifelongError) -> Self:
        """An error of ours, in its own words."""
        return cls(error.message, error.field, error.hint)

    def to_document(self) -> dict[str, str | None]:
        """The error as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Outcome:
    """What became of a job's work: a result, or an error."""

    result: dict[str, Any] | None = None
    error: JobError | None = None
    is_passing: bool = False
    """whether the error may pass: the database or the artifacts did not answer"""

    @classmethod
    def of_error(cls, error: LifelongError) -> Self:
        """The work ended in an error of ours."""
        return cls(error=JobError.of(error), is_passing=isinstance(error, UnavailableError))

    def to_json(self) -> str:
        """The outcome as one line.

        Raises:
            ValueError: the result holds something that is no JSON value.
        """
        return json.dumps(asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self | None:
        """Read what `to_json` wrote; None: it was not that."""
        try:
            document = json.loads(text)
            error = document["error"]
            return cls(
                document["result"], None if error is None else JobError(**error), document["is_passing"]
            )
        except (ValueError, TypeError, KeyError):
            return None
