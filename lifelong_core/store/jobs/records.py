"""Jobs and their state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias
from uuid import UUID

from lifelong_core.deploy.documents import parse_document
from lifelong_core.store.engine.documents import read_kept

JobState: TypeAlias = Literal["queued", "running", "succeeded", "failed"]


@dataclass(frozen=True)
class Job:
    """Work that somebody asked for. `token` is that of its newest claim: who comes with an older one has lost it."""

    id: UUID
    kind: str
    payload_document: str = field(repr=False)
    """`payload` as JSON, to the letter"""
    state: JobState
    attempts: int
    """how often it was begun, but for those who gave it back"""
    created_at: datetime
    created_by: str
    started_at: datetime | None
    """of the newest attempt"""
    finished_at: datetime | None
    result_document: str | None = field(repr=False)
    """`result` as JSON, to the letter"""
    error_document: str | None
    """`error` as JSON, to the letter"""
    holder: str | None
    """who claimed it last"""
    token: int

    @cached_property
    def payload(self) -> dict[str, Any]:
        """What is to be done, for whoever does it.

        Raises:
            UnavailableError: the document is no JSON object.
        """
        return self._values(self.payload_document)

    @cached_property
    def result(self) -> dict[str, Any] | None:
        """What came of it; None: it has not succeeded.

        Raises:
            UnavailableError: the document is no JSON object.
        """
        return None if self.result_document is None else self._values(self.result_document)

    @cached_property
    def error(self) -> dict[str, str | None] | None:
        """What went wrong: message, field and hint; None: it has not failed.

        Raises:
            UnavailableError: the document is no JSON object.
        """
        if self.error_document is None:
            return None
        # Older versions name the hint `mend`.
        return {
            "hint" if name == "mend" else name: text
            for name, text in self._values(self.error_document).items()
        }

    def _values(self, text: str) -> dict[str, Any]:
        return read_kept(partial(parse_document, field="document"), text, name=f"the job {self.id}")


@dataclass(frozen=True)
class JobsState:
    """How it stands with all jobs at one time."""

    waiting: int
    """that nobody has: they were not begun, or whoever began them died"""
    waiting_since: datetime | None
    """when the first of these was asked for, or left alone; None: none waits"""
    running: int
    """that somebody has"""
    last_failures: Mapping[str, datetime]
    """by kind, when the last one failed of those that are still kept"""
