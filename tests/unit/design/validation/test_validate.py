import math

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from lifelong_core.design import (
    AcceptanceThreshold,
    ProblemFingerprint,
    ValidationResult,
    recommend,
    validate,
)
from lifelong_core.metrics import METRICS, compute_metrics
from lifelong_core.values.errors import InvalidInputError
from tests.unit.design.validations import OF_USE, metric, recommending, simulated

LABELS, PROBABILITIES = simulated(90, 3)
QUICK = {"replicates": 20}
COSTS = ((0.0, 1.0, 1.0), (2.0, 0.0, 1.0), (3.0, 1.0, 0.0))


def quick(recommendation, labels=LABELS, **given):
    outputs = {} if {"decisions", "logits"} & given.keys() else {"probabilities": PROBABILITIES}
    return validate(recommendation, labels, **{**outputs, **QUICK, **given})


def test_estimates_are_those_of_scikit_learn():
    result = quick(recommending("BA", "MCC", "TPR", "AUROC", "AP", "NLL"))
    decisions = PROBABILITIES.argmax(axis=1)
    is_class = np.eye(3)[LABELS]
    expected = {
        "BA": sklearn_metrics.balanced_accuracy_score(LABELS, decisions),
        "MCC": sklearn_metrics.matthews_corrcoef(LABELS, decisions),
        "TPR": sklearn_metrics.recall_score(LABELS, decisions, average="macro"),
        "AUROC": sklearn_metrics.roc_auc_score(LABELS, PROBABILITIES, multi_class="ovr", average="macro"),
        "AP": sklearn_metrics.average_precision_score(is_class, PROBABILITIES, average="macro"),
        "NLL": sklearn_metrics.log_loss(LABELS, PROBABILITIES),
    }
    for label, value in expected.items():
        assert result.estimate(label) == pytest.approx(value, rel=1e-9)
    per_class = sklearn_metrics.recall_score(LABELS, decisions, average=None)
    assert [result.estimate("TPR", k) for k in range(3)] == pytest.approx(per_class)


def test_just_the_recommended_metrics_are_computed_each_with_its_steps():
    found = recommend(ProblemFingerprint(**recommending().fingerprint.model_dump()))
    result = quick(found)
    assert result.labels == tuple(item.label for item in found.metrics) == ("BA", "TPR", "AUROC")
    assert result.value("AUROC").subprocesses == ("S4",)
    assert [value.class_index for value in result.values] == [None, *[None, 0, 1, 2] * 2]
    of_classes = ["mean", *["one_class"] * 3]
    assert [value.value_of for value in result.values] == ["all_classes", *of_classes * 2]


def test_metrics_of_one_acronym_stay_apart():
    equal = metric("EC", parameters={"costs": COSTS})
    shifted = metric("EC", parameters={"costs": COSTS, "prevalence": (0.8, 0.1, 0.1)})
    result = quick(recommending(equal, shifted, metric("F_beta", parameters={"beta": 2.0}), "F_beta"))
    assert result.labels == ("EC", "EC (2)", "F_beta (beta=2.0)", "F_beta")
    given = {"labels": LABELS, "probabilities": PROBABILITIES, "costs": COSTS}
    expected = compute_metrics(["EC"], **given, prevalence=[0.8, 0.1, 0.1])["EC"]
    assert result.estimate("EC (2)") == pytest.approx(expected)
    assert result.estimate("EC") != result.estimate("EC (2)")
    assert result.value("EC").range == (0, 3)


def test_classes_count_by_their_weights():
    weighted = metric("AUROC", class_weights=(1.0, 3.0, 0.0))
    result = quick(recommending(weighted, metric("CWCE", class_weights=(1.0, 3.0, 0.0))))
    each = [result.estimate("AUROC", k) for k in range(3)]
    assert result.estimate("AUROC") == pytest.approx((each[0] + 3 * each[1]) / 4)
    assert result.value("AUROC").value_of == result.value("CWCE").value_of == "weighted_mean"
    errors = compute_metrics(["MCE"], labels=LABELS, probabilities=PROBABILITIES, bins=15)["MCE"]
    assert result.estimate("CWCE") == pytest.approx((errors[0] + 3 * errors[1]) / 4)
    assert result.value("CWCE").low < result.value("CWCE").high
    plain = recommending("CWCE", unequal_interest=True, class_weights=(1.0, 3.0, 0.0))
    assert quick(plain).estimate("CWCE") == pytest.approx(errors.mean())
    by_interest = recommending(
        "TPR", unequal_interest=True, class_weights=(1.0, 3.0, 0.0), importance_mismatch=False
    )
    each = [quick(by_interest).estimate("TPR", k) for k in range(3)]
    assert quick(by_interest).estimate("TPR") == pytest.approx((each[0] + 3 * each[1]) / 4)


