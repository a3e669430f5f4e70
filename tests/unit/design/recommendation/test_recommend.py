"""Recommendations: recommended and rejected metrics, reasons, and confidence."""

import json

import pytest
from hypothesis import given

from lifelong_core.design import (
    ProblemFingerprint,
    Recommendation,
    contradictions,
    next_questions,
    recommend,
)
from lifelong_core.metrics import METRICS
from lifelong_core.values.errors import InvalidInputError
from tests.unit.design.interviews import ALL_ALIKE, interview, sheets

TRAVERSAL = {"number_of_classes": 8, **ALL_ALIKE}
"""Thesis section 5.1.3."""


UNKNOWN_SHARES = {"target_prevalences_known": False, "assumed_prevalences": "test_data"}


def fingerprint(**changes):
    return ProblemFingerprint(**{**TRAVERSAL, **changes})


def labels(found):
    return [metric.label for metric in found.metrics]


def reasons(step):
    return {rejected.metric: rejected.reason for rejected in step.rejected}


class TestTheTraversalThatTheThesisPrints:
    found = recommend(fingerprint())

    def test_its_rows_and_guides(self):
        assert [step.row for step in self.found.steps] == ["S2.5a", "S3.3", "S4.1", "S5.1.0b", "S5.2.0b"]
        guides = {guide.guide: guide.chosen for step in self.found.steps for guide in step.guides}
        assert guides == {"DG2.2": ("BA",), "DG3.3": ("TPR",)}

    def test_the_sensitivity_of_each_class_stands_beside_its_mean(self):
        assert labels(self.found) == ["BA", "TPR", "AUROC"]
        assert self.found.warnings == ()

    def test_its_path(self):
        path = [(entry.item, entry.answer) for entry in self.found.step("S2").path]
        assert path == [
            ("FP2.6", "argmax"),
            ("FP2.5.2", False),
            ("FP2.5.1", False),
            ("FP4.2", False),
            ("DG2.2.class_contribution", "equal"),
        ]

    def test_the_area_under_the_curve_follows_from_the_class_mix(self):
        step = self.found.step("S4")
        assert [(entry.item, entry.answer) for entry in step.path] == [("FP5.1", True), ("FP4.2", False)]
        assert step.confidence == "stated"


@given(sheet=sheets())
def test_every_recommendation_accounts_for_every_metric_and_survives_json(sheet):
    answered = interview(sheet)
    if contradictions(answered):
        return
    found = recommend(answered)
    for step in found.steps:
        recommended, rejected = {metric.metric for metric in step.metrics}, reasons(step)
        assert not recommended & set(rejected)
        assert all(reason.endswith(".") for reason in rejected.values())
        assert recommended | set(rejected) <= set(METRICS)
        assert all(entry.label and entry.name for entry in step.path)
        assert all(guide.arguments and guide.why for guide in step.guides)
        assert step.source
    assert Recommendation.from_json(found.to_json()) == found
    assert json.loads(found.to_json())["method_version"] == 1


def test_what_is_missing_is_named():
    with pytest.raises(
        InvalidInputError, match=r"FP4.3 \(dependent_cases\), FP5.3 \(invalid_outputs\)"
    ) as caught:
        recommend(fingerprint(dependent_cases=None, invalid_outputs=None))
    assert caught.value.field == "dependent_cases"


def test_target_prevalences_reach_the_expected_cost():
    changes = {
        "number_of_classes": 2,
        "class_contribution": "target_prevalences",
        "target_prevalences_known": True,
        "target_prevalences": (0.9, 0.1),
    }
    metric = recommend(fingerprint(**changes)).step("S2").metrics[0]
    assert metric.metric == "EC"
    assert not metric.per_class
    assert metric.parameters == {"costs": ((0.0, 1.0), (1.0, 0.0)), "prevalence": (0.9, 0.1)}


def test_costs_from_class_importance():
    changes = {"number_of_classes": 3, "unequal_interest": True, "importance_mismatch": True}
    found = recommend(fingerprint(**changes, class_weights=(1, 1, 5), **UNKNOWN_SHARES))
    metric = found.step("S2").metrics[0]
    assert metric.parameters == {"costs": ((0, 1, 1), (1, 0, 1), (5, 5, 0))}
    assert found.step("S2").confidence == "inferred"
    assert next(advice for advice in found.advice if advice.id == "weighted_mean_over_classes").values == {
        "class_weights": (1, 1, 5)
    }


SEVERE = {"unequal_severity": True, "prevalences_representative": True, "predictive_values": "unimportant"}


