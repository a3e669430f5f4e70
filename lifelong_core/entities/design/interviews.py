"""Interviews: what is known of each, what it asks next, and its answers."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias
from uuid import UUID

from pydantic import Field

from lifelong_core.entities.entity import Entity, Moment, read_kept, schema_of
from lifelong_core.values.errors import UnavailableError

# Parsing a document imports the design loop and all metrics, which takes too long for the start of a serving process.
if TYPE_CHECKING:
    from lifelong_core.design.interview.interview import Interview

DAMAGED = "damaged"
"""Stage of an interview that cannot be read."""

_DESIGN = "lifelong_core.design"
ProgressDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of(f"{_DESIGN}.recommendation.progress:Progress")
]
QuestionDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of(f"{_DESIGN}.interview.views:QuestionAnswer")
]
ContradictionDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of(f"{_DESIGN}.recommendation.contradictions:Contradiction")
]
GuideDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of(f"{_DESIGN}.recommendation.document:GuideOutcome")
]
SaidDocument: TypeAlias = Annotated[dict[str, Any], schema_of(f"{_DESIGN}.interview.views:SaidAnswer")]


@dataclass(frozen=True, kw_only=True)
class InterviewFields(Entity):
    """An interview without its document."""

    id: UUID
    task: str | None
    """the task of the interview; null: none yet"""
    revision: int
    """counts the changes of the interview from 1"""
    created_at: Moment
    created_by: str
    updated_at: Moment
    updated_by: str


@dataclass(frozen=True, kw_only=True)
class InterviewSummary(InterviewFields):
    """An interview without its questions and answers."""

    stage: str
    """what is to be done next: questions, contradictions, choices; complete; or damaged: it cannot be read"""
    class_names: list[str] | None


@dataclass(frozen=True, kw_only=True)
class InterviewAnswer(InterviewSummary):
    """An interview: its state, the next question, and all answers."""

    progress: ProgressDocument
    question: QuestionDocument | None
    contradictions: list[ContradictionDocument]
    open_choices: list[GuideDocument]
    answers: Annotated[dict[str, Any], Field(description="Field -> answer.")]
    choices: Annotated[dict[str, list[str]], Field(description="Guide -> options that were taken.")]
    history: list[SaidDocument]


@dataclass(frozen=True, kw_only=True)
class InterviewRecord(InterviewFields):
    """The present state of an interview: a row of `interviews`."""

    document: str = field(repr=False)
    """the interview as JSON text, unchanged"""

    @cached_property
    def interview(self) -> "Interview":
        """The interview.

        Raises:
            UnavailableError: the document is not an interview.
        """
        from lifelong_core.design.interview.interview import Interview

        return read_kept(Interview.from_json, self.document, name=f"the interview {self.id}")

    def summary(self) -> InterviewSummary:
        """The interview for a list, which stays readable, so that a damaged interview can be discarded."""
        try:
            names, stage = self.interview.class_names, str(self.interview.stage)
        except UnavailableError:
            names, stage = None, DAMAGED
        return InterviewSummary.of(self, stage=stage, class_names=None if names is None else list(names))

    def answer(self) -> InterviewAnswer:
        """The interview with its progress, next question, contradictions, choices and answers.

        Raises:
            UnavailableError: the document is not an interview.
        """
        from lifelong_core.design.interview.views import interview_document

        return InterviewAnswer.of(self, **interview_document(self.interview))
