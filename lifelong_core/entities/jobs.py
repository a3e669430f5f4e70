"""Jobs, their state, and the lines of their logs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias
from uuid import UUID

from lifelong_core.deploy.documents import parse_document
from lifelong_core.entities.entity import Entity, Moment, read_kept

TRAINING_KINDS = ("retrain", "search_augmentation")
"""Kinds that run for hours on a device: one at a time for each entry of `training_devices`, with checkpoints."""

JobState: TypeAlias = Literal["queued", "running", "succeeded", "failed", "cancelled"]


@dataclass(frozen=True, kw_only=True)
class JobFields(Entity):
    """Work that a request submitted, without its documents."""

    id: UUID
    kind: str
    state: JobState
    attempts: int
    """number of starts since the last checkpoint, without those that were released"""
    created_by: str
    created_at: Moment
    started_at: Moment | None
    """of the newest attempt"""
    finished_at: Moment | None
    cancelled_at: Moment | None
    """when its cancellation was requested; null: never"""
    cancelled_by: str | None


@dataclass(frozen=True, kw_only=True)
class JobAnswer(JobFields):
    """A job: its request, state and result."""

    progress: dict[str, Any] | None
    """its latest report on itself; its keys depend on the kind; null: it has reported nothing"""
    payload: dict[str, Any]
    """what was asked for; the keys depend on the kind"""
    result: dict[str, Any] | None
    """the result; its keys depend on the kind; null: the job has not succeeded"""
    error: dict[str, Any] | None
    """why it failed: message, field, hint; null: it has not failed"""


@dataclass(frozen=True, kw_only=True)
class Job(JobFields):
    """A row of `jobs`. `token` is the fencing token of the latest claim; older tokens are rejected."""

    payload_document: str = field(repr=False)
    """`payload` as JSON text, unchanged"""
    result_document: str | None = field(repr=False)
    """`result` as JSON text, unchanged"""
    error_document: str | None
    """`error` as JSON text, unchanged"""
    progress_document: str | None = field(repr=False)
    """`progress` as JSON text, unchanged"""
    holder: str | None
    """the process of the latest claim"""
    token: int
    checkpoint: str | None
    """digest of the artifact from which the next attempt goes on; None: it begins anew"""
    spare_checkpoint: str | None
    """digest of another checkpoint, which is being stored or deleted"""

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
        return None if self.error_document is None else self._values(self.error_document)

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
class LogLine(Entity):
    """A line that a job wrote for people."""

    number: int
    """counts up from 1 within a job"""
    written_at: Moment
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
