"""What pages say of an interview: its answers, where it stands, and the names of what it speaks of."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import shorten
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from lifelong_core.errors import NotFoundError, UnavailableError

if TYPE_CHECKING:
    from lifelong_core.design.interview.interview import Interview
    from lifelong_core.design.method.schema import Method, Question
    from lifelong_core.store.design.records import InterviewRecord

COUNT = "number_of_classes"
LONGEST_TEXT = 200
"""Characters of an answer in a list."""

MOST_NAMES = 12
"""Classes that are named one by one: more of them fill pages."""

DAMAGED = "cannot be read"
"""Said of a document that is damaged, where others are listed beside it."""

STATES = {
    "questions": "being answered",
    "contradictions": "answers contradict each other",
    "choices": "a choice is open",
    "complete": "complete",
    "damaged": DAMAGED,
}
"""What is said of each stage, and of what has none because it is damaged."""


@dataclass(frozen=True)
class GivenAnswer:
    """One thing that was answered or decided."""

    item: str
    name: str
    text: str
    is_current: bool = False


def path_of(record: "InterviewRecord") -> str:
    """The page of an interview."""
    return f"/console/interviews/{record.id}"


def item_path(record: "InterviewRecord", item: str) -> str:
    """The page of one question or choice of an interview."""
    return f"{path_of(record)}?item={quote(item)}"


def title_of(record: "InterviewRecord") -> str:
    """What an interview is called: after its task, its classes, or the day on which it was begun."""
    if record.task is not None:
        return record.task
    names = record.interview.class_names
    return class_list(names) if names else _day_of(record)


def _day_of(record: "InterviewRecord") -> str:
    return f"Interview of {record.created_at:%-d %B}"


def class_list(names: Sequence[str]) -> str:
    """The names of classes, as far as they can be read at a glance.

    Examples:
        >>> class_list(["benign", "malignant"]), class_list(["x"] * 20)[-12:]
        ('benign, malignant', 'and 8 others')
    """
    listed = shorten(", ".join(names[:MOST_NAMES]), LONGEST_TEXT, placeholder=" ...")
    return listed if len(names) <= MOST_NAMES else f"{listed} and {len(names) - MOST_NAMES} others"


def moment(at: datetime) -> str:
    """When something happened.

    Examples:
        >>> moment(datetime(2026, 3, 4, 5, 6))
        '4 March 2026, 05:06 UTC'
    """
    return f"{at:%-d %B %Y, %H:%M} UTC"


def summary(record: "InterviewRecord") -> dict[str, Any]:
    """An interview in a list; one that cannot be read is among the others, to be discarded."""
    try:
        stage, title = str(record.interview.stage), title_of(record)
    except UnavailableError:
        stage, title = "damaged", record.task or _day_of(record)
    return {
        "path": path_of(record) + ("/result" if stage == "complete" else ""),
        "resource": path_of(record),
        "title": title,
        "by": record.updated_by,
        "changed": moment(record.updated_at),
        "stage": stage,
        "state": STATES[stage],
    }


def the_method() -> "Method":
    """The recommendation document; the first call loads the design loop."""
    from lifelong_core.design.method.loader import load_method as load

    return load()


def question_of(item: str) -> "Question":
    """The question of a field.

    Raises:
        NotFoundError: there is none.
    """
    for question in the_method().questions:
        if question.field == item:
            return question
    raise NotFoundError(f"there is no question {item[:80]!r}.", hint="Choose one from the answers.")


def is_guide(item: str) -> bool:
    """Whether this is a choice between metrics, not an answer."""
    return any(guide.id == item for guide in the_method().guides)


def given_answers(interview: "Interview", current: str | None = None) -> list[GivenAnswer]:
    """What was answered and decided, in that order; names of classes say how many there are."""
    by_names = [] if interview.class_names is None else [COUNT]
    return [_given(interview, item, is_current=item == current) for item in (*by_names, *interview.history)]


def answer_text(interview: "Interview", field: str) -> str:
    """An answer as people say it."""
    from lifelong_core.design.interview.answer_texts import summarize_answer

    value = getattr(interview.fingerprint, field)
    if value is None:
        return "not answered"
    if field == COUNT and interview.class_names:
        return f"{value}: {class_list(interview.class_names)}"
    return summarize_answer(question_of(field), value, class_names=interview.class_names)


def choice_text(interview: "Interview", guide: str) -> str:
    """A decision as people say it."""
    return "; ".join(option_label(guide, option) for option in interview.choices[guide])


def answer_sentence(interview: "Interview", item: str) -> str:
    """An answer or a decision as people say it."""
    return choice_text(interview, item) if is_guide(item) else answer_text(interview, item)


def name_of(item: str) -> str:
    """What a field or a guide is about."""
    return the_method().guide(item).title if is_guide(item) else question_of(item).name


def option_label(guide: str, option: str) -> str:
    """The option of a guide with the names of its metrics, or the values that it gives."""
    from lifelong_core.metrics import METRICS

    found = the_method().guide(guide).option(option)
    names = [METRICS[entry.metric].name for entry in found.metrics]
    values = [f"{name} = {value:g}" for name, value in found.parameters.items()]
    return f"{' and '.join(names)} ({option})" if names else ", ".join(values)


def _given(interview: "Interview", item: str, *, is_current: bool) -> GivenAnswer:
    text = shorten(answer_sentence(interview, item), LONGEST_TEXT, placeholder=" ...")
    return GivenAnswer(item=item, name=name_of(item), text=text, is_current=is_current)
