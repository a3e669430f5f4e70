"""Interviews, attached recommendations, and the heads that an attachment publishes or keeps.

Documents stay text until they are read: parsing them imports the design loop and all metrics, which takes too long for
the start of a serving process.
"""

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias
from uuid import UUID

from lifelong_core.entities.entity import damage_error, read_kept
from lifelong_core.entities.heads import HeadRecord
from lifelong_core.entities.registry import Model
from lifelong_core.store.engine.documents import text_digest

if TYPE_CHECKING:
    from lifelong_core.design import Recommendation
    from lifelong_core.design.interview.interview import Interview
    from lifelong_core.design.validation.acceptance import AcceptanceThreshold

KeptCause: TypeAlias = Literal["fits", "pinned", "damaged"]
"""Reason for not refitting a head: it already fits, it is pinned, or its class mix is unknown because it is damaged."""


@dataclass(frozen=True)
class InterviewRecord:
    """The present state of an interview. `revision` counts its changes from 1."""

    id: UUID
    task: str | None
    """the task of the interview; None: none yet"""
    revision: int
    document: str = field(repr=False)
    """the interview as JSON text, unchanged"""
    created_at: datetime
    created_by: str
    updated_at: datetime
    updated_by: str

    @cached_property
    def interview(self) -> "Interview":
        """The interview.

        Raises:
            UnavailableError: the document is not an interview.
        """
        from lifelong_core.design.interview.interview import Interview

        return read_kept(Interview.from_json, self.document, name=f"the interview {self.id}")


@dataclass(frozen=True)
class AttachedRecommendation:
    """Metrics and thresholds of a task. `version` counts from 1 within the task; the newest one is in force."""

    task: str
    version: int
    document: str = field(repr=False)
    """the recommendation as JSON text, unchanged"""
    thresholds_document: str = field(repr=False)
    """the thresholds as JSON text, unchanged"""
    digest: str
    """SHA-256 (hex) over both"""
    created_at: datetime
    created_by: str

    @cached_property
    def recommendation(self) -> "Recommendation":
        """The recommendation.

        Raises:
            UnavailableError: it differs from the attached document.
        """
        from lifelong_core.design import Recommendation

        self._check()
        return read_kept(Recommendation.from_json, self.document, name=self.name)

    @cached_property
    def thresholds(self) -> "tuple[AcceptanceThreshold, ...]":
        """Thresholds of acceptance; empty: none were stated.

        Raises:
            UnavailableError: they differ from the attached document.
        """
        self._check()
        return read_kept(_thresholds_in, self.thresholds_document, name=self.name)

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"recommendation {self.version} of {self.task}"

    def _check(self) -> None:
        if text_digest(self.document, self.thresholds_document) != self.digest:
            raise damage_error(self.name, "the digest of its document differs from the attached one.")


@dataclass(frozen=True)
class PublishedHead:
    """A head published with a recommendation; environment None: the model's default head."""

    environment: str | None
    record: HeadRecord


@dataclass(frozen=True)
class KeptHead:
    """A head that was left in force when a recommendation was attached; environment None: the model's default head."""

    environment: str | None
    version: int
    cause: KeptCause
    reason: str
    """`cause` in a sentence"""


@dataclass(frozen=True)
class Refit:
    """Result of attaching a recommendation and refitting the heads of the task's promoted model."""

    attached: AttachedRecommendation
    model: Model
    published: tuple[PublishedHead, ...]
    """the default head first"""
    kept: tuple[KeptHead, ...]

    @property
    def default_version(self) -> int:
        """Version of the default head in force."""
        versions = {head.environment: head.version for head in self.kept}
        return (versions | {head.environment: head.record.version for head in self.published})[None]


def _thresholds_in(text: str) -> "tuple[AcceptanceThreshold, ...]":
    from pydantic import TypeAdapter, ValidationError

    from lifelong_core.design.validation.acceptance import AcceptanceThreshold
    from lifelong_core.values.validation_errors import as_input_error

    try:
        return TypeAdapter(tuple[AcceptanceThreshold, ...]).validate_json(text)
    except ValidationError as error:
        raise as_input_error(error, AcceptanceThreshold) from error
