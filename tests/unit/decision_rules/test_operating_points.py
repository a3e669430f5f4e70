"""The search of a cut-off, against all cut-offs one by one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.decision_rules.operating_points import (
    OperatingPoints,
    sample_weights,
    search_cut_off,
    search_operating_point,
)
from lifelong_core.decision_rules.rules import TARGET_METRICS
from lifelong_core.deploy import LabeledLogits, OptimisedMetric, TargetValue, fit_head
from lifelong_core.values.errors import InvalidInputError

BETAS = (0.5, 1.0, 2.0)
OPTIMA = [
    *map(OptimisedMetric, ("MCC", "AC", "BA")),
    *(OptimisedMetric("F_beta", beta=beta) for beta in BETAS),
]


def value_of(metric: str, tp: float, fp: float, share: float, beta: float = 1.0) -> float:
    """The definitions, of shares of all cases; -1 where undefined."""
    fn, tn = share - tp, 1 - share - fp
    parts = {
        "TPR": (tp, share),
        "TNR": (tn, 1 - share),
        "PPV": (tp, tp + fp),
        "NPV": (tn, tn + fn),
        "PPR": (tp + fp, 1.0),
        "F_beta": ((1 + beta**2) * tp, (1 + beta**2) * tp + beta**2 * fn + fp),
        "AC": (tp + tn, 1.0),
        "BA": (tp * (1 - share) + tn * share, 2 * share * (1 - share)),
        "MCC": (tp * tn - fp * fn, max((tp + fp) * share * (1 - share) * (tn + fn), 0.0) ** 0.5),
    }
    above, below = parts[metric]
    return above / below if below > 1e-12 else -1.0


def outcomes(scores: np.ndarray, labels: np.ndarray, share: float) -> list[tuple[float, float, float]]:
    """(cut-off, tp, fp) for every set of samples that a cut-off can call positive, and is not empty."""
    return [
        (
            cut_off,
            share * float((scores[labels == 1] >= cut_off).mean()),
            (1 - share) * float((scores[labels == 0] >= cut_off).mean()),
        )
        for cut_off in np.unique(scores)
    ]


@st.composite
def problems(draw: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """Scores with ties, both classes, and a prevalence."""
    number = draw(st.integers(2, 30))
    levels = draw(st.lists(st.integers(0, 12), min_size=number, max_size=number))
    labels = draw(st.lists(st.integers(0, 1), min_size=number, max_size=number))
    labels[0], labels[1] = 0, 1
    return np.array(levels) / 12, np.array(labels), draw(st.sampled_from([0.01, 0.05, 0.2, 0.5, 0.9]))


def searched(rule: Any, scores: np.ndarray, labels: np.ndarray, share: float) -> tuple[float, float]:
    """(tp, fp) at the cut-off that is found."""
    both = np.column_stack([1 - scores, scores])
    cut_off = search_cut_off(rule, both, labels, np.array([1 - share, share]))
    assert 0 <= cut_off <= 1
    flagged = scores >= cut_off
    return share * float(flagged[labels == 1].mean()), (1 - share) * float(flagged[labels == 0].mean())


@given(problem=problems())
def test_an_optimum_is_the_best_of_all_cut_offs(problem: tuple[np.ndarray, np.ndarray, float]):
    scores, labels, share = problem
    every = outcomes(scores, labels, share)
    for rule in OPTIMA:
        found = value_of(rule.metric, *searched(rule, scores, labels, share), share, rule.beta)
        best = max(value_of(rule.metric, tp, fp, share, rule.beta) for _, tp, fp in every)
        assert found == pytest.approx(best, abs=1e-9), rule


@given(problem=problems(), target=st.sampled_from([0.05, 0.2, 0.5, 0.8, 0.9, 0.97]))
def test_a_target_is_reached_at_the_best_of_the_other_metric(
    problem: tuple[np.ndarray, np.ndarray, float], target: float
):
    for metric in TARGET_METRICS:
        check_target(TargetValue(metric, target), *problem)


def check_target(rule: TargetValue, scores: np.ndarray, labels: np.ndarray, share: float) -> None:
    metric, target = rule.metric, rule.value
    tp, fp = searched(rule, scores, labels, share)
    found, best = value_of(metric, tp, fp, share), value_of(rule.objective, tp, fp, share)
    sign = -1 if metric == "PPR" else 1
    every = [
        (sign * value_of(metric, a, b, share), value_of(rule.objective, a, b, share))
        for _, a, b in outcomes(scores, labels, share)
        if value_of(metric, a, b, share) >= 0
    ]
    reaching = [other for own, other in every if own >= sign * target - 1e-9]
    if reaching:
        assert sign * found >= sign * target - 1e-9
        assert best == pytest.approx(max(reaching), abs=1e-9)
    elif every:  # with one score for all, a negative predictive value is undefined
        assert sign * found == pytest.approx(max(own for own, _ in every), abs=1e-9)


@given(problem=problems())
def test_the_best_expected_cost_is_the_least_of_all_cut_offs(problem: tuple[np.ndarray, np.ndarray, float]):
    scores, labels, share = problem
    costs, rule = np.array([[0.0, 1.0], [5.0, -1.0]]), OptimisedMetric("EC")
    both, prevalence = np.column_stack([1 - scores, scores]), np.array([1 - share, share])
    found = search_operating_point(rule, both, labels, prevalence, costs=costs)
    every = [fp - tp + 5 * (share - tp) for _, tp, fp in outcomes(scores, labels, share)]
    assert -found.value == pytest.approx(min(every), abs=1e-9)
    assert (found.is_reachable, found.end) == (True, (scores >= found.threshold).sum())


@given(problem=problems(), often=st.integers(2, 3))
def test_a_sample_that_is_drawn_more_often_counts_as_so_many(
    problem: tuple[np.ndarray, np.ndarray, float], often: int
):
    scores, labels, share = problem
    drawn = 1 + np.arange(labels.size) % often
    rule, prevalence = TargetValue("PPV", 0.6), np.array([1 - share, share])
    points, copies = OperatingPoints.of(scores), np.repeat(np.arange(labels.size), drawn)
    repeated = OperatingPoints.of(scores[copies])
    one = points.choose(rule, labels[points.order], prevalence, drawn=drawn[points.order].astype(float))
    same = repeated.choose(rule, labels[copies][repeated.order], prevalence)
    assert one.value == pytest.approx(same.value, abs=1e-9, nan_ok=True)
    assert one.is_reachable == same.is_reachable


def test_a_cut_off_lies_midway_between_two_scores():
    points = OperatingPoints.of(np.array([0.2, 0.9, 0.5, 0.5]))
    assert points.thresholds.tolist() == [0.7, 0.35, 0.0]
    assert points.ends.tolist() == [1, 3, 4]
    assert points.order.tolist() == [1, 2, 3, 0]
    assert points.shares(np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [2.0, 9.0, 10.0]


def test_rounding_makes_no_undefined_value_reach_a_target():
    """Where all cases are called positive, 1 - tp - fp is 0 but for rounding, and a ratio with it is chance."""
    for count in range(3, 60):
        labels = np.arange(count) % 3 % 2
        scores = np.linspace(0.1, 0.9, count)[np.argsort(labels, kind="stable")[::-1]]
        share = 1 / count
        tp, fp = searched(TargetValue("NPV", 0.999), scores, labels, share)
        assert value_of("NPV", tp, fp, share) >= 0


def test_neighbouring_floats_are_told_apart():
    low = 0.3
    high = float(np.nextafter(low, 1))
    scores = np.array([high, low, low])
    cut_off = OperatingPoints.of(scores).thresholds[0]
    assert (scores >= cut_off).tolist() == [True, False, False]


def test_weights_make_a_population_of_the_given_prevalence():
    weights = sample_weights(np.array([0, 0, 0, 1]), np.array([0.4, 0.6, 0.0]))
    assert weights.tolist() == pytest.approx([0.4 / 3] * 3 + [0.6])


def test_saturated_probabilities_leave_one_cut_off():
    """Every probability is exactly 1: no cut-off tells the samples apart, and all are decided positive."""
    saturated = np.array([[0.0, 1.0]] * 6), np.array([0, 1, 0, 1, 1, 0]), np.array([0.5, 0.5])
    for rule in (*OPTIMA, *(TargetValue(metric, 0.9) for metric in TARGET_METRICS)):
        assert search_cut_off(rule, *saturated) <= 1, rule


@pytest.mark.parametrize("prevalence", [0.0, 1.0])
def test_a_certain_class_is_refused(prevalence: float):
    with pytest.raises(InvalidInputError) as caught:
        search_cut_off(
            TargetValue("PPV", 0.8),
            np.array([[0.3, 0.7], [0.7, 0.3]]),
            np.array([1, 0]),
            np.array([1 - prevalence, prevalence]),
        )
    assert caught.value.field == "target_prevalence"


@pytest.mark.parametrize("metric", ["TPR", "TNR", "PPV", "NPV", "PPR"])
@pytest.mark.parametrize("positive", [0, 2])
def test_with_more_classes_the_class_stands_against_the_rest(metric: Any, positive: int, population: Any):
    """The rates count the rest as one class, whose parts have the shares of the target prevalence."""
    four, rng = population(4, 1.5), np.random.default_rng(positive)
    data: LabeledLogits = four.draw([60, 40, 80, 30], rng)
    shares = np.array([0.5, 0.1, 0.15, 0.25])
    rule = TargetValue(metric, 0.7 if metric != "PPR" else 0.3, positive)
    head = fit_head(data, 1 - np.eye(4), target_prevalence=shares, decision_rule=rule)
    decisions = head.apply(data.logits).decisions
    called = np.array([(decisions[data.labels == k] == positive).mean() for k in range(4)])
    tp, fp = shares[positive] * called[positive], float(np.delete(shares * called, positive).sum())
    found = value_of(metric, tp, fp, shares[positive])
    assert found <= 0.3 + 1e-9 if metric == "PPR" else found >= 0.7 - 1e-9


def test_where_no_cut_off_reaches_a_target_the_closest_is_taken():
    scores = np.array([0.9, 0.8, 0.7, 0.6])
    labels = np.array([0, 1, 0, 1])
    both = np.column_stack([1 - scores, scores])
    cut_off = search_cut_off(TargetValue("PPV", 0.9), both, labels, np.array([0.5, 0.5]))
    precisions = {one: value_of("PPV", tp, fp, 0.5) for one, tp, fp in outcomes(scores, labels, 0.5)}
    assert max(precisions.values()) == 0.5
    assert (scores >= cut_off).sum() in (2, 4)


@pytest.mark.parametrize("seed", range(4))
def test_a_metric_of_the_rest_is_undefined_where_nothing_is_left_below(seed: int) -> None:
    """Sums of 30,000 weights are not exact, and their rounding errors made a value of 0 / 0."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=30_000)
    scores = rng.random(30_000)
    labels[np.argsort(scores)[:3]] = 1  # so that no cut-off reaches the target
    found = search_operating_point(
        TargetValue("NPV", 0.999), np.stack([1 - scores, scores], axis=1), labels, np.array([0.4, 0.6])
    )
    assert found.threshold > 0
    assert not found.is_reachable
    assert 0 < found.value < 0.999
