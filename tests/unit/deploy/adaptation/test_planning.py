"""Plans, compared with the later intervals, calibration sets and estimates."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy import LabeledLogits, quantifier
from lifelong_core.deploy.adaptation.planning import LARGEST_WINDOW, MOST_CASES, SamplePlan, plan_samples
from lifelong_core.values.errors import InvalidInputError

PREVALENCE = np.array([0.6, 0.3, 0.1])


def measured_half_widths(fitted, windows):
    """Root mean square over windows of t quantile times standard error, before the interval is cut off."""
    from scipy import stats

    squares = []
    for window in windows:
        estimate = fitted.estimate(window)
        quantile = stats.t.ppf(0.975, estimate.degrees_of_freedom)
        squares.append(quantile**2 * np.diag(estimate.covariance))
    return np.sqrt(np.mean(squares, axis=0))


@pytest.mark.parametrize("method", ["ACC", "PACC", "MLLS"])
@pytest.mark.parametrize("size", [200, 3000])
def test_planned_widths_are_those_of_real_windows(population, method, size):
    rng = np.random.default_rng(0)
    world = population(3, 1.5)
    fitted = quantifier(method).fit(world.draw([150, 100, 120], rng))
    windows = [world.window(PREVALENCE, size, rng) for _ in range(60)]
    planned = plan_samples(fitted, prevalence=PREVALENCE).half_widths(size)
    assert planned == pytest.approx(measured_half_widths(fitted, windows), rel=0.15)


def test_the_floor_is_what_an_almost_endless_window_still_leaves_open(population):
    rng = np.random.default_rng(1)
    world = population(3, 1.5)
    fitted = quantifier("PACC").fit(world.draw([60, 60, 60], rng))
    plan = plan_samples(fitted, prevalence=PREVALENCE)
    measured = measured_half_widths(fitted, [world.window(PREVALENCE, 200_000, rng)])
    assert plan.floor() == pytest.approx(measured, rel=0.15)
    assert plan.half_widths(LARGEST_WINDOW) == pytest.approx(plan.floor(), rel=1e-3)
    assert (plan.half_widths(200) > 1.2 * plan.floor()).all()


def test_the_rule_of_thumb_is_the_spread_of_adjusted_counts(population):
    """Draw decisions of such a classifier, correct them by the rates of such a calibration set, look at the spread."""
    rng = np.random.default_rng(2)
    accuracy, cases, size = 0.8, 200, 500
    rates = np.full((3, 3), 0.1) + 0.7 * np.eye(3)  # columns: true classes
    estimates = []
    for _ in range(4000):
        measured = np.column_stack([rng.multinomial(cases, rates[:, j]) / cases for j in range(3)])
        decided = rng.multinomial(size, rates @ PREVALENCE) / size
        estimates.append(np.linalg.solve(measured, decided))
    plan = SamplePlan.assumed(3, accuracy, cases, prevalence=PREVALENCE)
    assert plan.half_widths(size) == pytest.approx(1.96 * np.std(estimates, axis=0), rel=0.05)


def test_the_thesis_rule_of_a_thousand_samples_gives_a_binary_task_about_four_points():
    plan = SamplePlan.assumed(2, 0.9, 10**6)
    assert plan.half_widths(1000) == pytest.approx([0.039, 0.039], abs=0.001)


@given(st.floats(0.02, 0.3), st.integers(2, 8), st.floats(0.6, 0.99), st.integers(20, 5000))
def test_the_size_needed_is_the_smallest_that_is_enough(half_width, classes, accuracy, cases):
    plan = SamplePlan.assumed(classes, accuracy, cases)
    size = plan.size_needed(half_width)
    if size is None:
        assert plan.half_widths(LARGEST_WINDOW).max() > half_width
    else:
        assert plan.half_widths(max(size, 2)).max() <= half_width
        assert size <= 2 or plan.half_widths(size - 1).max() > half_width


def test_the_cases_needed_bring_a_real_calibration_set_there(population):
    rng = np.random.default_rng(3)
    world = population(2, 1.0)
    small = plan_samples(quantifier("PACC").fit(world.draw([100, 100], rng)), prevalence=[0.8, 0.2])
    wanted = 0.8 * small.floor().max()
    assert small.size_needed(wanted) is None
    further = small.cases_needed(wanted)
    assert further[0] > further[1]  # the cases of the frequent class matter more
    grown = plan_samples(quantifier("PACC").fit(world.draw(100 + further, rng)), prevalence=[0.8, 0.2])
    assert grown.floor() == pytest.approx(small.extend(further).floor(), rel=0.1)
    assert small.extend(further).size_needed(wanted) == pytest.approx(grown.size_needed(wanted), rel=0.3)


def test_no_cheaper_allocation_reaches_the_same_floor():
    """A search over all allocations of two classes finds none with fewer cases that leaves as little open."""
    plan = SamplePlan.assumed(2, 0.85, 100, prevalence=[0.7, 0.3])
    further = plan.cases_needed(0.06)
    reached = plan.extend(further).floor().max() + 1e-6
    cheapest = min(
        first + second
        for first in range(0, 2 * further[0], 8)
        for second in range(0, 2 * further[1] + 20, 8)
        if plan.extend([first, second]).floor().max() <= reached
    )
    assert further.sum() <= cheapest + 16


def test_nothing_more_is_needed_where_the_calibration_set_is_large():
    assert SamplePlan.assumed(2, 0.9, 10**6).cases_needed(0.05).tolist() == [0, 0]


def test_copies_of_a_case_in_one_group_count_once(population):
    rng = np.random.default_rng(4)
    single = population(2, 1.5).draw([150, 150], rng)
    copies = np.repeat(np.arange(300), 4)
    fourfold = single.select(copies)
    grouped = LabeledLogits(fourfold.logits, fourfold.labels, copies)
    floors = [plan_samples(quantifier("PACC").fit(one)).floor()[0] for one in (single, grouped, fourfold)]
    assert floors[1] == pytest.approx(floors[0], rel=0.05)
    assert floors[2] == pytest.approx(floors[0] / 2, rel=0.05)


def test_permuted_classes_permute_the_plan(population):
    rng = np.random.default_rng(5)
    data = population(3, 1.5).draw([100, 80, 60], rng)
    order = np.array([2, 0, 1])
    permuted = LabeledLogits(data.logits[:, order], np.argsort(order)[data.labels])
    first = plan_samples(quantifier("PACC").fit(data), prevalence=PREVALENCE)
    second = plan_samples(quantifier("PACC").fit(permuted), prevalence=PREVALENCE[order])
    assert second.half_widths(500) == pytest.approx(first.half_widths(500)[order], rel=0.02)


def test_equal_arguments_give_equal_plans(population):
    fitted = quantifier("MLLS").fit(population(2).draw([50, 50], np.random.default_rng(6)))
    assert plan_samples(fitted) == plan_samples(fitted)
    document = plan_samples(fitted).to_document()
    assert json.loads(json.dumps(document)) == document


@given(
    st.lists(st.integers(2, 30), min_size=2, max_size=4),
    st.floats(1e-8, 1e-2),
    st.floats(0.1, 10),
    st.floats(0, 1e-2),
)
def test_no_window_leaves_more_open_than_a_smaller_one(cases, calibration, window, disagreement):
    """Welch's degrees of freedom alone would not keep this for a handful of calibration cases."""
    classes = len(cases)
    plan = SamplePlan(
        method="made up",
        confidence=0.95,
        prevalence=np.full(classes, 1 / classes),
        cases=cases,
        window_variance=np.full(classes, window),
        calibration_variance=np.full((classes, classes), calibration),
        calibration_degrees=np.array(cases) - 1.0,
        disagreement=np.full(classes, disagreement),
    )
    sizes = [2, *np.geomspace(3, LARGEST_WINDOW, 60)]
    widths = np.array([*(plan.half_widths(size) for size in sizes), plan.floor()])
    assert (np.diff(widths, axis=0) <= 1e-12 * widths[:-1]).all()