def test_the_order_of_the_samples_does_not_matter():
    acronyms = ("AC", "BA", "MCC", "EC", "TPR", "PPV", "AUROC", "AP", "BS", "NLL", "CWCE")
    order = np.random.default_rng(1).permutation(90)
    first = quick(recommending(*acronyms))
    second = quick(recommending(*acronyms), LABELS[order], probabilities=PROBABILITIES[order])
    for acronym in acronyms:
        assert first.estimate(acronym) == pytest.approx(second.estimate(acronym), rel=1e-12), acronym


def test_the_same_seed_gives_the_same_document_and_another_one_other_intervals():
    recommendation = recommending("BA", "KCE", "ECE_KDE", metric("TNR", parameters={"target": ("TPR", 0.8)}))
    documents = [quick(recommendation, rng=seed).to_json() for seed in (1, 1, 2)]
    assert documents[0] == documents[1] != documents[2]
    assert quick(recommendation, rng=np.random.default_rng(4)).seed == int(
        np.random.default_rng(4).integers(2**32)
    )


def test_logits_are_softmaxed():
    logits = np.log(PROBABILITIES) + 5
    first, second = quick(recommending("NLL")), quick(recommending("NLL"), logits=logits)
    assert second.estimate("NLL") == pytest.approx(first.estimate("NLL"), rel=1e-5)


def test_invalid_outputs_count_as_the_worst_and_are_in_no_curve():
    decisions = PROBABILITIES.argmax(axis=1)
    decisions[:9] = -1
    broken = PROBABILITIES.copy()
    broken[:9] = np.nan
    recommendation = recommending("AC", "AUROC", "BS", invalid_outputs=True)
    result = quick(recommendation, probabilities=broken, decisions=decisions)
    part = quick(recommendation, LABELS[9:], probabilities=PROBABILITIES[9:])
    assert result.estimate("AC") == pytest.approx(0.9 * part.estimate("AC"))
    assert result.estimate("AUROC", 1) == pytest.approx(0.9 * part.estimate("AUROC", 1))
    assert result.estimate("BS") == pytest.approx(0.9 * part.estimate("BS") + 0.1 * 2)
    assert result.roc_curves == part.roc_curves
    assert sum(result.confusion.invalid) == result.invalid_samples == 9
    assert any("9 of 90 samples have no valid output" in warning for warning in result.warnings)


def test_a_model_that_never_answers_is_worst():
    recommendation = recommending("AC", "AUROC", "BS", risk_threshold=0.1, target_class=2)
    result = quick(recommendation, probabilities=PROBABILITIES, decisions=[-1] * 90)
    assert [result.estimate(label) for label in ("AC", "AUROC", "BS")] == [0, 0, 2]
    assert result.roc_curves == result.precision_recall_curves == result.decision_curves == ()


def test_abstaining_is_a_decision_of_its_own():
    decisions = PROBABILITIES.argmax(axis=1)
    decisions[:9] = 3
    result = quick(recommending("AC"), decisions=decisions)
    assert [len(row) for row in result.confusion.counts] == [4, 4, 4]
    assert sum(row[3] for row in result.confusion.counts) == 9


def test_undefined_values_keep_their_reason_through_json():
    labels = LABELS % 2
    threshold = AcceptanceThreshold(metric="BA", value=0.1)
    result = quick(recommending("BA", "TPR", "AUROC"), labels, thresholds=[threshold])
    assert result.value("BA").reason == "no reference sample of class 2"
    assert result.value("TPR", 2).reason == "no reference sample of class 2"
    assert result.value("TPR").reason == "undefined for class 2: no reference sample of class 2"
    assert result.value("TPR", 0).reason is None
    assert [curve.class_index for curve in result.roc_curves] == [0, 1]
    assert result.confusion.shares[2] == (None, None, None)
    assert result.accepted is None
    assert ValidationResult.from_json(result.to_json()) == result


