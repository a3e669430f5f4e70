"""Decisions of the answered rule in validations, against brute force and simulated populations."""

from collections import Counter

import numpy as np
import pytest
from scipy.special import expit

from lifelong_core.deploy import bayes_decisions
from lifelong_core.design import ModelOutputs, ValidationResult, validate
from lifelong_core.design.recommendation.stated_rule import stated_rule
from lifelong_core.design.validation.compare import compare
from lifelong_core.design.validation.decisions.decide import decide
from lifelong_core.design.validation.decisions.targets import judged_decisions
from lifelong_core.design.validation.values.evaluation import Split
from lifelong_core.design.validation.values.intervals import Resamples
from lifelong_core.design.validation.values.samples import Samples
from lifelong_core.metrics import METRICS, balanced_accuracy, confusion_matrix, matthews_correlation
from tests.unit.design.validations import metric, recommending, simulated

PREVALENCES = {
    "prevalences_representative": False,
    "target_prevalences_known": True,
    "target_prevalences": (0.9, 0.1),
}
IN_USE = {"prevalences_representative": True}
COSTS = ((0.0, 1.0), (20.0, 0.0))


def drawn(samples, *, seed, share=0.4, slope=1.5):
    """Labels and calibrated probabilities of two classes."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(samples) < share).astype(int)
    scores = rng.normal(size=samples) + slope * labels
    logits = slope * scores - slope**2 / 2 + np.log(share / (1 - share))
    p = expit(logits)
    return labels, np.stack([1 - p, p], axis=1)


JUDGED, OTHERS = drawn(600, seed=1), drawn(500, seed=2)


def target(acronym, value, **answers):
    given = {"target_metric": acronym, "target_value": value, "target_class": 1}
    return {"number_of_classes": 2, "decision_rule": "target_value", **given, **answers}


def best(acronym, **answers):
    return {"number_of_classes": 2, "decision_rule": "optimization", "optimised_metric": acronym, **answers}


def judged(answers, *metrics, data=JUDGED, **given):
    labels, probabilities = data
    outputs = {"probabilities": probabilities, "replicates": 30, **given}
    return validate(recommendation(answers, *(metrics or ("BA",))), labels, **outputs)


def recommendation(answers, *metrics):
    return recommending(*metrics, **{**IN_USE, **answers})


def rates(labels, is_positive, shares=None):
    """TPR, TNR, PPV, NPV and PPR, by definition."""
    share = labels.mean() if shares is None else shares[1]
    tpr, fpr = is_positive[labels == 1].mean(), is_positive[labels == 0].mean()
    ppr = share * tpr + (1 - share) * fpr
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "TPR": tpr,
            "TNR": 1 - fpr,
            "PPV": share * tpr / ppr,
            "NPV": (1 - share) * (1 - fpr) / (1 - ppr),
            "PPR": ppr,
        }


def brute_force(acronym, value, data, shares=None):
    """The cut-off that reaches the target with the best specificity or sensitivity."""
    labels, p = data[0], data[1][:, 1]
    objective = "TNR" if acronym in ("TPR", "NPV") else "TPR"
    found = {t: rates(labels, p >= t, shares) for t in np.unique(p)}
    sign = -1 if acronym == "PPR" else 1
    kept = {t: one for t, one in found.items() if sign * one[acronym] >= sign * value - 1e-9}
    most = max(one[objective] for one in kept.values())
    return max(t for t, one in kept.items() if one[objective] >= most - 1e-12), found


@pytest.mark.parametrize("answers", [{}, PREVALENCES])
@pytest.mark.parametrize(
    ("acronym", "value"), [("TPR", 0.9), ("TNR", 0.8), ("PPV", 0.6), ("NPV", 0.95), ("PPR", 0.2)]
)
def test_the_cut_off_of_a_target_is_chosen_on_the_other_cases_and_judged_on_these(acronym, value, answers):
    result = judged(target(acronym, value, **answers), "BA", cut_off_data=OTHERS)
    shares = answers.get("target_prevalences")
    wanted, found = brute_force(acronym, value, OTHERS, shares)
    decisions = result.decisions
    assert decisions.source == "rule"
    others = OTHERS[1][:, 1]
    assert decisions.cut_off.threshold == pytest.approx((wanted + others[others < wanted].max()) / 2)
    assert decisions.cut_off.value == pytest.approx(found[wanted][acronym])
    assert (decisions.cut_off.chosen_on, decisions.cut_off.samples) == ("other_data", 500)
    assert decisions.cut_off.is_reachable
    is_positive = JUDGED[1][:, 1] >= decisions.cut_off.threshold
    reached = rates(JUDGED[0], is_positive, shares)[acronym]
    assert decisions.target.reached.estimate == pytest.approx(reached)
    assert decisions.target.prevalence == decisions.cut_off.prevalence == shares
    assert decisions.target.reached.low < reached <= decisions.target.reached.high
    confusion = confusion_matrix(JUDGED[0], is_positive.astype(int), classes=2)
    assert result.estimate("BA") == pytest.approx(balanced_accuracy(confusion))
    assert result.confusion.counts == tuple(map(tuple, confusion.tolist()))
    assert not any("likeliest class counts" in warning for warning in result.warnings)


def test_the_metric_at_the_target_is_that_of_the_same_cut_off():
    at_target = metric("PPV", parameters={"target": ("TPR", 0.9)}, target_class=1)
    for answers in ({}, PREVALENCES):
        result = judged(target("TPR", 0.9, **answers), at_target, "TNR", cut_off_data=OTHERS)
        used = result.decisions.cut_off
        value = result.value("PPV@(TPR=0.9)", 1)
        assert value.cut_off.threshold == used.threshold
        shares = answers.get("target_prevalences")
        assert value.estimate == pytest.approx(
            rates(JUDGED[0], JUDGED[1][:, 1] >= used.threshold, shares)["PPV"]
        )
        assert value.cut_off.reached == pytest.approx(result.decisions.target.reached.estimate)
        assert value.low < value.estimate < value.high


@pytest.mark.parametrize("given", [{"cut_off_data": OTHERS}, {}])
def test_judged_labels_never_change_the_cut_off(given):
    groups = np.arange(600) // 2
    asked = {"groups": groups, **given}
    before = judged({**target("PPV", 0.7), "dependent_cases": True}, **asked)
    labels, probabilities = JUDGED
    shuffled = labels.copy()
    rows = np.arange(600)
    if not given:
        # The judged half, by the draw of the halves.
        chooses = np.random.default_rng([0, 1]).permutation(300) < 150
        rows = np.flatnonzero(~chooses[groups])
        assert before.decisions.samples == rows.size == 300
    shuffled[rows] = np.random.default_rng(5).permutation(labels[rows])
    after = judged({**target("PPV", 0.7), "dependent_cases": True}, data=(shuffled, probabilities), **asked)
    assert after.decisions.cut_off == before.decisions.cut_off
    assert after.decisions.target.reached.estimate != before.decisions.target.reached.estimate


def test_without_other_data_whole_groups_choose_and_others_are_judged():
    groups = np.arange(600) // 20
    result = judged(target("TPR", 0.9), groups=groups)
    used = result.decisions.cut_off
    assert used.chosen_on == "half_of_the_data"
    assert used.samples == result.decisions.samples == sum(map(sum, result.confusion.counts)) == 300
    assert result.samples == 600
    assert any("a random half of the cases" in warning for warning in result.warnings)


@pytest.mark.parametrize(
    ("acronym", "of_confusion"),
    [("BA", balanced_accuracy), ("MCC", matthews_correlation), ("F_beta", None), ("EC", None)],
)
def test_an_optimised_metric_is_best_on_the_other_cases(acronym, of_confusion):
    def value(is_positive):
        confusion = confusion_matrix(OTHERS[0], is_positive.astype(int), classes=2)
        if acronym == "F_beta":
            tp, fp, fn = confusion[1, 1], confusion[0, 1], confusion[1, 0]
            return 5 * tp / (5 * tp + 4 * fn + fp)
        if acronym == "EC":
            return (confusion * np.array(COSTS)).sum() / 500
        return of_confusion(confusion)

    answers = best(acronym, worse_error="missed_case", **({"costs": COSTS} if acronym == "EC" else {}))
    used = judged(answers, cut_off_data=OTHERS).decisions.cut_off
    values = [value(OTHERS[1][:, 1] >= t) for t in np.unique(OTHERS[1][:, 1])]
    assert used.value == pytest.approx(min(values) if acronym == "EC" else np.nanmax(values))
    assert value(OTHERS[1][:, 1] >= used.threshold) == pytest.approx(used.value)


@pytest.mark.parametrize("answers", [{}, PREVALENCES])
def test_stated_costs_decide_at_the_class_shares_of_use(answers):
    result = judged(
        {"number_of_classes": 2, "decision_rule": "cost_benefit", "costs": COSTS, **answers}, "BA"
    )
    labels, probabilities = JUDGED
    if answers:
        weights = np.array([0.9, 0.1]) / np.bincount(labels) * labels.size
        probabilities = probabilities * weights / (probabilities * weights).sum(axis=1, keepdims=True)
    wanted = confusion_matrix(labels, bayes_decisions(probabilities, COSTS), classes=2)
    assert result.confusion.counts == tuple(map(tuple, wanted.tolist()))
    assert (result.decisions.source, result.decisions.rule) == ("rule", "least expected cost")
    assert result.decisions.cut_off is None


def test_a_risk_threshold_decides_with_corrected_probabilities():
    answers = {"number_of_classes": 2, "decision_rule": "cost_benefit", "risk_threshold": 0.1}
    plain = judged(answers, "BA")
    assert plain.decisions.changed == ((JUDGED[1][:, 1] >= 0.1) != (JUDGED[1][:, 1] > 0.5)).sum()
    shares = np.bincount(JUDGED[0]) / 600
    odds = JUDGED[1][:, 1] / JUDGED[1][:, 0] * (0.1 / 0.9) * shares[0] / shares[1]
    in_use = judged({**answers, **PREVALENCES}, "BA")
    wanted = confusion_matrix(JUDGED[0], (odds >= 0.1 / 0.9).astype(int), classes=2)
    assert in_use.confusion.counts == tuple(map(tuple, wanted.tolist()))


def test_the_likeliest_class_stands_beside_the_rule_where_they_differ():
    result = judged(target("TPR", 0.95), "BA", "MCC", "AUROC", cut_off_data=OTHERS)
    by_argmax = judged({"number_of_classes": 2, "decision_rule": "argmax"}, "BA", "MCC", "AUROC")
    beside = {value.label: value for value in result.decisions.by_likeliest}
    assert beside.keys() == {"BA", "MCC"}
    for label, value in beside.items():
        assert value.estimate == by_argmax.estimate(label) != result.estimate(label)
        assert (value.low, value.high) == (by_argmax.value(label).low, by_argmax.value(label).high)
    assert by_argmax.decisions.by_likeliest == ()
    assert (by_argmax.decisions.source, by_argmax.decisions.changed) == ("rule", 0)
    assert ValidationResult.from_json(result.to_json()) == result


def test_given_decisions_are_judged_and_the_result_says_so():
    labels, probabilities = JUDGED
    given = (probabilities[:, 1] >= 0.2).astype(int)
    result = judged(target("TPR", 0.9), "TPR", decisions=given)
    assert (result.decisions.source, result.decisions.cut_off) == ("given", None)
    assert result.decisions.samples == 600
    assert result.decisions.target.reached.estimate == pytest.approx(given[labels == 1].mean())
    assert result.estimate("TPR", 1) == pytest.approx(given[labels == 1].mean())
    alone = judged(target("PPR", 0.3), decisions=given, probabilities=None)
    assert alone.decisions.changed is None
    assert alone.decisions.target.reached.estimate == pytest.approx(given.mean())


def test_an_invalid_output_is_no_positive_decision():
    given = np.where(np.arange(600) < 100, -1, 1)
    result = judged(target("PPR", 0.5), decisions=given, probabilities=None)
    assert result.decisions.target.reached.estimate == pytest.approx(500 / 600)
    assert result.decisions.target.verdict == "missed"


def test_the_verdict_is_that_of_the_interval():
    easy, hard = (judged(target("TPR", 0.9), decisions=np.full(600, k), probabilities=None) for k in (1, 0))
    assert (easy.decisions.target.verdict, hard.decisions.target.verdict) == ("reached", "missed")
    close = judged(target("TPR", 0.9), cut_off_data=OTHERS)
    assert close.decisions.target.verdict == "open"
    low = judged(target("PPR", 0.5), decisions=np.full(600, 0), probabilities=None)
    assert low.decisions.target.verdict == "reached"


def test_a_target_that_no_cut_off_reaches_is_missed_by_the_closest_one():
    others = (1 - OTHERS[0], OTHERS[1])
    result = judged(target("PPV", 0.95, **PREVALENCES), cut_off_data=others)
    used = result.decisions.cut_off
    assert not used.is_reachable
    every = [rates(others[0], others[1][:, 1] >= t, (0.9, 0.1))["PPV"] for t in np.unique(others[1][:, 1])]
    assert used.value == pytest.approx(max(every))
    assert max(every) < 0.95
    assert any("No cut-off reaches the target" in warning for warning in result.warnings)


def test_a_share_of_positives_that_is_too_small_is_missed_by_the_highest_cut_off():
    """As by a head, for which deciding never for the class is no cut-off."""
    used = judged(target("PPR", 0.001), cut_off_data=OTHERS).decisions.cut_off
    first, second = np.sort(OTHERS[1][:, 1])[::-1][:2]
    assert used.threshold == pytest.approx((first + second) / 2)
    assert (used.is_reachable, used.value) == (False, pytest.approx(1 / 500))


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (target("TPR", 1.0), "a target of 1 leaves no cut-off"),
        (best("LR+"), "no head can decide for the best LR+"),
        (
            {"number_of_classes": 2, "decision_rule": "cost_benefit", "unequal_severity": True},
            "costs of errors",
        ),
        (target("TPR", 0.9, **{**PREVALENCES, "target_prevalences": (1.0, 0.0)}), "prevalence of class 1"),
    ],
)
def test_where_a_rule_is_refused_the_likeliest_class_is_judged(answers, reason):
    result = judged(answers, cut_off_data=OTHERS)
    assert result.decisions.source == "likeliest"
    assert reason in result.decisions.reason
    assert result.decisions.changed == 0
    assert result.decisions.cut_off is None
    assert any(reason in warning for warning in result.warnings)


def test_other_cases_need_both_classes():
    result = judged(target("TPR", 0.9), cut_off_data=(np.zeros(50, int), OTHERS[1][:50]))
    assert result.decisions.source == "likeliest"
    assert "class 1 does not occur among the 50 cases" in result.decisions.reason
    assert any("likeliest class counts" in warning for warning in result.warnings)
    few = judged(target("TPR", 0.9), data=(JUDGED[0][:1], JUDGED[1][:1]))
    assert (few.decisions.source, few.decisions.samples) == ("likeliest", 1)


def test_judged_cases_as_other_cases_are_found_out():
    result = judged(target("TPR", 0.9), cut_off_data=JUDGED)
    assert any("chosen on the samples that are judged" in warning for warning in result.warnings)
    assert not any("chosen on the" in one for one in judged(target("TPR", 0.9), cut_off_data=OTHERS).warnings)


class TestManyClasses:
    DATA, OTHER = simulated(300, 3), simulated(300, 3, seed=4)

    def test_a_target_is_that_of_one_class_against_the_rest(self):
        answers = {**target("TPR", 0.9), "number_of_classes": 3, "target_class": 2}
        result = judged(answers, "BA", data=self.DATA, cut_off_data=self.OTHER)
        used = result.decisions.cut_off
        labels, p = self.OTHER
        assert (p[labels == 2, 2] >= used.threshold).mean() >= 0.9
        higher = np.unique(p[:, 2][p[:, 2] > used.threshold]).min()
        assert (p[labels == 2, 2] >= higher).mean() < 0.9 or (
            (p[labels != 2, 2] >= higher).mean() == (p[labels != 2, 2] >= used.threshold).mean()
        )
        own = self.DATA[1]
        decided = np.where(own[:, 2] >= used.threshold, 2, own[:, :2].argmax(axis=1))
        wanted = confusion_matrix(self.DATA[0], decided, classes=3)
        assert result.confusion.counts == tuple(map(tuple, wanted.tolist()))

    def test_other_cases_need_every_class_of_use(self):
        labels, probabilities = self.OTHER
        rows = labels > 0
        in_use = {**PREVALENCES, "target_prevalences": (0.5, 0.3, 0.2)}
        answers = {**target("TPR", 0.9, **in_use), "number_of_classes": 3, "target_class": 2}
        result = judged(answers, data=self.DATA, cut_off_data=(labels[rows], probabilities[rows]))
        assert result.decisions.source == "likeliest"
        assert "class 0, which occurs in use, does not occur among the 200 cases" in result.decisions.reason

    def test_the_best_balanced_accuracy_weighs_classes_by_their_share(self):
        labels, p = self.DATA
        shares = (0.2, 0.5, 0.3)
        answers = {**best("BA"), "number_of_classes": 3}
        result = judged(answers, "BA", data=self.DATA, score_prevalence=shares)
        wanted = confusion_matrix(labels, (p / np.array(shares)).argmax(axis=1), classes=3)
        judged_rows = sum(map(sum, result.confusion.counts))
        assert judged_rows == 150  # the shares could also come from the other half
        whole = judged(
            answers, "BA", data=self.DATA, score_prevalence=shares, cut_off_data=self.OTHER
        ).confusion.counts
        assert whole == tuple(map(tuple, wanted.tolist()))


class TestComparison:
    def models(self, **given):
        labels, probabilities = JUDGED
        sharper = np.stack([1 - expit(3 * probabilities[:, 1]), expit(3 * probabilities[:, 1])], axis=1)
        return labels, {
            "one": ModelOutputs(probabilities=probabilities),
            "two": ModelOutputs(probabilities=sharper, **given),
        }

    def test_each_model_has_its_own_cut_off_of_the_same_split(self):
        labels, models = self.models()
        found = compare(recommending("BA", **IN_USE, **target("TPR", 0.9)), labels, models, replicates=20)
        one, two = (result.decisions for result in found.results.values())
        assert one.cut_off.threshold != two.cut_off.threshold
        # The order of the scores is the same.
        assert one.target.reached.estimate == two.target.reached.estimate
        assert one.samples == two.samples == 300

    def test_given_decisions_are_judged_on_the_same_cases(self):
        labels, models = self.models(decisions=JUDGED[1].argmax(axis=1))
        found = compare(recommending("BA", **IN_USE, **target("TPR", 0.9)), labels, models, replicates=20)
        assert [one.decisions.samples for one in found.results.values()] == [300, 300]
        assert [one.decisions.source for one in found.results.values()] == ["rule", "given"]


def test_the_interval_of_the_reached_value_holds_that_of_the_population():
    targets = {"TPR": 0.9, "PPV": 0.7, "PPR": 0.3}
    stated = {
        name: stated_rule(recommendation(target(name, value)).fingerprint) for name, value in targets.items()
    }
    population = drawn(400_000, seed=99)
    draws, hits = 150, Counter()
    for seed in range(draws):
        samples, others = (
            Samples.of(labels, ModelOutputs(probabilities=probabilities), classes=2)
            for labels, probabilities in (drawn(400, seed=1000 + seed), drawn(400, seed=5000 + seed))
        )
        resamples = Resamples.draw(samples.unit, replicates=200, seed=seed)
        for acronym, rule in stated.items():
            decided = decide(rule, samples, None, Split.other(samples, others), score_prevalence=None)
            found = judged_decisions(decided, (), resamples, None, ("no", "yes"), level=0.95)
            truth = rates(population[0], population[1][:, 1] >= found.cut_off.threshold)[acronym]
            hits[acronym] += found.target.reached.low <= truth <= found.target.reached.high
    assert min(hits[name] for name in targets) / draws >= 0.9  # 0.95 less three standard errors: 0.897


def test_values_of_all_counting_metrics_are_those_of_the_decisions():
    result = judged(target("TNR", 0.8), "AC", "CK", "MCC", cut_off_data=OTHERS)
    decided = (JUDGED[1][:, 1] >= result.decisions.cut_off.threshold).astype(int)
    confusion = confusion_matrix(JUDGED[0], decided, classes=2)
    for acronym in ("AC", "CK", "MCC"):
        assert result.estimate(acronym) == pytest.approx(METRICS[acronym].function(confusion))
