import math

import numpy as np
import pytest
from scipy import stats

from lifelong_core.design import validate
from lifelong_core.design.validation.values.intervals import difference_bounds, value_bounds
from lifelong_core.metrics.resampling.intervals import Bootstrap, LeftOut
from tests.unit.design.validations import metric, recommending, simulated

BINARY = {"number_of_classes": 2}


def validated(labels, decisions, *metrics, **given):
    classes = 2 if max(labels) < 2 else 3
    return validate(recommending(*metrics, number_of_classes=classes), labels, decisions=decisions, **given)


def test_that_of_a_share_is_about_the_exact_one():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)
    decisions = np.where(rng.random(400) < 0.15, 1 - labels, labels)
    found = validated(labels, decisions, "AC").value("AC")
    exact = stats.binomtest(int((labels == decisions).sum()), 400).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=0.01)


@pytest.mark.parametrize(
    ("acronym", "cases"), [("AC", 30), ("TPR", 10), ("TNR", 20), ("PPV", 10), ("NPV", 20)]
)
def test_where_nothing_varies_it_is_the_exact_one_of_the_cases_behind_the_value(acronym, cases):
    labels = np.repeat([0, 1], [20, 10])
    found = validated(labels, labels, metric(acronym, target_class=1 if acronym != "AC" else None)).value(
        acronym
    )
    exact = stats.binomtest(cases, cases).proportion_ci(method="exact")
    assert (found.estimate, found.high, found.method) == (1, 1, "unseen")
    assert found.low == pytest.approx(exact.low, rel=1e-9)
    worst = validated(labels, 1 - labels, metric(acronym, target_class=1 if acronym != "AC" else None)).value(
        acronym
    )
    assert worst.low == 0
    if acronym in ("AC", "TPR", "TNR"):
        assert worst.high == pytest.approx(1 - exact.low, rel=1e-9)


def test_at_other_class_shares_it_is_that_of_the_fewest_cases_of_a_class():
    """Five cases of a class that will be half of all are five, however many others there are."""
    labels = np.repeat([0, 1], [1000, 5])
    costs = ((0.0, 1.0), (1.0, 0.0))
    exact = stats.binomtest(5, 5).proportion_ci(method="exact").low
    for prevalence, high in (((0.5, 0.5), 1 - exact), ((1.0, 0.0), 1 - 0.025 ** (1 / 1000))):
        expected_cost = metric("EC", parameters={"costs": costs, "prevalence": prevalence})
        found = validated(labels, labels, expected_cost, replicates=20).value("EC")
        assert (found.estimate, found.method) == (0, "unseen")
        assert found.high == pytest.approx(high)


def test_classes_without_weight_take_nothing_away():
    labels = np.repeat([0, 1], 20)
    weighted = metric("TPR", class_weights=(1.0, 1.0, 0.0))
    found = validate(recommending(weighted), labels, decisions=labels, replicates=20).value("TPR")
    assert found.low == pytest.approx(stats.binomtest(20, 20).proportion_ci(method="exact").low)


def test_groups_that_are_all_right_are_so_many_cases():
    labels = np.repeat([0, 1], 20)
    found = validated(labels, labels, "AC", groups=np.arange(40) // 4).value("AC")
    assert found.low == pytest.approx(stats.binomtest(10, 10).proportion_ci(method="exact").low)


def test_without_a_bound_nothing_is_said_where_nothing_varies():
    labels = np.repeat([0, 1], 20)
    found = validated(labels, labels, metric("LR+", target_class=1)).value("LR+")
    assert (found.estimate, found.low, found.high, found.reason) == (None, None, None, None)
    assert found.number("estimate") == math.inf
    assert math.isnan(found.number("low"))
    assert "more samples are needed" in found.notes[0]


def test_ten_copies_of_each_case_in_a_group_are_no_more_cases():
    labels, probabilities = simulated(150, 2)
    decisions = probabilities.argmax(axis=1)
    once = validated(labels, decisions, "AC").value("AC")
    tenfold = [np.repeat(array, 10) for array in (labels, decisions, np.arange(150))]
    grouped = validated(*tenfold[:2], "AC", groups=tenfold[2]).value("AC")
    alone = validated(*tenfold[:2], "AC").value("AC")
    assert (grouped.low, grouped.high) == pytest.approx((once.low, once.high), rel=1e-9)
    assert (grouped.high - grouped.low) / (alone.high - alone.low) == pytest.approx(math.sqrt(10), rel=0.15)


def test_a_metric_that_is_too_large_on_few_samples_is_corrected_and_keeps_its_estimate_inside():
    """Bias-corrected, the interval would be the smallest of all replicates, above the estimate, and of no width."""
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(3), 500)
    labels = np.array([rng.choice(3, p=row) for row in probabilities])
    found = validate(recommending("CWCE"), labels, probabilities=probabilities).value("CWCE")
    assert found.method == "debiased"
    assert found.low == 0 < found.estimate < found.high  # the model is calibrated
    assert "by chance" in found.notes[0]


def test_the_reflected_interval_stays_within_the_range():
    replicates = np.linspace(0.5, 0.9, 101)
    values = Bootstrap(np.array(0.4), replicates, ())
    found = value_bounds(values, level=0.9, limits=(0.0, 1.0), cases=9)
    assert (found.low, found.high, found.method) == (0, 0.4, "basic")
    wider = value_bounds(values, level=0.9, limits=(-1.0, 1.0), cases=9)
    assert wider.low == pytest.approx(0.8 - 0.88)


