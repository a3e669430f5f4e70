"""The outcome of a job: its subprocess writes it as one JSON document to its standard output, for the runner."""

import errno
import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from lifelong_core.values.errors import LifelongError, UnavailableError

LESS_MEMORY = (
    "Ask for less at once (a smaller batch_size or image_size, fewer samples), or use a machine or device with more"
    " memory."
)
"""Hint of an error for want of memory."""
FREE_DISK = "Delete what is not needed on the machine of the monitor, then submit it again."
"""Hint of an error for want of disk space."""
_LONGEST_CAUSE = 300


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
    """The outcome of a job: a result, or an error."""

    result: dict[str, Any] | None = None
    error: JobError | None = None
    is_passing: bool = False
    """whether the error may pass: the database or the artifacts did not answer"""

    @classmethod
    def of_exhaustion(cls, error: Exception) -> Self | None:
        """The work ran out of memory or disk space, by an error of a library; None: the error says something else."""
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            said, hint = "a disk of the machine was full", FREE_DISK
        # That of torch on a GPU is found by its name: torch is not imported here.
        elif isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
            said, hint = "the memory was full", LESS_MEMORY
        else:
            return None
        first = str(error).strip().partition("\n")[0][:_LONGEST_CAUSE]
        return cls(error=JobError(f"it was ended because {said}: {first or type(error).__name__}", hint=hint))

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
        """Read what `to_json` wrote; None: it is another text."""
        try:
            document = json.loads(text)
            error = document["error"]
            return cls(
                document["result"], None if error is None else JobError(**error), document["is_passing"]
            )
        except (ValueError, TypeError, KeyError):
            return None
