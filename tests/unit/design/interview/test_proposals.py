import numpy as np
import pytest

from lifelong_core.design import ProblemFingerprint, next_questions, propose_answers
from lifelong_core.values.errors import InvalidInputError


def proposed(*arguments, **options):
    return {proposal.field: proposal.value for proposal in propose_answers(*arguments, **options)}


LABELS = np.repeat([0, 1, 2], [50, 30, 20])


@pytest.mark.parametrize(
    ("sizes", "imbalanced"),
    [([10, 10], False), ([19, 10], False), ([20, 10], True), ([5, 5, 0], True), ([3], True)],
)
def test_classes_are_imbalanced_from_a_factor_of_two(sizes, imbalanced):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    assert proposed(labels, classes=max(len(sizes), 2))["class_imbalance"] is imbalanced


def test_the_number_of_classes_is_that_of_the_scores_even_if_one_never_occurs():
    assert proposed([0, 1], probabilities=np.full((2, 4), 0.25))["number_of_classes"] == 4
    assert proposed([0, 0])["number_of_classes"] == 2
    assert proposed([0, 3])["number_of_classes"] == 4


@pytest.mark.parametrize(
    ("scores", "available"), [(np.full((100, 3), 1 / 3), True), (np.eye(3)[LABELS], False)]
)
def test_scores_that_are_only_decisions_are_none(scores, available):
    assert proposed(LABELS, probabilities=scores)["class_scores_available"] is available


@pytest.mark.parametrize(
    ("target", "same"),
    [([0.5, 0.3, 0.2], True), ([0.55, 0.27, 0.18], True), ([0.9, 0.05, 0.05], False), ([1, 0, 0], False)],
)
def test_the_class_mix_is_that_of_use_unless_more_than_chance_parts_them(target, same):
    found = proposed(LABELS, target_prevalence=target)
    assert found["prevalences_representative"] is same
    assert ("target_prevalences" in found) is not same


def test_a_sample_of_the_target_population_is_rarely_called_another():
    rng = np.random.default_rng(0)
    target = np.array([0.7, 0.25, 0.05])
    called = [
        proposed(rng.choice(3, size=500, p=target), classes=3, target_prevalence=target)[
            "prevalences_representative"
        ]
        for _ in range(300)
    ]
    assert np.mean(called) > 0.97


def test_one_class_alone_may_be_what_is_used():
    assert proposed([0, 0, 0], target_prevalence=[1.0, 0.0])["prevalences_representative"] is True


@pytest.mark.parametrize(("groups", "dependent"), [(["a", "b", "b"], True), (["a", "b", "c"], False)])
def test_groups_make_cases_dependent(groups, dependent):
    assert proposed([0, 1, 1], groups=groups)["dependent_cases"] is dependent


def test_invalid_outputs_are_seen_in_scores_and_in_decisions():
    scores = np.full((3, 2), 0.5)
    assert proposed([0, 1, 1], probabilities=scores)["invalid_outputs"] is False
    assert proposed([0, 1, 1], decisions=[0, -1, 1])["invalid_outputs"] is True
    scores[1, 0] = np.nan
    assert proposed([0, 1, 1], probabilities=scores)["invalid_outputs"] is True


def test_a_person_confirms_them():
    found = proposed(
        LABELS,
        probabilities=np.full((100, 3), 1 / 3),
        groups=np.arange(100) // 2,
        target_prevalence=[0.2, 0.3, 0.5],
    )
    fingerprint = ProblemFingerprint().with_answers(found)
    assert fingerprint.class_scores_available
    assert next(question.field for question in next_questions(fingerprint)) == "decision_rule"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"labels": []}, "labels"),
        ({"labels": [0.5]}, "labels"),
        ({"labels": ["benign", "malignant"]}, "labels"),
        ({"labels": [0, 5], "classes": 2}, "labels"),
        ({"labels": [0, 1], "probabilities": [0.5, 0.5]}, "probabilities"),
        ({"labels": [0, 1], "probabilities": [[0.5, 0.5]]}, "probabilities"),
        ({"labels": [0, 1], "decisions": [[0, 1]]}, "decisions"),
        ({"labels": [0, 1], "groups": ["a"]}, "groups"),
        ({"labels": [0, 1], "target_prevalence": [0.5, 0.6]}, "target_prevalence"),
    ],
)
def test_what_does_not_fit_is_named(options, field):
    with pytest.raises(InvalidInputError) as caught:
        propose_answers(**options)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"probabilities": np.full((100, 3), 2.0)}, "probabilities"),
        ({"probabilities": np.full((100, 3), "much")}, "probabilities"),
        ({"probabilities": np.full((100, 3), 1 / 3), "classes": 4}, "probabilities"),
        ({"probabilities": np.empty((100, 0))}, "probabilities"),
        ({"probabilities": [[0.5, 0.5], [1.0]]}, "probabilities"),
        ({"decisions": np.full(100, 7)}, "decisions"),
        ({"decisions": np.full(100, "benign")}, "decisions"),
    ],
)
def test_what_is_no_output_of_a_classifier_is_refused(given, field):
    """Else it would be proposed that there are scores, and that all of them can be used."""
    with pytest.raises(InvalidInputError) as caught:
        propose_answers(LABELS, **given)
    assert caught.value.field == field


def test_outputs_that_cannot_be_used_are_counted_not_refused():
    scores = np.full((100, 3), 1 / 3)
    scores[3] = np.nan
    assert proposed(LABELS, probabilities=scores)["invalid_outputs"] is True
    decisions = LABELS.copy()
    decisions[:2] = -1
    decisions[2] = 3  # abstains
    assert proposed(LABELS, decisions=decisions)["invalid_outputs"] is True
