"""The gain in a rule's own metric: values, slopes and quartiles against independent computations."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lifelong_core import metrics
from lifelong_core.decision_rules.operating_points import metric_of
from lifelong_core.deploy import (
    AdaptationPolicy,
    AdaptationReport,
    Argmax,
    BayesRule,
    CutOffs,
    LabeledLogits,
    OptimisedMetric,
    TargetValue,
    adapt,
    fit_head,
    quantifier,
)
from lifelong_core.deploy.adaptation.gain import HeadComparison
from lifelong_core.deploy.adaptation.rule_gain import RuleGain, _Effects, rule_gain

COSTS = np.array([[0.0, 1.0], [1.0, 0.0]])
SHARES = np.array([0.85, 0.15])
RULES = [
    TargetValue("TPR", 0.9),
    TargetValue("TNR", 0.9),
    TargetValue("PPV", 0.8),
    TargetValue("NPV", 0.97),
    TargetValue("PPR", 0.2),
    OptimisedMetric("F_beta"),
    OptimisedMetric("MCC"),
    OptimisedMetric("BA"),
]


def of_decisions(rule: Any, labels: np.ndarray, decisions: np.ndarray, prevalence: np.ndarray) -> float:
    """The metric by lifelong_core.metrics, of a confusion matrix with this prevalence."""
    confusion = metrics.confusion_matrix(labels, decisions, classes=2).astype(float)
    confusion *= (prevalence / confusion.sum(axis=1))[:, np.newaxis]
    one = {
        "TPR": lambda: metrics.sensitivity(confusion)[1],
        "TNR": lambda: metrics.specificity(confusion)[1],
        "PPV": lambda: metrics.precision(confusion)[1],
        "NPV": lambda: metrics.negative_predictive_value(confusion)[1],
        "PPR": lambda: confusion[:, 1].sum(),
        "F_beta": lambda: metrics.f_beta(confusion)[1],
        "MCC": lambda: metrics.matthews_correlation(confusion),
        "BA": lambda: metrics.balanced_accuracy(confusion),
    }
    return float(one[rule.metric]())


def compared(population: Any, rule: Any, seed: int = 0) -> tuple[HeadComparison, Any]:
    two, rng = population(2, 1.6), np.random.default_rng(seed)
    calibration = two.draw([300, 150], rng)
    analysis = quantifier("MLLS").fit(calibration).analyse(two.window(SHARES, 1500, rng))
    head = fit_head(calibration, COSTS, decision_rule=rule)
    return HeadComparison.of(calibration, head, analysis.estimate.prevalence), analysis


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_values_are_those_of_held_out_decisions(rule: Any, population: Any):
    heads, analysis = compared(population, rule)
    found = rule_gain(heads, analysis)
    assert found is not None
    labels, shares = heads.calibration.labels, analysis.estimate.prevalence
    current, candidate = (of_decisions(rule, labels, one.decisions, shares) for one in heads.outputs)
    assert found.current == pytest.approx(current)
    assert found.candidate == pytest.approx(candidate)
    if isinstance(rule, OptimisedMetric):
        assert found.value == pytest.approx(candidate - current)
        assert found.objective is None
        assert found.objective_value == found.objective_lower_quartile == found.objective_upper_quartile == 0
    else:
        aim = rule.value
        towards = (lambda v: -max(v, aim)) if rule.metric == "PPR" else (lambda v: min(v, aim))
        assert found.value == pytest.approx(towards(candidate) - towards(current))
        other = TargetValue(found.objective, 0.5)  # pyright: ignore[reportArgumentType]
        before, after = (of_decisions(other, labels, one.decisions, shares) for one in heads.outputs)
        assert found.objective_value == pytest.approx(after - before)
    assert found.lower_quartile <= found.value <= found.upper_quartile
    assert RuleGain.from_document(found.to_document()) == found


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.metric != "BA"], ids=str)
def test_slopes_are_the_derivatives_of_the_weighted_metric(rule: Any, population: Any):
    """Moving the weight of one sample of a population of calibration samples moves the metric by its slope."""
    heads, analysis = compared(population, rule)
    data, shares = heads.calibration, analysis.estimate.prevalence
    decisions = heads.candidate.decisions
    effects = _Effects.of(metric_of(rule), 1, data, decisions, shares)
    weights = (shares / data.counts)[data.labels]

    def metric(moved: np.ndarray) -> float:
        # Shares, not yet normalised: the metric is a function of tp, fp and the share of the class.
        own, flagged = data.labels == 1, decisions == 1
        tp, fp = moved[own & flagged].sum(), moved[~own & flagged].sum()
        return float(metric_of(rule)(np.array(tp), np.array(fp), np.array(moved[own].sum())))

    assert effects.value == pytest.approx(metric(weights))
    chosen = np.random.default_rng(0).choice(data.samples, 40, replace=False)
    for i in chosen:
        step = np.zeros(data.samples)
        step[i] = 1e-6
        numeric = (metric(weights + step) - metric(weights - step)) / 2e-6
        assert effects.slopes[i] == pytest.approx(numeric, abs=1e-5)


def test_the_quartiles_of_a_rise_hold_in_half_of_the_draws(population: Any):
    """The candidate's precision less the frozen one's, on fresh samples of the population."""
    two, rng = population(2, 1.6), np.random.default_rng(1)
    fresh, rule, above, inside = two.draw([30_000, 30_000], rng), TargetValue("PPV", 0.8), [], []
    for seed in range(40):
        heads, analysis = compared(population, rule, seed)
        found = rule_gain(heads, analysis)
        assert found is not None
        before, after = (
            fit_head(heads.calibration, COSTS, target_prevalence=shares, decision_rule=rule)
            for shares in (None, heads.target_prevalence)
        )
        old, new = (
            min(of_decisions(rule, fresh.labels, head.apply(fresh.logits).decisions, SHARES), 0.8)
            for head in (before, after)
        )
        above.append(new - old > found.lower_quartile)
        inside.append(found.lower_quartile <= new - old <= found.upper_quartile)
    assert 0.5 < np.mean(above) < 0.95
    assert 0.25 < np.mean(inside) < 0.85


@pytest.mark.parametrize("rule", [BayesRule(), Argmax(), CutOffs(0.2), OptimisedMetric("AC")], ids=str)
def test_a_rule_that_minimises_a_cost_has_no_gain_of_its_own(rule: Any, population: Any):
    heads, analysis = compared(population, rule)
    assert rule_gain(heads, analysis) is None


def gain(**changes: Any) -> RuleGain:
    values = {
        "metric": "PPV",
        "current": 0.6,
        "candidate": 0.8,
        "value": 0.2,
        "lower_quartile": 0.1,
        "upper_quartile": 0.3,
        "objective": "TPR",
        "objective_value": -0.1,
        "objective_lower_quartile": -0.2,
        "objective_upper_quartile": -0.05,
    }
    return RuleGain(**{**values, **changes})


def test_a_loss_of_the_objective_is_no_harm_where_the_target_comes_closer():
    assert gain().is_harmless(0.001)
    assert not gain(lower_quartile=-0.01).is_harmless(0.001)
    assert gain(lower_quartile=-0.01, objective_upper_quartile=0.0).is_harmless(0.001)
    assert not gain(lower_quartile=-0.3, upper_quartile=-0.1).is_harmless(0.001)
    assert gain(lower_quartile=-0.3, upper_quartile=-0.1, objective_upper_quartile=0).is_harmless(0.2)


def test_an_undefined_precision_breaks_no_target(population: Any):
    """A head that calls nothing positive has no precision."""
    heads, analysis = compared(population, TargetValue("PPV", 0.8))
    nothing = replace(heads.current, decisions=np.zeros_like(heads.current.decisions))
    found = rule_gain(replace(heads, current=nothing), analysis)
    assert found is not None
    assert found.current is None
    assert found.value == pytest.approx(min(found.candidate or 0, 0.8) - 0.8)
    assert found.objective_value > 0.2


@pytest.mark.parametrize("rule", [TargetValue("PPV", 0.8), OptimisedMetric("BA"), BayesRule()], ids=str)
def test_a_report_survives_json_with_its_rule(rule: Any, population: Any):
    report = report_for(population, rule)
    again = AdaptationReport.from_json(report.to_json())
    assert again == report
    assert again.to_json() == report.to_json()
    assert report.to_document()["schema_version"] == 7
    assert (report.rule_gain is None) == (rule == BayesRule())
    assert (report.candidate_criterion is None) == (not isinstance(rule, TargetValue))


def test_a_damaged_criterion_is_refused(population: Any):
    document = report_for(population, TargetValue("PPV", 0.8)).to_document()
    del document["criterion"]["low"]
    with pytest.raises(Exception, match="low"):
        AdaptationReport.from_document(document)


def report_for(population: Any, rule: Any) -> AdaptationReport:
    two, rng = population(2, 1.6), np.random.default_rng(0)
    calibration: LabeledLogits = two.draw([300, 150], rng)
    head = fit_head(calibration, COSTS, decision_rule=rule)
    return adapt(calibration, two.window([0.9, 0.1], 1500, rng), head, AdaptationPolicy(), method="MLLS")
