"""What a rule's metric will be: the same for the same seed, wider with more doubt, and near the truth."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from lifelong_core.deploy import (
    Argmax,
    BayesRule,
    CutOffs,
    LabeledLogits,
    OptimisedMetric,
    PostProcessingHead,
    TargetValue,
    fit_head,
)
from lifelong_core.deploy.criterion.expected_criterion import ExpectedCriterion, expected_criterion
from lifelong_core.values.errors import InvalidInputError

COSTS = [[0, 1], [1, 0]]
RULES = [
    TargetValue("TPR", 0.9),
    TargetValue("TNR", 0.9),
    TargetValue("PPV", 0.8),
    TargetValue("NPV", 0.97),
    TargetValue("PPR", 0.2),
    OptimisedMetric("F_beta"),
    OptimisedMetric("F_beta", beta=2),
    OptimisedMetric("MCC"),
]
KINDS = [rule for rule in RULES if rule.metric in ("TPR", "PPV", "PPR", "MCC")]
"""one rule of each kind: metric of one class, metric that the prevalence moves, at most instead of at least, optimum"""
SHARES = np.array([0.85, 0.15])
SPREAD = np.array([[1.0, -1.0], [-1.0, 1.0]])


def sample(population: Any, counts: list[int], seed: int = 0) -> LabeledLogits:
    return population(len(counts), 1.6).draw(counts, np.random.default_rng(seed))


def found_for(rule: Any, data: LabeledLogits, shares: Any = SHARES, **options: Any) -> ExpectedCriterion:
    head = fit_head(data, COSTS, target_prevalence=shares, decision_rule=rule)
    found = expected_criterion(head, data, shares, **options)
    assert found is not None
    return found


@pytest.mark.parametrize("rule", [BayesRule(), Argmax(), CutOffs(0.2), OptimisedMetric("BA")])
def test_a_rule_without_searched_cut_off_has_none(rule: Any, population: Any):
    data = sample(population, [100, 100])
    assert expected_criterion(fit_head(data, COSTS, decision_rule=rule), data, SHARES) is None


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_is_reproducible_and_in_order(rule: Any, population: Any):
    data = sample(population, [300, 150])
    one, same = found_for(rule, data, rng=3), found_for(rule, data, rng=3)
    assert one == same
    assert one != found_for(rule, data, rng=4)
    assert -1 <= one.low < one.value < one.high <= 1
    assert one.metric == rule.metric
    assert one.target == getattr(rule, "value", None)
    assert one.is_reachable
    assert not one.is_missed
    assert ExpectedCriterion.from_document(one.to_document()) == one


@pytest.mark.parametrize("rule", KINDS[1:], ids=str)
def test_doubt_about_the_prevalence_widens_the_interval(rule: Any, population: Any):
    data = sample(population, [1500, 800])
    widths = [
        found.high - found.low
        for found in (found_for(rule, data, covariance=variance * SPREAD) for variance in (0, 2e-4, 2e-3))
    ]
    assert widths[0] < widths[1] < widths[2]
    none = found_for(rule, data)
    assert none.high - none.low == pytest.approx(widths[0], rel=0.15)


@pytest.mark.parametrize("metric", ["TPR", "TNR"])
def test_doubt_about_the_prevalence_leaves_rates_of_a_class_alone(metric: Any, population: Any):
    data = sample(population, [300, 200])
    known = found_for(TargetValue(metric, 0.9), data)
    doubtful = found_for(TargetValue(metric, 0.9), data, covariance=2e-3 * SPREAD)
    assert doubtful.low == pytest.approx(known.low, abs=0.01)
    assert doubtful.high == pytest.approx(known.high, abs=0.01)


@pytest.mark.parametrize("rule", KINDS, ids=str)
def test_more_cases_and_less_confidence_narrow_the_interval(rule: Any, population: Any):
    small, large = sample(population, [200, 100]), sample(population, [3200, 1600])
    some, more = found_for(rule, small), found_for(rule, large)
    assert more.high - more.low < 0.5 * (some.high - some.low)
    half = found_for(rule, small, confidence=0.5)
    assert some.low < half.low < half.high < some.high


def test_a_foreign_head_has_the_jeffreys_interval_of_its_rate(population: Any):
    """No cut-off was chosen on these samples, so that the sensitivity is a share of independent cases."""
    data, elsewhere = sample(population, [400, 250]), sample(population, [400, 250], seed=1)
    head = fit_head(elsewhere, COSTS, decision_rule=TargetValue("TPR", 0.9))
    found = expected_criterion(head, data, SHARES, confidence=0.9)
    assert found is not None
    hits = int((head.apply(data.logits).decisions[data.labels == 1] == 1).sum())
    low, high = stats.beta.ppf([0.05, 0.95], hits + 0.5, 250 - hits + 0.5)
    assert found.low == pytest.approx(low, abs=0.012)
    assert found.high == pytest.approx(high, abs=0.012)
    assert found.low <= low + 0.004
    assert found.high >= high - 0.004
    assert found.value == pytest.approx(hits / 250, abs=0.01)
    assert found.cases == 250


def test_a_head_fitted_here_looks_better_than_it_is(population: Any):
    """The cut-off of its own samples is optimistic, which the value of the optimum leaves out."""
    data = sample(population, [60, 30])
    own = fit_head(data, COSTS, target_prevalence=SHARES, decision_rule=OptimisedMetric("F_beta"))
    copied = replace(own, provenance={})
    here, there = (expected_criterion(head, data, SHARES) for head in (own, copied))
    assert here is not None
    assert there is not None
    assert here.value < there.value


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if rule != OptimisedMetric("F_beta", beta=2)], ids=str
)
def test_the_interval_holds_the_value_in_the_population(rule: Any, population: Any):
    two, rng = population(2, 1.6), np.random.default_rng(5)
    fresh = two.draw([40_000, 40_000], rng)
    held = 0
    for _ in range(25):
        data = two.draw([300, 150], rng)
        head = fit_head(data, COSTS, target_prevalence=SHARES, decision_rule=rule)
        found = expected_criterion(head, data, SHARES)
        assert found is not None
        held += found.low <= reached(rule, head, fresh) <= found.high
    assert held >= 21  # at a coverage of .95 fewer come once in 800 times


def reached(rule: Any, head: PostProcessingHead, data: LabeledLogits) -> float:
    flagged = head.apply(data.logits).decisions == 1
    tp, fp = (SHARES[k] * float(flagged[data.labels == k].mean()) for k in (1, 0))
    fn, tn = SHARES[1] - tp, SHARES[0] - fp
    beta = getattr(rule, "beta", 1.0)
    return {
        "TPR": tp / SHARES[1],
        "TNR": tn / SHARES[0],
        "PPV": tp / (tp + fp),
        "NPV": tn / (tn + fn),
        "PPR": tp + fp,
        "F_beta": (1 + beta**2) * tp / ((1 + beta**2) * tp + beta**2 * fn + fp),
        "MCC": (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tn + fn) * SHARES[0] * SHARES[1]),
    }[rule.metric]


def test_samples_of_one_group_count_as_one(population: Any):
    """Fifty copies of each case are no more evidence than the case."""
    few = sample(population, [120, 80])
    rows = np.repeat(np.arange(200), 50)
    copies = LabeledLogits(few.logits[rows], few.labels[rows], groups=rows)
    head = fit_head(copies, COSTS, target_prevalence=SHARES, decision_rule=TargetValue("TPR", 0.9))
    grouped = expected_criterion(head, copies, SHARES)
    plain = expected_criterion(head, LabeledLogits(copies.logits, copies.labels), SHARES)
    assert grouped is not None
    assert plain is not None
    assert grouped.cases == 80
    assert grouped.high - grouped.low > 4 * (plain.high - plain.low)


def test_an_unreachable_target_is_said_so_and_missed():
    """Of every 10 cases with one score 4 are of the class, so that no cut-off has a precision above .4."""
    labels = np.tile([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], 40)
    scores = np.repeat(np.linspace(-1, 1, 40), 10)
    data = LabeledLogits(np.column_stack([np.zeros(400), scores]), labels)
    found = found_for(TargetValue("PPV", 0.9), data, [0.6, 0.4])
    assert not found.is_reachable
    assert found.is_missed
    assert found.low < 0.39
    assert found.high < 0.6
    easy = found_for(TargetValue("PPV", 0.3), data, [0.6, 0.4])
    assert easy.is_reachable
    assert not easy.is_missed


def test_too_many_positive_decisions_miss_a_share(population: Any):
    data = sample(population, [2000, 1000])
    head = fit_head(data, COSTS, target_prevalence=[0.9, 0.1], decision_rule=TargetValue("PPR", 0.1))
    found = expected_criterion(head, data, [0.3, 0.7])
    assert found is not None
    assert found.is_missed
    assert found.low > 0.1
    fewer = expected_criterion(head, data, [0.98, 0.02])
    assert fewer is not None
    assert not fewer.is_missed


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_saturated_probabilities_give_a_legal_interval(rule: Any):
    """All logits are alike: no cut-off tells the classes apart."""
    data = LabeledLogits(np.zeros((60, 2)), np.arange(60) % 3 % 2)
    found = found_for(rule, data)
    assert np.isfinite([found.low, found.value, found.high]).all()
    assert -1 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize("metric", ["TPR", "PPV", "NPV"])
def test_with_more_classes_the_rest_keeps_its_mixture(metric: Any, population: Any):
    three, rng = population(3, 2.0), np.random.default_rng(1)
    data = three.draw([400, 300, 500], rng)
    shares = np.array([0.7, 0.1, 0.2])
    rule = TargetValue(metric, 0.8 if metric != "NPV" else 0.97, positive_class=2)
    head = fit_head(data, 1 - np.eye(3), target_prevalence=shares, decision_rule=rule)
    found = expected_criterion(head, data, shares, covariance=1e-4 * (np.eye(3) - 1 / 3))
    assert found is not None
    called = np.array([(head.apply(data.logits).decisions[data.labels == k] == 2).mean() for k in range(3)])
    tp, fp = shares[2] * called[2], float((shares * called)[:2].sum())
    seen = {"TPR": called[2], "PPV": tp / (tp + fp), "NPV": (0.8 - fp) / (1 - tp - fp)}[metric]
    assert found.value == pytest.approx(seen, abs=0.03)
    assert found.cases == (700 if metric == "PPV" else 500)


def test_says_how_many_cases_are_needed(population: Any):
    """Sensitivity .9 to .05 either way: 1.96^2 * .9 * .1 / .05^2 = 139 cases of the class (Wald)."""
    few = found_for(TargetValue("TPR", 0.9), sample(population, [100, 60]))
    assert few.cases == 60
    assert few.needed_cases == pytest.approx(1.96**2 * 0.09 / 0.05**2, rel=0.35)
    assert found_for(TargetValue("TPR", 0.9), sample(population, [500, 500])).needed_cases is None
    tail = found_for(TargetValue("PPV", 0.8), sample(population, [200, 200]), [0.95, 0.05])
    assert tail.needed_cases is not None
    assert tail.needed_cases > 5000
    assert found_for(OptimisedMetric("MCC"), sample(population, [20, 20])).needed_cases is None


def test_a_covariance_of_another_shape_is_refused(population: Any):
    with pytest.raises(InvalidInputError) as caught:
        found_for(RULES[0], sample(population, [50, 50]), covariance=np.eye(3))
    assert caught.value.field == "covariance"