def test_infinite_values_survive_json():
    labels = np.repeat([0, 1], 30)
    decisions = np.where(np.arange(60) < 55, labels, 0)
    result = quick(recommending("LR+", number_of_classes=2), labels, decisions=decisions)
    value = ValidationResult.from_json(result.to_json()).value("LR+", 1)
    assert (value.estimate, value.number("estimate")) == (None, math.inf)
    assert (value.reason, value.infinite["estimate"]) == (None, 1)


class TestCutOffs:
    RECOMMENDED = recommending(
        metric("TNR", parameters={"target": ("TPR", 0.9)}, target_class=1), number_of_classes=2
    )
    LABELS, PROBABILITIES = simulated(200, 2)

    def test_of_other_data_are_kept(self):
        other = simulated(300, 2, seed=1)
        result = validate(
            self.RECOMMENDED, self.LABELS, probabilities=self.PROBABILITIES, cut_off_data=other, **QUICK
        )
        found = result.value("TNR@(TPR=0.9)")
        expected = compute_metrics(
            ["TNR"], labels=self.LABELS, probabilities=self.PROBABILITIES, target=0.9, target_split=other
        )
        assert found.estimate == pytest.approx(expected["TNR"][1])
        assert (found.class_index, found.cut_off.chosen_on, found.cut_off.samples) == (1, "other_data", 200)
        decided = self.PROBABILITIES[:, 1] >= found.cut_off.threshold
        assert found.cut_off.reached == pytest.approx(decided[self.LABELS == 1].mean())
        assert found.estimate == pytest.approx(1 - decided[self.LABELS == 0].mean())
        assert not found.notes

    def test_else_of_a_half_that_is_not_judged_and_keeps_groups_together(self):
        groups = np.arange(200) // 5
        result = validate(
            self.RECOMMENDED, self.LABELS, probabilities=self.PROBABILITIES, groups=groups, **QUICK
        )
        found = result.value("TNR@(TPR=0.9)")
        assert (found.cut_off.chosen_on, found.cut_off.samples) == ("half_of_the_data", 100)
        assert "other 100 samples" in found.notes[0]
        assert any("random half" in warning for warning in result.warnings)

    def test_that_reach_no_target_leave_it_undefined(self):
        one_class = (np.zeros(50, int), simulated(50, 2)[1])
        found = validate(
            self.RECOMMENDED, self.LABELS, probabilities=self.PROBABILITIES, cut_off_data=one_class, **QUICK
        ).value("TNR@(TPR=0.9)")
        assert found.reason == "no cut-off for class 1 reaches TPR = 0.9"
        assert (found.cut_off.threshold, found.cut_off.reached) == (None, None)

    def test_cannot_be_chosen_on_one_case(self):
        with pytest.raises(InvalidInputError) as error:
            validate(self.RECOMMENDED, [0, 1], probabilities=[[1, 0], [0, 1]], groups=["a", "a"])
        assert error.value.field == "cut_off_data"


def test_subgroups_show_the_same_metrics_of_their_samples():
    scanner = np.where(np.arange(90) < 80, "old", "new")
    recommendation = recommending("BA", "AUROC", metric("CWCE", class_weights=(1.0, 0.0, 1.0)))
    result = quick(recommendation, metadata={"scanner": scanner})
    new, old = result.subgroups
    assert (new.key, new.samples, old.key, old.samples) == ("new", 10, "old", 80)
    alone = quick(recommendation, LABELS[:80], probabilities=PROBABILITIES[:80])
    assert [value.estimate for value in old.values] == pytest.approx(
        [value.estimate for value in alone.values]
    )
    assert any("only 10 independent cases" in warning for warning in new.warnings)
    assert old.warnings == ()
    only = quick(recommending("AUROC"), metadata={"class": LABELS})
    assert only.subgroups[0].values[1].reason == "every reference sample is of class 0"


def test_an_attribute_of_numbers_is_no_subgroup():
    with pytest.raises(InvalidInputError) as error:
        validate(
            recommending("BA"),
            np.tile(LABELS, 2),
            decisions=np.tile(LABELS, 2),
            metadata={"age": np.arange(180)},
        )
    assert error.value.field == "metadata.age"
    assert "ranges" in error.value.hint