def small(counts, groups=None):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(len(counts)), counts)
    logits = 2 * np.eye(len(counts))[labels] + rng.normal(size=(labels.size, len(counts)))
    return LabeledLogits(logits, labels, groups)


def test_a_handful_of_cases_plans_endless_windows_like_those_before():
    plan = plan_samples(quantifier("PACC").fit(small([2, 2])))
    assert (plan.floor() <= plan.half_widths(100_000)).all()
    assert (plan.half_widths(100_000) <= plan.half_widths(100)).all()


def test_a_single_case_is_taken_to_be_spread_like_the_others():
    data = small([40, 1])
    plan = plan_samples(quantifier("PACC").fit(data))
    assert plan.cases.tolist() == [40, 1]
    assert plan.calibration_degrees.tolist() == [39, 1]
    assert (plan.calibration_variance[:, 1] > 10 * plan.calibration_variance[:, 0]).all()
    assert plan.cases_needed(0.05)[1] > 0


@pytest.mark.parametrize(
    "data", [small([1, 1]), small([4, 4], groups=[0, 0, 0, 0, 1, 2, 3, 4])], ids=["single", "one group"]
)
def test_cases_that_show_no_spread_leave_everything_unknown(data):
    """As in estimates: their intervals then reach from 0 to 1."""
    fitted = quantifier("PACC").fit(data)
    estimate = fitted.estimate(np.repeat(data.logits, 50, axis=0))
    assert (estimate.high - estimate.low).tolist() == [1, 1]
    plan = plan_samples(fitted)
    assert np.isinf(plan.half_widths(1000)).all()
    assert np.isinf(plan.floor()).all()
    assert plan.size_needed(0.5) is None
    assert plan.cases_needed(0.5) is None


