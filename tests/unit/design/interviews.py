"""Simulated users: sheets of answers, and interviews that ask for them."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from lifelong_core.design import ProblemFingerprint, next_questions
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.method.schema import Question
from lifelong_core.design.problem_fingerprint import FIELDS

Sheet = dict[str, Any]

ALL_ALIKE: Sheet = {
    "class_scores_available": True,
    "decision_rule": "argmax",
    "unequal_severity": False,
    "unequal_interest": False,
    "prevalences_representative": False,
    "class_contribution": "equal",
    "calibration_assessment": False,
    "dependent_cases": False,
    "invalid_outputs": False,
}
"""All but the number of classes, of the traversal that thesis section 5.1.3 prints: BA, TPR and AUROC fit."""


def values(question: Question, classes: int) -> st.SearchStrategy[Any]:
    """Any answer that the question takes, for that many classes."""
    if question.kind in ("choice", "yes_no"):
        return st.sampled_from(question.values)
    return {
        "count": st.just(classes),
        "class": st.integers(0, classes - 1),
        "number": st.sampled_from([0.1, 0.5, 0.95]),
        "text": st.just("patient"),
        "class_values": st.sampled_from(
            [(1 / classes,) * classes, (0.5, *(0.5 / (classes - 1),) * (classes - 1))]
        ),
        "matrix": st.sampled_from(
            [
                tuple(tuple(float(i != j) for j in range(classes)) for i in range(classes)),
                tuple(tuple((i + 1.0) * (i != j) for j in range(classes)) for i in range(classes)),
            ]
        ),
    }[question.kind]


@st.composite
def sheets(draw: st.DrawFn) -> Sheet:
    """An answer to every question, whether or not it will be asked."""
    classes = draw(st.sampled_from([2, 3]))
    method = load_method()
    return {field: draw(values(method.question(field), classes)) for field in FIELDS}


def interview(
    sheet: Sheet, pick: Callable[[int], int] = lambda _: 0, start: ProblemFingerprint | None = None
) -> ProblemFingerprint:
    """Answers from a sheet until nothing is asked any more; `pick` chooses among so many questions."""
    fingerprint = start or ProblemFingerprint()
    for _ in FIELDS:
        asked = next_questions(fingerprint)
        if not asked:
            return fingerprint
        field = asked[pick(len(asked))].field
        assert getattr(fingerprint, field) is None, f"{field} was asked again"
        fingerprint = fingerprint.with_answer(field, sheet[field])
    assert not next_questions(fingerprint), "the interview does not end"
    return fingerprint
