"""Jobs and their state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias
from uuid import UUID

from lifelong_core.deploy.documents import parse_document
from lifelong_core.store.engine.documents import read_kept

TRAINING_KINDS = ("retrain", "search_augmentation")
"""Kinds that run for hours on a device: one at a time for each entry of `training_devices`, with checkpoints."""

JobState: TypeAlias = Literal["queued", "running", "succeeded", "failed", "cancelled"]


@dataclass(frozen=True)
class Job:
    """Work that a request submitted. `token` is the fencing token of the latest claim; older tokens are rejected."""

    id: UUID
    kind: str
    payload_document: str = field(repr=False)
    """`payload` as JSON text, unchanged"""
    state: JobState
    attempts: int
    """number of starts since the last checkpoint, without those that were released"""
    created_at: datetime
    created_by: str
    started_at: datetime | None
    """of the newest attempt"""
    finished_at: datetime | None
    result_document: str | None = field(repr=False)
    """`result` as JSON text, unchanged"""
    error_document: str | None
    """`error` as JSON text, unchanged"""
    holder: str | None
    """the process of the latest claim"""
    token: int
    progress_document: str | None = field(repr=False)
    """`progress` as JSON text, unchanged"""
    checkpoint: str | None
    """digest of the artifact from which the next attempt goes on; None: it begins anew"""
    spare_checkpoint: str | None
    """digest of another checkpoint, which is being stored or deleted"""
    cancelled_at: datetime | None
    """when its cancellation was requested; None: never"""
    cancelled_by: str | None

    @cached_property
    def payload(self) -> dict[str, Any]:
        """The arguments of the work.

        Raises:
            UnavailableError: the document is not a JSON object.
        """
        return self._values(self.payload_document)

    @cached_property
    def result(self) -> dict[str, Any] | None:
        """The result; None: the job has not succeeded.

        Raises:
            UnavailableError: the document is not a JSON object.
        """
        return None if self.result_document is None else self._values(self.result_document)

    @cached_property
    def error(self) -> dict[str, str | None] | None:
        """The error: message, field and hint; None: the job has not failed.

        Raises:
            UnavailableError: the document is not a JSON object.
        """
        if self.error_document is None:
            return None
        # Older versions name the hint `mend`.
        return {
            "hint" if name == "mend" else name: text
            for name, text in self._values(self.error_document).items()
        }

    @cached_property
    def progress(self) -> dict[str, Any] | None:
        """The latest report of the work on itself; None: it has reported nothing.

        Raises:
            UnavailableError: the document is not a JSON object.
        """
        return None if self.progress_document is None else self._values(self.progress_document)

    def _values(self, text: str) -> dict[str, Any]:
        return read_kept(partial(parse_document, field="document"), text, name=f"the job {self.id}")


@dataclass(frozen=True)
class LogLine:
    """A line that the work of a job wrote for people."""

    number: int
    """counts up from 1 within a job"""
    written_at: datetime
    text: str


@dataclass(frozen=True)
class JobsState:
    """Counts of all jobs at one time."""

    waiting: int
    """jobs without a holder: queued, or started by a process that died"""
    waiting_since: datetime | None
    """when the first of these was submitted or lost its holder; None: none waits"""
    waiting_since_by_kind: Mapping[str, datetime]
    """the same for the jobs of each kind of which one waits"""
    running: int
    """jobs with a living holder"""
    last_failures: Mapping[str, datetime]
    """time of the latest failure by kind, of the jobs that are still stored"""
