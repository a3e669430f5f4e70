"""An interview as the API, the console and the terminal show it: possible answers, and answers as text."""

import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from pydantic import Field

from lifelong_core.design.interview.cost_builders import rule_of
from lifelong_core.design.interview.interview import Interview
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.method.schema import Kind, Question
from lifelong_core.design.problem_fingerprint import Answers
from lifelong_core.values.documents import Frozen

NO_ANSWERS: Answers = MappingProxyType({})


MOST_LISTED = 12
"""Most classes whose numbers are listed in a summary."""


MOST_CLASSES_AS_ROWS = 3
"""With more classes, a summary of costs is a rule where one gives them."""


class PossibleAnswer(Frozen):
    """One of the answers that a question offers."""

    value: Any = Field(description="A JSON value of the form that the question asks for.")
    label: str
    explanation: str = ""


class QuestionAnswer(Frozen):
    """A question with its explanation and possible answers."""

    id: str
    field: str
    name: str
    kind: Kind
    question: str
    example: str
    pitfall: str
    asked_when: str
    source: str
    answers: tuple[PossibleAnswer, ...] = Field(
        description="Empty for questions about a number, a text or several values."
    )


class SaidAnswer(Frozen):
    """One answer or choice, as a value and in words."""

    item: str = Field(description="The field of the fingerprint, or the guide.")
    name: str
    value: Any = Field(description="The answer; of a choice, its options; null: not answered.")
    text: str


class AnswerView(SaidAnswer):
    """An answer to a question or a person's choice in a guide, with its question."""

    source_item: str
    """as the source names it, FP2.6 for instance"""
    question: str
    """the question as it is asked; of a choice, its name"""
    is_choice: bool


def interview_document(interview: Interview) -> dict[str, Any]:
    """The next question, contradictions, open choices and all answers of an interview, as JSON values."""
    fingerprint, question = interview.fingerprint, interview.question
    views = [view_answer(interview, item) for item in interview.history]
    return {
        "stage": interview.stage,
        "class_names": None if interview.class_names is None else list(interview.class_names),
        "progress": interview.progress.model_dump(mode="json"),
        "question": None if question is None else view_question(interview, question).model_dump(mode="json"),
        "contradictions": [item.model_dump(mode="json") for item in interview.contradictions],
        "open_choices": [guide.model_dump(mode="json") for guide in interview.open_choices],
        "answers": fingerprint.model_dump(mode="json", include=set(fingerprint.answered_fields())),
        "choices": {guide: list(options) for guide, options in interview.choices.items()},
        "history": [view.model_dump(mode="json", include=set(SaidAnswer.model_fields)) for view in views],
    }


def view_question(interview: Interview, question: Question) -> QuestionAnswer:
    """A question with the answers that the others so far leave open."""
    parts = {name: getattr(question, name) for name in QuestionAnswer.model_fields if name != "answers"}
    offered = possible_answers(question, interview.class_labels, interview.fingerprint.answers())
    return QuestionAnswer(**parts, answers=offered)


def possible_answers(
    question: Question, class_labels: Sequence[str], answers: Answers = NO_ANSWERS
) -> tuple[PossibleAnswer, ...]:
    """The answers that a question offers; none where it asks for a number, a text or several values.

    Args:
        question: the question.
        class_labels: the names of the classes, or their numbers.
        answers: `ProblemFingerprint.answers()` of the interview; answers that they rule out are not offered.
    """
    if question.kind == "class":
        return tuple(PossibleAnswer(value=index, label=name) for index, name in enumerate(class_labels))
    if question.kind not in ("choice", "yes_no"):
        return ()
    return tuple(
        PossibleAnswer(value=answer.value, label=answer.label, explanation=answer.meaning)
        for answer in question.offered(answers)
    )


def view_answer(interview: Interview, item: str) -> AnswerView:
    """An answer or a choice in words.

    Args:
        interview: the interview.
        item: a field of the fingerprint, or a guide.
    """
    method = load_method()
    if method.has_guide(item):
        title, options = method.guide(item).title, interview.choices.get(item, ())
        return AnswerView(
            item=item,
            source_item=item,
            name=title,
            question=title,
            value=options,
            text=", ".join(options),
            is_choice=True,
        )
    question, value = method.question(item), getattr(interview.fingerprint, item)
    text = "not answered"
    if value is not None:
        text = summarize_answer(question, value, class_names=interview.class_names)
    return AnswerView(
        item=item,
        source_item=question.id,
        name=question.name,
        question=question.question,
        value=value,
        text=text,
        is_choice=False,
    )


def format_answer(question: Question, value: object, *, class_names: Sequence[str] | None = None) -> str:
    """Return an answer as text that `parse_answer` reads back.

    Examples:
        >>> from lifelong_core.design.method.loader import load_method
        >>> shares = load_method().question("target_prevalences")
        >>> format_answer(shares, (0.9, 0.1), class_names=["benign", "malignant"])
        'benign: 0.9, malignant: 0.1'
        >>> format_answer(load_method().question("costs"), ((0.0, 1.0), (9.0, 0.0)))
        '0, 1; 9, 0'
    """
    entries: Any = value
    match question.kind:
        case "choice" | "yes_no":
            return question.describe(value)
        case "class" if class_names and 0 <= entries < len(class_names):
            return str(class_names[entries])
        case "class_values":
            numbers = [_plain(entry) for entry in entries]
            if not class_names or len(class_names) != len(numbers) or not _can_be_listed(class_names):
                return ", ".join(numbers)
            return ", ".join(f"{name}: {number}" for name, number in zip(class_names, numbers, strict=True))
        case "matrix":
            return "; ".join(", ".join(_plain(entry) for entry in row) for row in entries)
        case "number":
            return "100 %" if entries == 1 else _plain(entries)
        case _:
            return str(value)


def summarize_answer(question: Question, value: object, *, class_names: Sequence[str] | None = None) -> str:
    """Return an answer as short text: as `format_answer`, but costs of many classes are a rule, named rows or counted.

    Examples:
        >>> from lifelong_core.design.method.loader import load_method
        >>> costs = load_method().question("costs")
        >>> summarize_answer(costs, [[abs(i - j) for j in range(20)] for i in range(20)])
        'linear'
        >>> summarize_answer(costs, [[i + j for j in range(20)] for i in range(20)])
        '20 rows of 20 numbers'
    """
    numbers: Any = value
    if question.kind == "matrix" and len(numbers) > MOST_CLASSES_AS_ROWS:
        rule = rule_of(numbers, class_names)
        if rule is not None:
            return rule
    if question.kind == "matrix" and len(numbers) > MOST_LISTED:
        return f"{len(numbers)} rows of {len(numbers[0])} numbers"
    if question.kind == "matrix" and class_names and MOST_CLASSES_AS_ROWS < len(numbers) == len(class_names):
        rows = zip(class_names, numbers, strict=True)
        return "; ".join(f"{name}: {', '.join(_plain(entry) for entry in row)}" for name, row in rows)
    if question.kind == "class_values" and len(numbers) > MOST_LISTED:
        return f"{len(numbers)} numbers"
    return format_answer(question, value, class_names=class_names)


def _can_be_listed(names: Sequence[str]) -> bool:
    """Whether names can precede their values without being split."""
    folded = {name.casefold() for name in names}
    return len(folded) == len(names) and not any(re.search(r"[,;:=]|\s\s|^\[", name) for name in names)


def _plain(number: float) -> str:
    """The shortest text of a number from which it is read back.

    Examples:
        >>> _plain(9.0), _plain(0.05)
        ('9', '0.05')
    """
    return repr(float(number)).removesuffix(".0")