def test_curves_are_thinned_but_keep_their_ends_and_areas():
    labels, _ = simulated(4000, 2)
    scores = np.random.default_rng(0).random(4000)
    probabilities = np.stack([1 - scores, scores], axis=1)
    result = validate(
        recommending("AUROC", number_of_classes=2), labels, probabilities=probabilities, **QUICK
    )
    curve = result.roc_curves[1]
    assert 300 < len(curve.thresholds) <= 501
    assert (curve.false_positive_rate[0], curve.true_positive_rate[-1], curve.thresholds[0]) == (0, 1, None)
    assert np.trapezoid(curve.true_positive_rate, curve.false_positive_rate) == pytest.approx(
        curve.area, abs=0.002
    )
    assert curve.area == pytest.approx(sklearn_metrics.roc_auc_score(labels, scores))
    recall = result.precision_recall_curves[1]
    assert len(recall.recall) <= 501
    assert (recall.recall[-1], recall.prevalence) == (1, 0.5)
    assert len(result.reliability) == 3
    assert sum(result.reliability[0].counts) == 4000


def test_decision_curves_are_there_where_risks_are_weighed():
    assert quick(recommending("BA")).decision_curves == ()
    threshold = recommending(metric("NB", parameters={"threshold": 0.2}), **OF_USE)
    assert [curve.class_index for curve in quick(threshold).decision_curves] == [0, 1, 2]
    (curve,) = quick(recommending("BA", risk_threshold=0.1, target_class=2, **OF_USE)).decision_curves
    assert (curve.class_index, curve.net_benefit[0]) == (2, pytest.approx(curve.treat_all[0]))
    assert quick(threshold).estimate("NB@0.2", 1) == pytest.approx(
        quick(threshold).decision_curves[1].net_benefit[20]
    )


def test_the_expected_cost_is_adjusted_to_the_stated_prevalences():
    target = (0.9, 0.05, 0.05)
    result = quick(recommending("BA", costs=COSTS, target_prevalences=target))
    counts = sklearn_metrics.confusion_matrix(LABELS, PROBABILITIES.argmax(axis=1))
    rates = counts / counts.sum(axis=1, keepdims=True)
    found = result.adjusted_expected_cost
    assert found.adjusted.estimate == pytest.approx((np.array(target) @ (rates * COSTS)).sum())
    assert found.observed.estimate == pytest.approx((counts * COSTS).sum() / 90)
    assert found.adjusted.low < found.adjusted.estimate < found.adjusted.high
    assert found.adjusted.naive == pytest.approx(min(np.array(target) @ np.array(COSTS)))
    assert quick(recommending("BA")).adjusted_expected_cost is None


def test_the_naive_classifier_stands_beside():
    result = quick(recommending("AC", "BA", "AUROC", "AP", "BS", "BSS", "EC", "NEC", "KCE"))
    naive = {label: result.value(label).naive for label in result.labels}
    assert naive.pop("KCE") is None
    expected = {
        "AC": 1 / 3,
        "BA": 1 / 3,
        "AUROC": 0.5,
        "AP": 1 / 3,
        "BS": 2 / 3,
        "BSS": 0,
        "EC": 2 / 3,
        "NEC": 1,
    }
    assert naive == pytest.approx(expected, abs=1e-9)


def test_acceptance_is_part_of_the_result():
    thresholds = [
        AcceptanceThreshold(metric="BA", value=0.1),
        AcceptanceThreshold(metric="TPR", value=0.999, class_index=1),
    ]
    assert quick(recommending("BA", "TPR"), thresholds=thresholds[:1]).accepted is True
    result = quick(recommending("BA", "TPR"), thresholds=thresholds)
    assert [outcome.passed for outcome in result.acceptance] == [True, False]
    assert result.accepted is False
    assert result.acceptance[1].value == result.value("TPR", 1).low
    assert quick(recommending("BA")).accepted is None
    with pytest.raises(InvalidInputError, match="not recommended"):
        quick(recommending("BA"), thresholds=thresholds)


