"""The interview asks the needed questions only, and ends in a complete fingerprint."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.design import ProblemFingerprint, contradictions, next_questions, recommend
from lifelong_core.design.problem_fingerprint import FIELDS
from tests.unit.design.interviews import interview, sheets


def fields(questions):
    return [question.field for question in questions]


@given(sheet=sheets(), data=st.data())
def test_any_order_of_answers_asks_the_same_and_nothing_needless(sheet, data):
    in_order = interview(sheet)
    shuffled = interview(sheet, pick=lambda count: data.draw(st.integers(0, count - 1)))
    assert shuffled == in_order
    for field in in_order.answered_fields():
        assert field in fields(next_questions(in_order.with_answer(field, None))), f"{field} was needless"


@given(sheet=sheets())
def test_a_complete_interview_is_recommended_for_or_explained(sheet):
    fingerprint = interview(sheet)
    found = contradictions(fingerprint)
    if not found:
        assert recommend(fingerprint).unused == ()
        return
    with pytest.raises(ValueError, match="contradict each other"):
        recommend(fingerprint)


@given(sheet=sheets(), data=st.data())
def test_every_mend_ends_its_contradiction(sheet, data):
    fingerprint = ProblemFingerprint(**sheet)
    for contradiction in contradictions(fingerprint):
        assert contradiction.explanation.endswith(".")
        for resolution in contradiction.resolutions:
            resolved = fingerprint.with_answers(resolution.answers)
            assert contradiction.id not in {other.id for other in contradictions(resolved)}, resolution.text


def test_the_first_questions_are_few_and_in_order():
    assert fields(next_questions(ProblemFingerprint())) == [
        "number_of_classes",
        "class_scores_available",
        "dependent_cases",
        "invalid_outputs",
    ]


@given(sheet=sheets(), data=st.data())
def test_every_question_is_in_the_order_of_the_interview(sheet, data):
    known = data.draw(st.sets(st.sampled_from(FIELDS)))
    asked = fields(next_questions(ProblemFingerprint(**{field: sheet[field] for field in known})))
    assert asked == sorted(asked, key=FIELDS.index)
    assert not set(asked) & known


SCREENING = {
    "number_of_classes": 2,
    "class_scores_available": True,
    "decision_rule": "target_value",
    "target_class": 1,
    "target_metric": "TPR",
    "target_value": 0.95,
    "unequal_severity": True,
    "costs_available": True,
    "costs": ((0.0, 1.0), (20.0, 0.0)),
    "prevalences_representative": True,
    "predictive_values": "important",
    "calibration_assessment": False,
    "dependent_cases": True,
    "grouping_variable": "patient",
    "invalid_outputs": False,
}


def test_a_screening_task_needs_fifteen_answers():
    assert interview(SCREENING).answered_fields() == tuple(SCREENING)


def test_going_back_drops_nothing():
    complete = interview(SCREENING)
    back = complete.with_answer("decision_rule", None)
    assert fields(next_questions(back)) == ["decision_rule"]
    assert back.target_value == 0.95
    assert next_questions(back.with_answer("decision_rule", "target_value")) == ()


def test_what_another_answer_made_useless_is_kept_and_named():
    changed = interview(SCREENING).with_answer("decision_rule", "cost_benefit")
    sheet = {**SCREENING, "threshold_perspective": "explicit_costs"}
    complete = interview(sheet, start=changed)
    unused = {answer.item: answer.value for answer in recommend(complete).unused}
    assert unused == {"target_metric": "TPR", "target_value": 0.95, "target_class": 1}


def test_without_scores_nobody_is_asked_how_decisions_are_made():
    asked = fields(next_questions(ProblemFingerprint(number_of_classes=3, class_scores_available=False)))
    assert "decision_rule" not in asked
    assert {"unequal_severity", "prevalences_representative"} <= set(asked)
    assert not [field for field in asked if field.startswith("calibration")]


def test_a_choice_of_a_person_saves_the_questions_of_its_guide():
    known = {**SCREENING, "predictive_values": None}
    fingerprint = ProblemFingerprint(**known)
    assert fields(next_questions(fingerprint)) == ["predictive_values"]
    assert next_questions(fingerprint, choices={"DG4.1": "AUROC"}) == ()


def test_target_prevalences_are_asked_for_only_where_they_are_known():
    known = {
        "number_of_classes": 2,
        "class_scores_available": True,
        "decision_rule": "argmax",
        "unequal_severity": False,
        "unequal_interest": False,
        "prevalences_representative": False,
        "class_contribution": "target_prevalences",
    }
    fingerprint = ProblemFingerprint(**known)
    assert fields(next_questions(fingerprint))[0] == "target_prevalences_known"
    assert (
        fields(next_questions(fingerprint.with_answer("target_prevalences_known", True)))[0]
        == "target_prevalences"
    )
    assert "target_prevalences" not in fields(
        next_questions(fingerprint.with_answer("target_prevalences_known", False))
    )


def test_a_question_is_a_document_for_other_programs():
    document = next_questions(ProblemFingerprint())[0].model_dump(mode="json")
    assert document["id"] == "N_CLASSES"
    assert "applies" not in document
