"""Titles, paths, states and answers of interviews, as the pages show them."""

from dataclasses import dataclass
from datetime import datetime
from textwrap import shorten
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from lifelong_core.values.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lifelong_core.design.interview.interview import Interview
    from lifelong_core.design.interview.views import AnswerView
    from lifelong_core.design.method.schema import Question
    from lifelong_core.entities.design.interviews import InterviewFields, InterviewRecord, InterviewSummary

COUNT = "number_of_classes"
LONGEST_TEXT = 200
"""Largest length of an answer in a list, in characters."""

DAMAGED = "cannot be read"
"""Shown in place of a damaged document in a list."""

STATES = {
    "questions": "being answered",
    "contradictions": "answers contradict each other",
    "choices": "a choice is open",
    "complete": "complete",
    "damaged": DAMAGED,
}
"""Text of each stage, and of a damaged interview, which has no stage."""


@dataclass(frozen=True)
class AnswerLine:
    """An answer or a choice in the list of answers."""

    item: str
    name: str
    text: str
    is_current: bool = False


def path_of(record: "InterviewFields") -> str:
    """Return the path of an interview."""
    return f"/console/interviews/{record.id}"


def item_path(record: "InterviewFields", item: str) -> str:
    """Return the path of one question or choice of an interview."""
    return f"{path_of(record)}?item={quote(item)}"


def title_of(record: "InterviewRecord") -> str:
    """Return the title of an interview: its task, else its classes, else the day of its start."""
    return _title(record, record.interview.class_names)


def _title(interview: "InterviewFields", class_names: "Sequence[str] | None") -> str:
    if interview.task is not None:
        return interview.task
    if not class_names:
        return f"Interview of {interview.created_at:%-d %B}"
    from lifelong_core.design.interview.class_names import list_class_names

    return list_class_names(class_names)


def moment(at: datetime) -> str:
    """Return a date and time as text.

    Examples:
        >>> moment(datetime(2026, 3, 4, 5, 6))
        '4 March 2026, 05:06 UTC'
    """
    return f"{at:%-d %B %Y, %H:%M} UTC"


def summary(interview: "InterviewSummary") -> dict[str, Any]:
    """Return an interview for a list; a damaged one stays in the list, so that it can be discarded."""
    return {
        "path": path_of(interview) + ("/result" if interview.stage == "complete" else ""),
        "resource": path_of(interview),
        "title": _title(interview, interview.class_names),
        "by": interview.updated_by,
        "changed": moment(interview.updated_at),
        "stage": interview.stage,
        "state": STATES[interview.stage],
    }


def question_of(item: str) -> "Question":
    """Return the question of a field.

    Raises:
        NotFoundError: there is no such question.
    """
    from lifelong_core.design.method.loader import load_method

    for question in load_method().questions:
        if question.field == item:
            return question
    raise NotFoundError(f"there is no question {item[:80]!r}.", hint="Choose one from the answers.")


def is_guide(item: str) -> bool:
    """Whether the item is a guide (a choice between metrics), not a field."""
    from lifelong_core.design.method.loader import load_method

    return load_method().has_guide(item)


def list_answers(interview: "Interview", current: str | None = None) -> list[AnswerLine]:
    """Return answers and choices in the order of the interview; class names also answer the number of classes."""
    by_names = [] if interview.class_names is None else [COUNT]
    lines: list[AnswerLine] = []
    for item in (*by_names, *interview.history):
        answer = answer_of_item(interview, item)
        text = shorten(answer.text, LONGEST_TEXT, placeholder=" ...")
        lines.append(AnswerLine(item, answer.name, text, is_current=item == current))
    return lines


def answer_of_item(interview: "Interview", item: str) -> "AnswerView":
    """Return an answer or a choice as text; options have the names of their metrics, and classes their names."""
    from lifelong_core.design.interview.class_names import list_class_names
    from lifelong_core.design.interview.views import view_answer
    from lifelong_core.design.recommendation.wording import option_label

    answer = view_answer(interview, item)
    if answer.is_choice:
        options = "; ".join(option_label(item, option) for option in answer.value)
        return answer.model_copy(update={"text": options})
    if item == COUNT and interview.class_names:
        return answer.model_copy(
            update={"text": f"{answer.value}: {list_class_names(interview.class_names)}"}
        )
    return answer
