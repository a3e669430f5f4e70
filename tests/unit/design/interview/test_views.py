"""Answers, possible answers and metrics, as all surfaces show them."""

import pytest

from lifelong_core.design import ProblemFingerprint, start_interview
from lifelong_core.design.interview.class_names import MOST_NUMBERED, decision_names, number_class_names
from lifelong_core.design.interview.views import PossibleAnswer, possible_answers, view_answer
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.recommendation.wording import option_label, view_metric, view_metrics
from lifelong_core.metrics import METRICS
from tests.unit.design.validations import metric, recommending

NAMES = ["benign", "malignant", "unclear"]


@pytest.mark.parametrize(
    ("field", "labels"),
    [
        ("class_scores_available", ["yes, scores", "no, decisions only"]),
        ("target_class", NAMES),
        ("number_of_classes", []),
        ("costs", []),
    ],
)
def test_only_questions_that_are_answered_by_picking_offer_answers(field: str, labels: list[str]) -> None:
    offered = possible_answers(load_method().question(field), NAMES)
    assert [answer.label for answer in offered] == labels


def test_a_class_is_picked_by_its_number() -> None:
    assert possible_answers(load_method().question("target_class"), NAMES)[1] == PossibleAnswer(
        value=1, label="malignant"
    )


def test_an_answer_is_shown_with_its_item_its_question_and_the_names_of_classes() -> None:
    interview = start_interview(class_names=NAMES, answers={"target_class": 1})
    shown = view_answer(interview, "target_class")
    question = load_method().question("target_class")
    assert (shown.source_item, shown.question) == (question.id, question.question)
    assert (shown.value, shown.text, shown.is_choice) == (1, "malignant", False)
    assert view_answer(interview, "costs").text == "not answered"


def test_a_choice_is_shown_by_its_options() -> None:
    interview = start_interview(class_names=NAMES).choose("DG3.1", ["TNR", "PPV"])
    shown = view_answer(interview, "DG3.1")
    assert (shown.value, shown.text, shown.is_choice) == (("TNR", "PPV"), "TNR, PPV", True)
    assert shown.name == load_method().guide("DG3.1").title
    assert option_label("DG3.1", "TNR") == f"{METRICS['TNR'].name} (TNR)"


def test_metrics_are_shown_with_labels_that_differ() -> None:
    costs = ((0.0, 1.0, 1.0), (9.0, 0.0, 1.0), (1.0, 1.0, 0.0))
    views = view_metrics(recommending("BA", metric("EC"), metric("EC", parameters={"costs": costs})), NAMES)
    assert [view.label for view in views] == ["BA", "EC", "EC (2)"]
    assert [view.direction for view in views] == ["higher is better", "lower is better", "lower is better"]
    assert view_metric(metric("TPR", target_class=1), NAMES).target_class_name == "malignant"


def test_decisions_are_the_classes_and_where_there_is_one_more_to_abstain() -> None:
    assert decision_names(NAMES, 3) == tuple(NAMES)
    assert decision_names(NAMES, 4) == (*NAMES, "abstain")


def test_of_very_many_classes_the_first_ones_and_the_last_are_numbered() -> None:
    few, many = number_class_names(["x"] * MOST_NUMBERED), number_class_names(["x"] * (MOST_NUMBERED + 1))
    assert "..." not in few
    assert many.endswith(f"{MOST_NUMBERED - 2} x, ..., {MOST_NUMBERED} x")


@pytest.mark.parametrize(
    ("field", "answers", "missing"),
    [
        ("decision_rule", {"number_of_classes": 8}, {"target_value"}),
        ("decision_rule", {"number_of_classes": 2}, set()),
        ("decision_rule", {}, set()),
        ("optimised_metric", {"number_of_classes": 2}, {"LR+"}),
        ("optimised_metric", {"number_of_classes": 8}, {"LR+", "MCC"}),
        ("top_label_only", {"decision_rule": "cost_benefit"}, {True}),
        ("top_label_only", {"decision_rule": "argmax"}, set()),
    ],
)
def test_only_answers_that_fit_the_others_are_offered(field, answers, missing):
    question = load_method().question(field)
    offered = possible_answers(question, NAMES, ProblemFingerprint(**answers).answers())
    assert set(question.values) - {answer.value for answer in offered} == missing