class TestWarnings:
    @pytest.mark.parametrize(
        ("answers", "given", "words"),
        [
            ({"dependent_cases": True, "grouping_variable": "patient"}, {}, "give the patient of each"),
            ({}, {"groups": np.arange(90) // 2}, "90 of them belong to 45 groups"),
            ({}, {"groups": np.arange(90) // 9}, "Only 10 independent cases"),
            (
                {"decision_rule": "optimization", "optimised_metric": "MCC"},
                {},
                "FP2.6: best value of a metric",
            ),
        ],
    )
    def test_say_what_speaks_against_the_numbers(self, answers, given, words):
        assert any(words in warning for warning in quick(recommending("BA", **answers), **given).warnings)
        assert not any(words in warning for warning in quick(recommending("BA")).warnings)

    def test_name_what_depends_on_the_class_mix(self):
        (warning,) = quick(recommending("BA", "AC", "AUROC")).warnings
        assert "on which AC depend" in warning
        assert (
            quick(recommending("AC", prevalences_representative=True, class_imbalance=False)).warnings == ()
        )

    def test_name_the_choices_that_are_open(self):
        answers = {**recommending().fingerprint.model_dump(), "prevalences_representative": True}
        answers |= {"class_imbalance": True, "imbalance_compensation": True, "predictive_values": "unclear"}
        answers |= {"equal_class_contribution": False}
        found = recommend(ProblemFingerprint(**answers))
        assert found.open_choices
        warnings = quick(found).warnings
        assert all(any(guide.guide in warning for warning in warnings) for guide in found.open_choices)

    def test_name_absent_and_small_classes(self):
        warnings = quick(recommending("AC"), np.where(LABELS == 2, 1, LABELS)).warnings
        assert "No case of class 2." in warnings


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"labels": [0, 1, 3]}, "labels"),
        ({"labels": []}, "labels"),
        ({"probabilities": PROBABILITIES[:, :2]}, "probabilities"),
        ({"probabilities": PROBABILITIES[1:]}, "probabilities"),
        ({"probabilities": np.where(np.arange(90)[:, None] == 4, np.nan, PROBABILITIES)}, "probabilities"),
        ({"probabilities": PROBABILITIES, "logits": PROBABILITIES}, "logits"),
        ({"decisions": [4] * 90}, "decisions"),
        ({"decisions": [0] * 89}, "decisions"),
        ({"groups": [1, 2]}, "groups"),
        ({"metadata": {"site": [1, 2]}}, "metadata.site"),
        ({"metadata": {"site": ["A", None] * 45}}, "metadata.site"),
        ({"metadata": {"site": [["A"], ["B", "C"]]}}, "metadata.site"),
        ({"class_names": ["a", "b", "a"]}, "class_names"),
        ({"replicates": 9}, "replicates"),
        ({"level": 1.0}, "level"),
        ({"rng": -1}, "rng"),
        ({"cut_off_data": ([0], [[0.5, 0.5]])}, "cut_off_data.probabilities"),
    ],
)
def test_what_does_not_fit_is_explained(given, field):
    recommendation = recommending("BA", metric("TNR", parameters={"target": ("TPR", 0.8)}))
    labels = given.pop("labels", LABELS)
    with pytest.raises(InvalidInputError) as error:
        validate(recommendation, labels, **{"probabilities": PROBABILITIES, **QUICK, **given})
    assert error.value.field == field


def test_metrics_of_scores_need_scores():
    with pytest.raises(InvalidInputError) as error:
        quick(recommending("AUROC"), decisions=LABELS)
    assert error.value.field == "probabilities"
    with pytest.raises(InvalidInputError, match="nothing was given"):
        validate(recommending("BA"), LABELS)


def test_every_metric_of_the_pool_can_be_validated():
    pool = [name for name, card in METRICS.items() if card.is_in_pool]
    result = quick(recommending(*pool, **OF_USE), groups=np.arange(90) // 2)
    for acronym in pool:
        value = result.value(acronym)
        expected = compute_metrics([acronym], labels=LABELS, probabilities=PROBABILITIES)[acronym]
        assert value.estimate == pytest.approx(np.mean(expected)), acronym
        assert value.low < value.high, acronym
    assert ValidationResult.from_json(result.to_json()) == result


@pytest.mark.parametrize(
    ("labels", "probabilities", "groups"),
    [
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], None),
        ([1], [[0.0, 1.0]], None),
        ([1, 1, 0], [[0.0, 1.0]] * 3, ["a", "a", "a"]),
        ([0] * 5, [[0.3, 0.7]] * 5, None),
    ],
)
def test_next_to_no_data_gives_reasons_and_no_fault(labels, probabilities, groups):
    every = recommending(*(name for name, card in METRICS.items() if card.is_in_pool), number_of_classes=2)
    result = validate(every, labels, probabilities=probabilities, groups=groups, **QUICK)
    for value in result.values:
        assert (value.reason is not None) is math.isnan(value.number("estimate"))
        assert not value.number("low") > value.number("estimate")
        assert not value.number("high") < value.number("estimate")
    assert ValidationResult.from_json(result.to_json()) == result
