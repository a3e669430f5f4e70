"""What the API, the console and the terminal show of an interview: possible answers, and answers in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lifelong_core.design.interview.answer_texts import summarize_answer
from lifelong_core.design.interview.interview import Interview
from lifelong_core.design.method.conditions import Answer, Answers
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.method.schema import Question

NO_ANSWERS: Answers = MappingProxyType({})


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