def test_without_costs_a_provisional_metric_is_named_and_marked():
    found = recommend(
        fingerprint(
            unequal_severity=True, costs_available=False, unequal_interest=False, class_contribution="equal"
        )
    )
    step = found.step("S2")
    assert (step.row, step.fallback_row, step.action) == ("S2.3", "S2.5a", "elicit_costs")
    assert [metric.metric for metric in step.metrics] == ["BA"]
    assert step.confidence == "not_in_source" == found.confidence
    assert any("numbers" in note for note in step.notes)
    assert ("FP2.5.2", True) in [(entry.item, entry.answer) for entry in step.path]


def test_costs_lead_to_the_default_of_the_source_and_a_person_may_decide_otherwise():
    costs = ((0, 1, 2), (1, 0, 1), (2, 1, 0))
    linear = fingerprint(number_of_classes=3, costs_available=True, costs=costs, **SEVERE)
    outcome = recommend(linear).step("S2").guides[0]
    assert (outcome.chosen, outcome.decided_by, outcome.default) == (("EC",), "default", "EC")
    found = recommend(linear, choices={"DG2.1": "WCK"})
    assert found.step("S2").metrics[0].parameters == {"costs": costs}
    assert reasons(found.step("S2"))["EC"] == "DG2.1 decides for WCK: You decided for it."


TARGET = {
    "number_of_classes": 2,
    "decision_rule": "target_value",
    "target_class": 1,
    "target_metric": "TPR",
    "target_value": 0.95,
}


def test_at_a_target_the_complement_is_reported_for_the_class_of_interest():
    found = recommend(fingerprint(**TARGET))
    metric = found.step("S3").metrics[0]
    assert metric.label == "TNR@(TPR=0.95)"
    assert metric.parameters == {"target": ("TPR", 0.95)}
    assert metric.target_class == 1
    assert "separate_split" in {advice.id for advice in found.advice}


def test_at_a_target_several_may_be_chosen():
    found = recommend(fingerprint(**TARGET), choices={"DG3.1": ["TNR", "PPV"]})
    assert [metric.label for metric in found.step("S3").metrics] == ["TNR@(TPR=0.95)", "PPV@(TPR=0.95)"]


BENEFIT = {
    "number_of_classes": 2,
    "decision_rule": "cost_benefit",
    "unequal_severity": True,
    "costs_available": True,
    "costs": ((0, 1), (9, 0)),
    **UNKNOWN_SHARES,
}


def test_a_risk_threshold_leads_to_the_net_benefit_and_its_curve():
    risk = {
        "threshold_perspective": "risk_threshold",
        "target_class": 1,
        "risk_threshold": 0.1,
        "threshold_range": True,
    }
    found = recommend(fingerprint(**BENEFIT, **risk))
    assert labels(found) == ["EC", "NB@0.1", "AUROC"]
    assert "decision_curve" in found.displays
    assert [warning.metrics for warning in found.warnings] == [("EC", "NB")]
    settled = recommend(fingerprint(**{**BENEFIT, **risk, "threshold_range": False}))
    assert "decision_curve" not in settled.displays


def test_explicit_costs_lead_to_the_expected_cost_named_once():
    found = recommend(fingerprint(**BENEFIT, threshold_perspective="explicit_costs"))
    assert [metric.metric for metric in found.step("S3").metrics] == ["EC"]
    assert labels(found) == ["EC", "AUROC"]


@pytest.mark.parametrize(("worse", "beta"), [("missed_case", 2.0), ("false_alarm", 0.5), ("neither", 1.0)])
def test_the_f_score_takes_its_beta_from_the_worse_error(worse, beta):
    changes = {**SEVERE, "predictive_values": "important", "worse_error": worse, "number_of_classes": 3}
    changes |= {"class_imbalance": False}
    found = recommend(fingerprint(**changes, costs_available=True, costs=((0, 1, 2), (1, 0, 1), (2, 1, 0))))
    metric = found.step("S3").metrics[0]
    assert (metric.metric, metric.parameters) == ("F_beta", {"beta": beta})
    assert metric.per_class
    assert [guide.guide for guide in found.step("S3").guides] == ["DG3.4", "DG3.5"]


BALANCED = {"prevalences_representative": True, "class_imbalance": False, "predictive_values": "unclear"}


def test_where_nothing_decides_the_choice_stays_open_until_a_person_makes_it():
    found = recommend(fingerprint(**BALANCED))
    assert [guide.guide for guide in found.open_choices] == ["DG3.4"]
    outcome = found.open_choices[0]
    assert (outcome.decided_by, outcome.default) == ("nobody", None)
    assert {argument.option for argument in outcome.arguments} == set(outcome.options)
    assert found.step("S3").metrics == ()
    assert "still open" in reasons(found.step("S3"))["TPR"]
    assert labels(found) == ["AC", "AUROC", "AP"]  # DG4.1: a source says both
    assert labels(recommend(fingerprint(**BALANCED), choices={"DG3.4": "TPR"})) == [
        "AC",
        "TPR",
        "AUROC",
        "AP",
    ]


