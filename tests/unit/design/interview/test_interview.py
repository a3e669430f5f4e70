"""An interview as a value: answers, names, decisions, going back, and progress."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.design import (
    Interview,
    Recommendation,
    next_questions,
    propose_answers,
    recommend,
    start_interview,
)
from lifelong_core.design.method.conditions import parameter_value
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.recommendation.progress import possible_questions
from lifelong_core.values.errors import InvalidInputError
from tests.unit.costly import costly
from tests.unit.design.interviews import sheets
from tests.unit.design.recommendation.test_progress import SCREENING

NAMES = ("benign", "malignant")


def conduct(interview: Interview, sheet):
    """Every state on the way, answered from the sheet in the order in which questions are asked."""
    states = [interview]
    while (question := states[-1].question) is not None:
        states.append(states[-1].answer(question.field, sheet[question.field]))
    return states


def screening(**changes):
    return conduct(start_interview(class_names=NAMES), {**SCREENING, **changes})[-1]


@given(sheet=sheets())
@costly
def test_going_back_undoes_answer_by_answer(sheet):
    states = conduct(start_interview(), sheet)
    back = states[-1]
    for before in reversed(states[:-1]):
        back = back.back()
        assert back == before
        assert Interview.from_json(back.to_json()) == back
    with pytest.raises(InvalidInputError, match="nothing to go back to"):
        back.back()


@given(sheet=sheets(), data=st.data())
@costly
def test_progress_is_honest_and_never_goes_backwards_by_answering(sheet, data):
    interview, states, asked = start_interview(), [], 0
    while interview.question is not None:
        states.append((interview.progress, asked))
        may_come = sorted(possible_questions(load_method(), interview.fingerprint, {}))
        certain = [question.field for question in next_questions(interview.fingerprint)]
        assert set(certain) <= set(may_come)
        field = data.draw(st.sampled_from(may_come if data.draw(st.integers(0, 3)) == 0 else certain))
        asked += field in certain
        interview = interview.answer(field, sheet[field])
    end = interview.progress
    assert (end.certain, end.possible, end.share) == (0, 0, 1)
    for progress, before in states:
        assert progress.certain <= asked - before <= progress.possible
        assert progress.share < 1
    shares = [progress.share for progress, _ in states]
    assert shares == sorted(shares)


def test_progress_moves_with_every_question_asked():
    shares = [state.progress.share for state in conduct(start_interview(), SCREENING)]
    assert shares == sorted(set(shares))
    assert shares[0] == 0
    assert shares[-1] == 1


def test_an_answer_that_became_useless_stays_and_counts_for_nothing():
    changed = screening().answer("decision_rule", "argmax")
    assert changed.fingerprint.target_value == 0.95
    assert "target_value" in changed.history
    used = set(SCREENING) - {"target_class", "target_metric", "target_value"}
    assert changed.progress.answered == len(used)


def test_names_answer_how_many_classes_there_are():
    interview = start_interview(class_names=NAMES)
    assert interview.fingerprint.number_of_classes == 2
    assert interview.question.field == "class_scores_available"
    assert interview.history == ()
    assert interview.progress.answered == 1


def test_names_can_be_given_later():
    interview = start_interview(answers={"N_CLASSES": 3, "FP5.1": True}).with_class_names(NAMES)
    assert interview.fingerprint.number_of_classes == 2
    assert interview.history == ("class_scores_available",)


def test_another_number_of_classes_drops_the_names():
    named = start_interview(class_names=["a", "b", "c", "d", "e"])
    assert named.answer("number_of_classes", 5) == named
    other = named.answer("number_of_classes", 2)
    assert other.class_names is None
    assert other.history == ("number_of_classes",)
    assert named.answer("number_of_classes", None).question.field == "number_of_classes"


def test_without_the_names_nobody_knows_the_class_of_interest():
    named = start_interview(class_names=["a", "b", "c"], answers={"target_class": 1})
    assert named.answer("number_of_classes", 2).fingerprint.target_class is None
    assert named.with_answers({"number_of_classes": 2, "target_class": 0}).fingerprint.target_class == 0
    unnamed = start_interview(answers={"number_of_classes": 3, "target_class": 1})
    assert unnamed.answer("number_of_classes", 2).fingerprint.target_class == 1


ABOUT_CLASSES = {
    "target_class": 2,
    "class_weights": [1, 2, 3],
    "target_prevalences": [0.7, 0.2, 0.1],
    "costs": [[0, 1, 2, 9], [3, 0, 4, 8], [5, 6, 0, 7]],
}


def test_what_was_said_of_a_class_follows_its_name():
    named = start_interview(class_names=["a", "b", "c"], answers=ABOUT_CLASSES)
    found = named.with_class_names(["c", "a", "b"]).fingerprint
    assert found.target_class == 0
    assert found.class_weights == (3, 1, 2)
    assert found.target_prevalences == (0.1, 0.7, 0.2)
    assert found.costs == ((0, 5, 6, 7), (2, 0, 1, 9), (4, 3, 0, 8))
    assert named.with_class_names(["c", "a", "b"]).with_class_names(["a", "b", "c"]) == named
    assert named.with_class_names(["a", "b", "corrected"]).fingerprint == named.fingerprint
    more = named.with_class_names(["a", "b", "new", "c"])
    assert more.fingerprint.target_class == 3
    assert {item.id for item in more.contradictions} >= {"costs_of_other_classes"}
    gone = named.with_class_names(["a", "b"])
    assert gone.fingerprint.target_class is None
    assert "target_class" not in gone.history


def test_more_names_than_anybody_can_answer_for_are_refused():
    names = [str(k) for k in range(1001)]
    assert start_interview(class_names=names[1:]).fingerprint.number_of_classes == 1000
    with pytest.raises(InvalidInputError, match="at most 1000 names, got 1001") as caught:
        start_interview(class_names=names)
    assert caught.value.field == "class_names"


def test_many_classes_have_their_costs_computed_once(monkeypatch):
    """A matrix of a thousand classes takes time and memory, and a recommendation looks at each answer many times."""
    computed = []

    def counted(source, fingerprint):
        computed.append(source)
        return parameter_value(source, fingerprint)

    monkeypatch.setattr("lifelong_core.design.recommendation.walk.parameter_value", counted)
    weighted = {"unequal_interest": True, "importance_mismatch": True, "class_weights": [1, 2]}
    sheet = {
        **SCREENING,
        "decision_rule": "argmax",
        "costs_available": False,
        "class_imbalance": True,
        "imbalance_compensation": True,
        "worse_error": "neither",
        **weighted,
    }
    interview = conduct(start_interview(class_names=NAMES), sheet)[-1]
    found = interview.recommendation().metrics[0]
    assert (found.metric, found.parameters["costs"]) == ("EC", ((0, 1), (2, 0)))
    assert computed.count("importance_costs") == 1


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", "b\x1b[2J"], ["a", ""], ["a", 1], "ab"])
def test_names_that_are_none_are_refused(names):
    with pytest.raises(InvalidInputError) as caught:
        start_interview(class_names=names)
    assert caught.value.field == "class_names"


def test_what_is_answered_again_moves_to_the_end():
    interview = start_interview(answers={"FP5.1": True, "FP4.3": False, "FP5.3": False})
    again = interview.answer("FP5.1", False)
    assert again.history == ("dependent_cases", "invalid_outputs", "class_scores_available")
    assert interview.answer("FP4.3", None).history == ("class_scores_available", "invalid_outputs")


def test_what_data_says_can_be_taken_over():
    proposals = propose_answers([0, 0, 0, 1], groups=["a", "a", "b", "c"])
    interview = start_interview(class_names=NAMES).with_answers(
        {item.field: item.value for item in proposals}
    )
    assert interview.class_names == NAMES
    assert interview.history == ("class_imbalance", "dependent_cases")


def test_contradictions_come_before_further_questions_and_are_mended_by_one_call():
    early = start_interview(answers={"number_of_classes": 5, "decision_rule": "target_value"})
    assert early.stage == "contradictions"
    assert early.question is not None
    interview = screening().answer("costs", [[0, 1], [1, 0]])
    assert interview.stage == "contradictions"
    assert interview.open_choices == ()
    (found,) = interview.contradictions
    asked = interview.with_answers(found.resolutions[1].answers)
    assert (asked.contradictions, asked.question.field) == ((), "costs")
    assert "costs" not in asked.history
    assert asked.answer("costs", [[0, 1], [9, 0]]).stage == "complete"


LEFT_OPEN = {
    **SCREENING,
    "decision_rule": "argmax",
    "unequal_severity": False,
    "unequal_interest": False,
    "class_imbalance": True,
    "imbalance_compensation": True,
    "predictive_values": "unclear",
}


def test_what_no_source_decides_is_left_to_the_person():
    interview = screening(**LEFT_OPEN)
    assert interview.stage == "choices"
    guides = {guide.guide: guide for guide in interview.open_choices}
    assert list(guides) == ["DG2.3", "DG3.4"]
    assert all(guide.arguments for guide in guides.values())
    decided = interview.choose("DG2.3", "MCC").choose("DG3.4", "F_beta")
    assert decided.stage == "complete"
    assert decided.history[-2:] == ("DG2.3", "DG3.4")
    assert [guide.guide for guide in decided.back().open_choices] == ["DG3.4"]
    assert decided.recommendation().choices == {"DG2.3": ("MCC",), "DG3.4": ("F_beta",)}


def test_a_decision_may_ask_for_more():
    sheet = {
        **LEFT_OPEN,
        "prevalences_representative": False,
        "class_contribution": "equal",
        "target_prevalences_known": True,
        "target_prevalences": (0.9, 0.1),
    }
    settled = screening(**sheet)
    assert settled.stage == "complete"
    asked = settled.choose("DG2.2", "EC")
    assert (asked.stage, asked.question.field) == ("questions", "target_prevalences_known")
    (metric, *_) = conduct(asked, sheet)[-1].recommendation().metrics
    assert (metric.metric, metric.parameters["prevalence"]) == ("EC", (0.9, 0.1))
    assert asked.choose("DG2.2", None).stage == "complete"


def test_a_decision_against_the_only_right_option_is_a_contradiction_with_a_resolution():
    answers = {
        "number_of_classes": 3,
        "class_scores_available": False,
        "unequal_severity": False,
        "unequal_interest": True,
        "importance_mismatch": False,
        "prevalences_representative": True,
        "class_imbalance": True,
        "imbalance_compensation": True,
        "class_weights": [1, 1, 5],
        "predictive_values": "unimportant",
        "dependent_cases": False,
        "invalid_outputs": False,
    }
    interview = start_interview(answers={"DG2.3": "BA", **answers})
    assert interview.stage == "contradictions"
    (found,) = interview.contradictions
    assert "only NEC is right" in found.explanation
    resolved = interview.with_answers(found.resolutions[0].answers)
    assert resolved.stage == "complete"
    assert "NEC" in {metric.metric for metric in resolved.recommendation().metrics}


@pytest.mark.parametrize(
    ("guide", "options"),
    [("DG9", "BA"), ("DG9", None), ("DG2.3", "AC"), ("DG2.3", ["BA", "MCC"]), ("DG2.3", []), ("DG2.3", [1])],
)
def test_what_no_guide_offers_is_refused(guide, options):
    with pytest.raises(InvalidInputError):
        start_interview().choose(guide, options)


def test_an_incomplete_interview_says_what_is_missing():
    with pytest.raises(InvalidInputError, match=r"answers are missing: FP2\.6"):
        start_interview(answers={"N_CLASSES": 2, "FP5.1": True}).recommendation()


def test_its_recommendation_is_that_of_its_fingerprint():
    found = screening().recommendation()
    assert found == recommend(screening().fingerprint).model_copy(
        update={"class_names": screening().class_names}
    )
    assert screening().class_names is not None
    assert Recommendation.from_json(found.to_json()) == found


def test_equal_interviews_are_equal_documents():
    one = start_interview(answers={"DG2.3": "BA", "DG3.1": ["TNR"]})
    other = start_interview(answers={"DG3.1": "TNR", "DG2.3": "BA"})
    assert json.loads(one.to_json())["choices"] == {"DG2.3": ["BA"], "DG3.1": ["TNR"]}
    assert one.to_document()["choices"] == other.to_document()["choices"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"history": ["decision_rule"]}, "history"),
        ({"history": ["FP5.1"]}, "history"),
        ({"history": ["class_scores_available"] * 2}, "history"),
        ({"class_names": ["a", "b", "c"]}, "class_names"),
        ({"choices": {"DG2.3": ["AC"]}}, "choices"),
        ({"choices": {"DG9": ["AC"]}}, "choices"),
        ({"fingerprint": {"decision_rule": "dice"}}, "fingerprint.decision_rule"),
        ({"surprise": 1}, "surprise"),
        ({"schema_version": 2}, "schema_version"),
    ],
)
def test_a_damaged_document_is_refused_by_name(change, field):
    document = start_interview(answers={"N_CLASSES": 2, "FP5.1": True}).to_document()
    with pytest.raises(InvalidInputError) as caught:
        Interview.from_document(document | change)
    assert caught.value.field == field


def test_every_guide_can_be_chosen_and_withdrawn():
    for guide in load_method().guides:
        chosen = start_interview().choose(guide.id, guide.options[-1].id)
        assert chosen.history == (guide.id,)
        assert chosen.back() == start_interview()


@pytest.mark.parametrize(("found", "costs"), [(1, ((0, 1), (9, 0))), (0, ((0, 9), (1, 0)))])
def test_a_risk_proposes_the_costs_that_it_stands_for(found, costs):
    sheet = {
        **SCREENING,
        "decision_rule": "cost_benefit",
        "threshold_perspective": "risk_threshold",
        "risk_threshold": 0.1,
        "threshold_range": False,
        "target_class": found,
        "costs": costs,
    }
    states = conduct(start_interview(), sheet)
    proposals = {state.question.field: state.proposal for state in states[:-1] if state.proposal is not None}
    assert {field: item.value for field, item in proposals.items()} == {"costs": costs}
    assert "weighs as much as 9 false alarms" in proposals["costs"].reason
    assert states[-1].contradictions == ()


def test_without_a_risk_no_costs_are_proposed():
    assert [state.proposal for state in conduct(start_interview(), SCREENING)] == [None] * 16