def test_a_tiny_set_needs_cases_until_the_t_distribution_is_near_the_normal_one():
    plan = plan_samples(quantifier("PACC").fit(small([2, 2])))
    wanted = 0.8 * plan.floor().max()
    assert plan.size_needed(wanted) is None
    further = plan.cases_needed(wanted)
    assert further.min() > 0
    assert plan.extend(further).size_needed(wanted) is not None


def test_no_plan_asks_for_more_cases_than_anybody_collects():
    plan = SamplePlan.assumed(2, 0.9, 100)
    assert plan.cases_needed(1e-5) is None
    assert plan.cases_needed(1e-12) is None
    for wanted in np.geomspace(0.2, 1e-5, 30):
        further = plan.cases_needed(wanted)
        assert further is None or further.max() <= MOST_CASES


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"classes": 1}, "classes"),
        ({"accuracy": 0.5}, "accuracy"),
        ({"accuracy": 1.0}, "accuracy"),
        ({"cases_per_class": 1}, "cases_per_class"),
        ({"prevalence": [0.5, 0.6]}, "prevalence"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_a_rule_of_thumb_names_the_argument_at_fault(arguments, field):
    with pytest.raises(InvalidInputError) as caught:
        SamplePlan.assumed(**{"classes": 2, "accuracy": 0.9, "cases_per_class": 100, **arguments})
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda plan: plan.half_widths(1), "size"),
        (lambda plan: plan.size_needed(0), "half_width"),
        (lambda plan: plan.cases_needed(1.5), "half_width"),
        (lambda plan: plan.extend([1]), "further"),
        (lambda plan: plan.extend([1, -1]), "further"),
    ],
)
def test_a_question_names_the_argument_at_fault(call, field):
    with pytest.raises(InvalidInputError) as caught:
        call(SamplePlan.assumed(2, 0.9, 100))
    assert caught.value.field == field


def test_what_a_method_does_not_fit_is_part_of_the_plan(population):
    """Logits of one class are stretched: affine calibration is wrong, which MLLS notices and adds to its intervals."""
    rng = np.random.default_rng(7)

    def stretched(labels):
        logits = population(2, 1.0).logits(labels, rng)
        return np.where((labels == 0)[:, np.newaxis], 4 * logits, logits)

    calibration_labels = rng.permutation(np.repeat([0, 1], 1500))
    fitted = quantifier("MLLS").fit(LabeledLogits(stretched(calibration_labels), calibration_labels))
    plan = plan_samples(fitted, prevalence=[0.8, 0.2])
    windows = [stretched(rng.choice(2, size=2000, p=[0.8, 0.2])) for _ in range(40)]
    measured = measured_half_widths(fitted, windows)
    assert plan.half_widths(2000) == pytest.approx(measured, rel=0.2)
    without = plan.calibration_variance.sum(axis=1) + plan.window_variance / 2000
    assert (1.96 * np.sqrt(without) < 0.8 * measured).all()
