"""Metrics where the class mix of the data is not that of use, against populations that have it."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

from lifelong_core.design import ModelOutputs, validate
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.design.validation.compare import compare
from lifelong_core.metrics import METRICS, compute_metrics
from lifelong_core.values.errors import InvalidInputError
from tests.unit.design.validations import OF_USE, metric, recommending, simulated

LABELS, PROBABILITIES = simulated(90, 3)
TIMES = np.array([5, 3, 2])
TARGET = (0.5, 0.3, 0.2)
"""class shares of use, if each of the 30 samples of class k occurs TIMES[k] times"""
IN_USE = {"target_prevalences_known": True, "target_prevalences": TARGET}
COUNTING = [name for name, card in METRICS.items() if card.family == "counting" and card.is_in_pool]
NB = metric("NB", parameters={"threshold": 0.1})

SCREENING = {
    "number_of_classes": 2,
    "target_prevalences_known": True,
    "target_prevalences": (0.98, 0.02),
    "target_class": 1,
}


def quick(*metrics, labels=LABELS, answers=IN_USE, **given):
    outputs = {} if "decisions" in given else {"probabilities": PROBABILITIES}
    return validate(recommending(*metrics, **answers), labels, **{"replicates": 20, **outputs, **given})


def population(*, decisions=None):
    """The samples as often as in use, with probabilities that hold there."""
    repeated = np.repeat(np.arange(90), TIMES[LABELS])
    weighted = PROBABILITIES * TARGET
    in_use = (weighted / weighted.sum(axis=1, keepdims=True))[repeated]
    if decisions is None:
        return {"labels": LABELS[repeated], "probabilities": in_use}
    return {"labels": LABELS[repeated], "decisions": decisions[repeated], "probabilities": in_use}


@pytest.mark.parametrize("is_invalid", [False, True])
def test_metrics_that_count_are_those_of_a_population_with_the_stated_shares(is_invalid):
    """Metrics that do not depend on the shares keep their values of the data."""
    decisions = PROBABILITIES.argmax(axis=1)
    if is_invalid:
        decisions = np.where(np.arange(90) % 7 == 0, -1, decisions)
    given = {acronym: {"threshold": 0.1} if acronym == "NB" else {} for acronym in COUNTING}
    metrics = [metric(acronym, parameters=parameters) for acronym, parameters in given.items()]
    result = quick(*metrics, decisions=decisions, probabilities=PROBABILITIES)
    data = {"labels": LABELS, "decisions": decisions, "probabilities": PROBABILITIES}
    for label, (acronym, parameters) in zip(result.labels, given.items(), strict=True):
        depends = METRICS[acronym].prevalence_dependent
        cases = population(decisions=decisions) if depends else data
        wanted = compute_metrics([acronym], **cases, **parameters)[acronym]
        classes = (None,) if np.ndim(wanted) == 0 else range(3)
        values = [result.value(label, k) for k in classes]
        estimates = [value.number("estimate") for value in values]
        np.testing.assert_allclose(estimates, np.ravel(wanted), rtol=1e-9, err_msg=acronym)
        in_use = TARGET if depends else None
        assert all(value.prevalence == in_use and value.has_interval for value in values), acronym


def test_a_class_that_does_not_occur_in_use_leaves_its_rates_and_their_mean():
    answers = {"target_prevalences_known": True, "target_prevalences": (0.5, 0.5, 0.0)}
    threshold = AcceptanceThreshold(metric="BA", value=0.1, by="estimate")
    result = quick("BA", "TPR", answers=answers, thresholds=[threshold])
    wanted = compute_metrics(["BA", "TPR"], labels=LABELS, probabilities=PROBABILITIES)
    assert result.estimate("BA") == pytest.approx(wanted["BA"])
    assert result.estimate("TPR", 2) == pytest.approx(wanted["TPR"][2])
    assert result.accepted is True


class TestNetBenefit:
    """Two normal classes with mean -1 and 1, so that the logit is 2x plus the log odds of the prevalence."""

    PREVALENCE, LIMIT, SAMPLES = 0.02, 0.1, 20_000
    METRIC = metric("NB", parameters={"threshold": LIMIT}, target_class=1)

    def truth(self, cut_off):
        """In use, if decided for the class from this feature on."""
        found, alarms = norm.sf(cut_off, loc=1), norm.sf(cut_off, loc=-1)
        rate = self.LIMIT / (1 - self.LIMIT)
        return self.PREVALENCE * found - (1 - self.PREVALENCE) * alarms * rate

    def cut_off(self, prevalence):
        return (logit(self.LIMIT) - logit(prevalence)) / 2

    def validated(self, share=0.5, *, scores_for=None, answers=SCREENING, **given):
        """Of probabilities that are calibrated for the share, or for `scores_for`, in data with this share."""
        rng = np.random.default_rng(0)
        labels = (np.arange(self.SAMPLES) < share * self.SAMPLES).astype(int)
        features = rng.normal(2 * labels - 1)
        risk = expit(2 * features + logit(scores_for or share))
        return quick(
            self.METRIC,
            labels=labels,
            answers=answers,
            probabilities=np.stack([1 - risk, risk], axis=1),
            **given,
        )

    def test_is_that_of_use_with_the_cut_off_for_it(self):
        right, wrong = self.truth(self.cut_off(self.PREVALENCE)), self.truth(self.cut_off(0.5))
        assert right > 0.004 > 0 > wrong
        for share in (0.5, 0.2):
            value = self.validated(share, replicates=200).value("NB@0.1", 1)
            assert value.low < right < value.high
            assert value.estimate == pytest.approx(right, abs=6e-4)
            assert value.naive == 0
            assert "corrected to them from the class shares of these data" in value.notes[0]

    def test_uses_the_class_shares_for_which_the_probabilities_hold(self):
        own = self.validated(0.5).value("NB@0.1", 1)
        stated = self.validated(0.5, scores_for=0.1, score_prevalence=(0.9, 0.1)).value("NB@0.1", 1)
        assert stated.estimate == pytest.approx(own.estimate, abs=1e-12)
        assert self.validated(0.5, scores_for=0.1).value("NB@0.1", 1).estimate < stated.estimate
        assert "of their calibration" in stated.notes[0]

    def test_is_not_passed_by_the_class_mix_of_the_data(self):
        asked = AcceptanceThreshold(metric="NB@0.1", value=0.1)
        assert self.validated(thresholds=[asked], answers=OF_USE | {"number_of_classes": 2}).accepted
        (outcome,) = self.validated(thresholds=[asked]).acceptance
        assert outcome.passed is False
        assert outcome.value < 0.01

    def test_without_stated_prevalences_is_refused(self):
        asked = AcceptanceThreshold(metric="NB@0.1", value=-1)
        unknown = {"number_of_classes": 2, "target_prevalences_known": False, "target_class": 1}
        result = self.validated(thresholds=[asked], answers=unknown)
        value = result.value("NB@0.1", 1)
        assert (value.estimate, value.low, value.naive) == (None, None, None)
        assert "no target prevalences are stated" in value.reason
        assert result.acceptance[0].passed is None
        assert result.decision_curves == ()
        assert any("NB@0.1 needs the target prevalences" in warning for warning in result.warnings)

    def test_stands_on_its_decision_curve(self):
        result = self.validated()
        (curve,) = result.decision_curves
        assert curve.prevalence == self.PREVALENCE
        assert curve.net_benefit[10] == pytest.approx(result.estimate("NB@0.1", 1), abs=1e-12)
        assert curve.treat_all[10] == pytest.approx(self.PREVALENCE - (1 - self.PREVALENCE) / 9)

    def test_of_class_shares_without_a_class_of_use_is_no_number(self):
        with pytest.raises(InvalidInputError, match="class 1 is 0") as error:
            self.validated(score_prevalence=(1, 0))
        assert error.value.field == "score_prevalence"


def test_several_classes_get_the_net_benefit_of_the_population():
    result = quick(NB)
    wanted = compute_metrics(["NB"], **population(), threshold=0.1)["NB"]
    curves = quick(NB).decision_curves
    for k in range(3):
        assert result.estimate("NB@0.1", k) == pytest.approx(wanted[k])
        assert curves[k].net_benefit[10] == pytest.approx(wanted[k])


def test_a_class_of_use_without_a_sample_leaves_values_undefined_but_not_the_rates_of_others():
    labels = np.where(LABELS == 2, 1, LABELS)
    result = quick("AC", "TPR", NB, labels=labels)
    for value in (result.value("AC"), result.value("NB@0.1", 0)):
        assert (value.estimate, value.reason) == (
            None,
            "no reference sample of class 2, which occurs in use",
        )
    assert result.estimate("TPR", 0) == pytest.approx((PROBABILITIES.argmax(axis=1)[LABELS == 0] == 0).mean())
    assert result.decision_curves == ()


@pytest.mark.parametrize("answers", [IN_USE, {"target_prevalences_known": False}, OF_USE])
def test_a_threshold_is_judged_only_at_the_class_mix_of_use(answers):
    names = [name for name, card in METRICS.items() if card.is_in_pool]
    asked = [AcceptanceThreshold(metric=name, value=0.0, by="estimate") for name in names]
    result = quick(*names, answers=answers, thresholds=asked)
    for outcome in result.acceptance:
        card = METRICS[outcome.threshold.metric]
        is_of_use = answers is OF_USE or (answers is IN_USE and card.family == "counting")
        is_judged = is_of_use or not card.prevalence_dependent
        assert (outcome.passed is not None) is is_judged
        if not is_judged:
            assert "that of the data is not that of use (FP4.2)" in outcome.why


def test_a_cut_off_for_a_target_is_one_for_the_class_mix_of_use():
    of_ppv = metric("TPR", parameters={"target": ("PPV", 0.6)})
    asked = [AcceptanceThreshold(metric="TPR@(PPV=0.6)", value=0.1)]
    assert quick(of_ppv, thresholds=asked).acceptance[0].passed is True
    unknown = quick(of_ppv, thresholds=asked, answers={"prevalences_representative": False})
    assert unknown.acceptance[0].passed is None


def test_expected_costs_that_are_told_the_prevalences_stay_what_they_are():
    told = quick(metric("EC", parameters={"prevalence": TARGET})).value("EC")
    converted = quick("EC").value("EC")
    assert told.estimate == pytest.approx(converted.estimate)
    assert told.prevalence == converted.prevalence == pytest.approx(TARGET)
    assert told.refusal is converted.refusal is None


def test_models_are_compared_at_the_class_mix_of_use():
    models = {
        name: ModelOutputs(probabilities=PROBABILITIES, decisions=PROBABILITIES.argmax(axis=1))
        for name in "ab"
    }
    found = compare(recommending("AC", NB, **IN_USE), LABELS, models, replicates=10)
    assert all(result.value("NB@0.1", 0).prevalence == TARGET for result in found.results.values())
    refused = compare(recommending("BA", NB, target_prevalences_known=False), LABELS, models, replicates=10)
    (ranking,) = (one for one in refused.rankings if one.metric == "NB")
    assert ranking.models == ()
    assert "no target prevalences are stated" in ranking.reason


def test_the_warnings_tell_which_value_holds_where():
    warnings = quick("AC", "BA", "BS").warnings
    assert "Computed at the stated class shares of use, not at those of these data: AC." in " ".join(warnings)
    assert "on which BS depend: they hold for these data" in " ".join(warnings)


def test_a_metric_at_a_share_of_positives_depends_on_the_class_mix():
    """Whose cut-off is that of the data, where another class mix is of use."""
    sensitivity = metric("TPR", parameters={"target": ("PPR", 0.2)}, target_class=1)
    labels, probabilities = simulated(90, 2)
    found = validate(
        recommending(sensitivity, number_of_classes=2), labels, probabilities=probabilities, replicates=10
    )
    value = found.value("TPR@(PPR=0.2)", 1)
    assert value.cut_off.target_metric == "PPR"
    assert value.cut_off.reached is not None
    assert "depends on the class mix" in value.refusal
