"""An interview as the API, the console and the terminal show it: possible answers, and answers as text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lifelong_core.design.interview.cost_builders import rule_of
from lifelong_core.design.interview.interview import Interview
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.method.schema import Question
from lifelong_core.design.problem_fingerprint import Answer, Answers

NO_ANSWERS: Answers = MappingProxyType({})


MOST_LISTED = 12
"""Most classes whose numbers are listed in a summary."""


MOST_CLASSES_AS_ROWS = 3
"""With more classes, a summary of costs is a rule where one gives them."""


@dataclass(frozen=True)
class PossibleAnswer:
    """One of the answers that a question offers."""

    value: Answer | int
    label: str
    explanation: str = ""


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
        return tuple(PossibleAnswer(index, name) for index, name in enumerate(class_labels))
    if question.kind not in ("choice", "yes_no"):
        return ()
    return tuple(
        PossibleAnswer(answer.value, answer.label, answer.meaning) for answer in question.offered(answers)
    )


@dataclass(frozen=True)
class AnswerView:
    """An answer to a question or a person's choice in a guide, in words."""

    item: str
    """the field, or the guide"""
    source_item: str
    """as the source names it, FP2.6 for instance"""
    name: str
    question: str
    """the question as it is asked; of a choice, its name"""
    value: Any
    """the answer; of a choice, its options; None: not answered"""
    text: str
    is_choice: bool


def view_answer(interview: Interview, item: str) -> AnswerView:
    """An answer or a choice in words.

    Args:
        interview: the interview.
        item: a field of the fingerprint, or a guide.
    """
    method = load_method()
    if method.has_guide(item):
        title, options = method.guide(item).title, interview.choices.get(item, ())
        return AnswerView(item, item, title, title, options, ", ".join(options), is_choice=True)
    question, value = method.question(item), getattr(interview.fingerprint, item)
    text = "not answered"
    if value is not None:
        text = summarize_answer(question, value, class_names=interview.class_names)
    return AnswerView(item, question.id, question.name, question.question, value, text, is_choice=False)


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