def test_a_choice_counts_where_another_guide_takes_it_over():
    changes = {
        **BALANCED,
        "predictive_values": "unimportant",
        "number_of_classes": 2,
        "class_contribution": None,
    }
    found = recommend(fingerprint(**changes), choices={"DG3.3": "TPR"})
    assert labels(found) == ["AC", "TPR", "AUROC"]
    assert found.unused == ()
    assert found.step("S3").guides[0].decided_by == "person"
    assert labels(recommend(fingerprint(**changes))) == ["AC", "LR+", "AUROC"]


IMBALANCED = {
    "prevalences_representative": True,
    "class_imbalance": True,
    "imbalance_compensation": True,
    "predictive_values": "important",
}


def test_a_choice_that_a_source_calls_wrong_is_refused():
    forced = fingerprint(
        **{**IMBALANCED, "number_of_classes": 2, "unequal_interest": True, "importance_mismatch": False}
    )
    found = recommend(forced)
    assert found.step("S2").metrics[0].metric == "NEC"
    assert found.step("S2").confidence == "stated"
    assert labels(recommend(forced, choices={"DG2.3": "NEC"}))[0] == "NEC"
    with pytest.raises(InvalidInputError, match="only NEC is right"):
        recommend(forced, choices={"DG2.3": "BA"})


@pytest.mark.parametrize(
    "choices",
    [{"DG9.9": "BA"}, {"DG2.2": "AC"}, {"DG2.2": ["BA", "EC"]}, {"DG2.2": []}, {"DG3.1": ["TNR", "AUROC"]}],
)
def test_a_choice_that_does_not_exist_is_refused(choices):
    with pytest.raises(InvalidInputError) as caught:
        recommend(fingerprint(), choices=choices)
    assert caught.value.field == "choices"


def test_a_choice_whose_guide_was_not_asked_is_named():
    found = recommend(fingerprint(), choices={"DG4.1": "AP"})
    assert [(answer.item, answer.value) for answer in found.unused] == [("DG4.1", ("AP",))]


def test_an_answer_that_follows_says_so_and_how_sure_it_is():
    found = recommend(
        ProblemFingerprint(
            **{
                **TRAVERSAL,
                "class_scores_available": False,
                "decision_rule": None,
                "calibration_assessment": None,
            }
        )
    )
    entry = next(entry for entry in found.step("S2").path if entry.item == "FP2.6")
    assert entry.answer == "argmax"
    assert "Without scores" in entry.implied
    assert found.step("S2").confidence == "not_in_source"
    assert found.step("S4").metrics == ()


CALIBRATED = {"calibration_assessment": True, "output_interpretation": "none"}


def test_where_two_readings_differ_both_metrics_are_named_and_the_step_says_so():
    changes = {**CALIBRATED, "calibration_comparison": "U2", "unequal_interest": True, "number_of_classes": 2}
    apart = recommend(fingerprint(**changes, importance_mismatch=False)).step("S5_step1")
    assert [metric.metric for metric in apart.metrics] == ["CWCE", "KCE"]
    assert apart.confidence == "inferred"
    assert any("disagree" in note for note in apart.notes)
    with_costs = {"class_weights": (1, 5), **UNKNOWN_SHARES}
    same = recommend(fingerprint(**changes, importance_mismatch=True, **with_costs)).step("S5_step1")
    assert [metric.metric for metric in same.metrics] == ["CWCE"]
    assert same.confidence == "stated"


@pytest.mark.parametrize(
    ("changes", "metrics"),
    [
        ({"class_imbalance": False}, ["BS"]),
        ({"class_imbalance": True, "rare_events": False}, ["BS", "BSS"]),
        ({"class_imbalance": True, "rare_events": True}, ["NLL"]),
    ],
)
def test_overall_performance_of_probabilities(changes, metrics):
    found = recommend(fingerprint(**CALIBRATED, calibration_comparison="U3", **changes))
    assert [metric.metric for metric in found.step("S5_step1").metrics] == metrics
    assert "reliability_diagram" in found.displays
    assert {"calibration_elsewhere", "calibration_one_task"} <= {advice.id for advice in found.advice}