def test_draws_in_which_it_is_undefined_are_counted():
    replicates = np.array([np.nan] * 3 + [0.5, 0.6, 0.7, 0.8])
    found = value_bounds(Bootstrap(np.array(0.65), replicates, ()), level=0.9, limits=(0, 1), cases=9)
    assert found.replicates == 4
    assert found.notes == ("Undefined in 3 of 7 resampled data sets.",)
    never = value_bounds(Bootstrap(np.array(0.65), np.full(7, np.nan), ()), level=0.9, limits=(0, 1), cases=9)
    assert math.isnan(never.low)


def test_a_higher_level_is_a_wider_interval():
    labels, probabilities = simulated(200, 3)
    widths = [
        found.high - found.low
        for level in (0.5, 0.9, 0.99)
        for found in [
            validate(recommending("BA"), labels, probabilities=probabilities, level=level).value("BA")
        ]
    ]
    assert widths == sorted(widths)
    assert widths[0] < widths[2] / 2


@pytest.mark.parametrize("level", [0.3, 0.5, 0.95])
def test_every_interval_holds_its_estimate(level):
    labels, probabilities = simulated(150, 3)
    for acronym in ("ECE", "CWCE", "BA", "AP"):
        found = validate(
            recommending(acronym), labels, probabilities=probabilities, level=level, replicates=200
        ).value(acronym)
        assert found.low <= found.estimate <= found.high


def test_half_of_the_draws_have_to_have_a_value():
    for missing, has_interval in ((5, True), (6, False)):
        replicates = np.r_[np.full(missing, np.nan), np.linspace(0.4, 0.8, 10 - missing)]
        values = Bootstrap(np.array(0.6), replicates, ())
        found = value_bounds(values, level=0.9, limits=(0, 1), cases=9)
        assert math.isnan(found.low) is not has_interval
        assert ("too few resampled data sets" in found.notes[-1]) is not has_interval


def test_a_single_case_has_no_interval_though_its_draws_vary():
    """Of one positive among many, AUROC varies with the others alone."""
    labels, probabilities = simulated(60, 2)
    one = np.r_[np.flatnonzero(labels == 0), np.flatnonzero(labels == 1)[:2]]
    for rows, has_interval in ((one, True), (one[:-1], False)):
        result = validate(
            recommending("AUROC", number_of_classes=2), labels[rows], probabilities=probabilities[rows]
        )
        assert result.value("AUROC").estimate is not None
        assert result.value("AUROC").has_interval is has_interval


def test_a_class_that_is_missing_is_no_case_that_a_specificity_needs():
    labels = np.r_[np.repeat([0, 1], 20)]
    decisions = np.r_[labels[:-2], 2, 2]
    found = validate(recommending("TNR"), labels, decisions=decisions).value("TNR")
    assert found.low < found.estimate < found.high


def test_differences_of_few_cases_hold_the_truth():
    """Of 200 cases, 3 % speak for one model and 2 % for the other."""
    rng = np.random.default_rng(0)
    held = {"plain": 0, "wider": 0}
    for _ in range(300):
        cases = rng.choice([1.0, -1.0, 0.0], p=[0.03, 0.02, 0.95], size=200)
        drawn = cases[rng.integers(200, size=(300, 200))].mean(axis=1)
        left = (cases.sum() - cases) / 199
        found = Bootstrap(np.array(cases.mean()), drawn, (LeftOut(left, np.ones(200, np.int64)),))
        given = {"level": 0.95, "limits": (-1.0, 1.0), "cases": 200}
        for name, bounds in (("plain", value_bounds), ("wider", difference_bounds)):
            interval = bounds(found, **given)
            held[name] += interval.low <= 0.01 <= interval.high
    assert held["wider"] / 300 > 0.93
    assert held["plain"] < held["wider"]


def test_differences_of_many_equal_influences_are_hardly_wider():
    rng = np.random.default_rng(0)
    cases = rng.normal(size=2_000)
    drawn = cases[rng.integers(2_000, size=(300, 2_000))].mean(axis=1)
    blocks = np.array([np.delete(cases, np.arange(k, 2_000, 200)).mean() for k in range(200)])
    found = Bootstrap(np.array(cases.mean()), drawn, (LeftOut(blocks, np.ones(200, np.int64)),))
    given = {"level": 0.95, "limits": (-9.0, 9.0), "cases": 2_000}
    plain, wider = value_bounds(found, **given), difference_bounds(found, **given)
    assert 1 <= (wider.high - wider.low) / (plain.high - plain.low) < 1.01


@pytest.mark.parametrize("left", [[], [0.1, np.inf, 0.1], [np.nan, 0.1, 0.1], [0.1, 0.1, 0.1]])
def test_without_finite_influences_all_cases_count(left):
    drawn = np.random.default_rng(0).normal(0.1, 0.02, size=200)
    parts = (LeftOut(np.array(left), np.ones(len(left), np.int64)),) if left else ()
    found = Bootstrap(np.array(0.1), drawn, parts)
    given = {"level": 0.95, "limits": (-1.0, 1.0), "cases": 200}
    plain, wider = value_bounds(found, **given), difference_bounds(found, **given)
    assert 1 < (wider.high - wider.low) / (plain.high - plain.low) < 1.03