def test_class_importance_reaches_the_class_wise_calibration():
    changes = {
        "calibration_assessment": True,
        "calibration_comparison": "none",
        "output_interpretation": "calibration_only",
        "unequal_interest": True,
        "importance_mismatch": False,
        "class_weights": (1, 5),
        "number_of_classes": 2,
    }
    metric = recommend(fingerprint(**changes)).step("S5_step2").metrics[0]
    assert (metric.metric, metric.class_weights, metric.parameters) == ("CWCE", (1, 5), {})


def test_advice_is_given_only_where_it_applies():
    plain = {advice.id for advice in recommend(fingerprint()).advice}
    assert not plain & {"dependent_cases", "invalid_outputs", "bins", "reliability_diagram"}
    grouped = recommend(fingerprint(dependent_cases=True, grouping_variable="patient", invalid_outputs=True))
    advice = {item.id: item for item in grouped.advice}
    assert advice["dependent_cases"].values == {"grouping_variable": "patient"}
    assert "invalid_outputs" in advice


def test_no_decision_rule_leaves_nothing_to_count():
    found = recommend(fingerprint(decision_rule="none", unequal_severity=None, class_contribution=None))
    assert labels(found) == ["AUROC"]
    assert "confusion_matrix" not in found.displays
    assert set(reasons(found.step("S2")).values()) == {
        "Nothing is decided, so there are no decisions to count."
    }


def test_an_unknown_subprocess_is_no_step():
    with pytest.raises(KeyError):
        recommend(fingerprint()).step("S6")


COUNTED = {"prevalences_representative": True, "class_imbalance": True, "predictive_values": "important"}


@pytest.mark.parametrize(("compensation", "metric"), [(True, "F_beta"), (False, "TPR")])
def test_the_f_score_is_for_a_compensation_of_imbalance(compensation, metric):
    """Thesis section 4.2.2, DG3.4: the choice follows FP2.5.5."""
    found = recommend(fingerprint(**COUNTED, imbalance_compensation=compensation))
    assert [item.metric for item in found.step("S3").metrics] == [metric]


@pytest.mark.parametrize(
    ("assumed", "parameters"), [("balanced", {"prevalence": (1 / 3,) * 3}), ("test_data", {})]
)
def test_the_expected_cost_says_which_class_shares_it_assumes(assumed, parameters):
    changes = {**SEVERE, "prevalences_representative": False, "number_of_classes": 3, "costs_available": True}
    costs = ((0.0, 1.0, 2.0), (1.0, 0.0, 1.0), (2.0, 1.0, 0.0))
    changes |= {"costs": costs, "target_prevalences_known": False, "predictive_values": None}
    unknown = fingerprint(**changes)
    assert [question.field for question in next_questions(unknown)] == ["assumed_prevalences"]
    found = recommend(unknown.with_answer("assumed_prevalences", assumed))
    assert found.step("S2").metrics[0].parameters == {"costs": costs, **parameters}
    said = [advice.advice for advice in found.advice if "class shares" in advice.pitfall]
    assert len(said) == 1
    assert ("equal shares" in said[0]) is (assumed == "balanced")
    told = unknown.with_answers({"target_prevalences_known": True, "target_prevalences": (0.5, 0.3, 0.2)})
    assert recommend(told).step("S2").metrics[0].parameters == {"costs": costs, "prevalence": (0.5, 0.3, 0.2)}


def test_at_a_share_of_positives_the_sensitivity_is_reported():
    found = recommend(fingerprint(**{**TARGET, "target_metric": "PPR", "target_value": 0.1}))
    metric = found.step("S3").metrics[0]
    assert (metric.label, metric.parameters) == ("TPR@(PPR=0.1)", {"target": ("PPR", 0.1)})


def test_the_class_of_an_optimised_f_score_is_asked():
    optimised = fingerprint(decision_rule="optimization", optimised_metric="F_beta")
    assert [question.field for question in next_questions(optimised)] == ["target_class"]
    assert recommend(optimised.with_answer("target_class", 2)).unused == ()
    assert next_questions(fingerprint(decision_rule="optimization", optimised_metric="BA")) == ()


@pytest.mark.parametrize("rule", ["target_value", "optimization", "cost_benefit", "none"])
def test_the_probability_of_the_decision_alone_is_only_for_the_highest_score(rule):
    """Thesis section 4.2.2, DG5.4: top-label calibration implies argmax."""
    answers = {**CALIBRATED, "calibration_comparison": "none", "output_interpretation": "calibration_only"}
    assert "top_label_only" in [one.field for one in next_questions(fingerprint(**answers))]
    other = fingerprint(**{**answers, "decision_rule": rule})
    assert "top_label_only" not in [one.field for one in next_questions(other)]
