import math
import warnings

import numpy as np
import pytest
from scipy import stats

from lifelong_core.metrics.resampling.intervals import Bootstrap, LeftOut
from lifelong_core.values.errors import InvalidInputError


def left_out(statistic, samples):
    values = np.array([statistic(np.delete(samples, i)) for i in range(len(samples))])
    return LeftOut(values, np.ones(len(samples), dtype=np.int64))


def same_as_scipy(found, samples, statistic, result, level, method):
    """Of the same replicates."""
    expected = stats.bootstrap(
        samples,
        statistic,
        vectorized=False,
        n_resamples=0,
        bootstrap_result=result,
        confidence_level=level,
        method=method,
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert (found.level, found.replicates) == (level, len(result.bootstrap_distribution))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("statistic", [np.mean, np.var, np.median], ids=["mean", "variance", "median"])
def test_agree_with_scipy(statistic, level):
    samples = np.random.default_rng(0).gamma(1.0, size=31)
    result = stats.bootstrap((samples,), statistic, vectorized=False, n_resamples=499, rng=1)
    data = Bootstrap(
        np.array(statistic(samples)), result.bootstrap_distribution, (left_out(statistic, samples),)
    )
    for method, theirs in (("bca", "BCa"), ("percentile", "percentile")):
        found = data.interval(level=level, method=method)
        same_as_scipy(found, (samples,), statistic, result, level, theirs)


def test_agree_with_scipy_on_strata():
    """Several independent samples, each with its own jackknife."""
    rng = np.random.default_rng(0)
    first, second = rng.gamma(1.0, size=20), rng.gamma(0.5, size=35)

    def statistic(one, other):
        return one.mean() / other.mean()

    result = stats.bootstrap((first, second), statistic, vectorized=False, n_resamples=499, rng=1)
    parts = (
        left_out(lambda one: statistic(one, second), first),
        left_out(lambda other: statistic(first, other), second),
    )
    data = Bootstrap(np.array(statistic(first, second)), result.bootstrap_distribution, parts)
    same_as_scipy(data.interval(level=0.9), (first, second), statistic, result, 0.9, "BCa")


def test_equal_parts_need_be_left_out_once():
    values = np.array([0.0, 0, 0, 1, 1, 5])
    one_by_one = left_out(np.var, values)
    kinds = LeftOut(one_by_one.values[[0, 3, 5]], np.array([3, 2, 1]))
    expected, found = (Bootstrap(np.array(1.0), np.zeros(1), (part,)) for part in (one_by_one, kinds))
    assert found.acceleration() == pytest.approx(expected.acceleration())
    assert found.acceleration() > 0.05


def test_several_values_are_treated_one_by_one():
    rng = np.random.default_rng(0)
    replicates = rng.normal(size=(200, 3))
    part = LeftOut(rng.gamma(1, size=(20, 3)), np.ones(20, dtype=np.int64))
    data = Bootstrap(np.array([0.1, 0.0, -0.2]), replicates, (part,))
    for k, found in enumerate(data.intervals(level=0.8)):
        own = LeftOut(part.values[:, k], part.multiplicity)
        assert found == Bootstrap(data.estimate[k], replicates[:, k], (own,)).interval(level=0.8)
    with pytest.raises(InvalidInputError, match="3 values"):
        data.interval()


def test_replicates_without_a_value_are_counted():
    replicates = np.where(np.arange(100) % 4 == 0, np.nan, np.arange(100.0))
    found = Bootstrap(np.array(50.0), replicates, ()).interval(level=0.9)
    assert found.replicates == 75
    assert 1 < found.low < 10
    assert 90 < found.high < 99


def test_no_value_no_interval():
    for estimate, replicates in ((np.nan, np.arange(9.0)), (1.0, np.full(9, np.nan))):
        for method in ("bca", "percentile"):
            found = Bootstrap(np.array(estimate), replicates, ()).interval(method=method)
            assert math.isnan(found.low)
            assert math.isnan(found.high)


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_infinite_values_are_values(method):
    """Such as likelihood ratios without a false positive."""
    replicates = np.concatenate([np.arange(1, 61.0), np.full(40, np.inf)])
    for estimate in (30.0, np.inf):
        part = LeftOut(np.array([20.0, np.inf, 30.0]), np.array([3, 4, 3]))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = Bootstrap(np.array(estimate), replicates, (part,)).interval(level=0.9, method=method)
        assert 1 <= found.low < np.inf
        assert found.high == np.inf
        assert Bootstrap(np.array(estimate), replicates, (part,)).acceleration() == 0


def test_no_acceleration_where_a_stratum_cannot_tell():
    one, each = np.ones(3, dtype=np.int64), np.array([[1.0, 1.0], [2.0, 2.0], [9.0, 9.0]])
    parts = (LeftOut(each, one), LeftOut(np.where(each == [9, 0], np.nan, each), one))
    first, second = Bootstrap(np.zeros(2), np.zeros((5, 2)), parts).acceleration()
    assert first == 0
    assert second < -0.01


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_nothing_to_resample_gives_no_width(method):
    part = LeftOut(np.ones(10), np.ones(10, dtype=np.int64))
    found = Bootstrap(np.array(1.0), np.ones(50), (part,)).interval(method=method)
    assert (found.low, found.high) == (1, 1)


def test_a_bias_beyond_all_replicates_gives_the_extreme_ones():
    """Where scipy gives nan."""
    found = Bootstrap(np.array(100.0), np.arange(100.0), ()).interval(level=0.95)
    assert 98 < found.low <= found.high == pytest.approx(99)


def test_a_correction_that_passes_all_replicates_stops_there():
    skewed = LeftOut(np.array([0.0, 1e3]), np.array([1, 50]))
    data = Bootstrap(np.array(2000.0), np.arange(1000.0), (skewed,))
    assert data.acceleration() > 0.16
    found = data.interval(level=0.9999)
    assert 0 <= found.low <= found.high == 999


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, math.nan])
def test_levels_are_probabilities(level):
    with pytest.raises(InvalidInputError) as caught:
        Bootstrap(np.array(1.0), np.ones(5), ()).interval(level=level)
    assert caught.value.field == "level"


def test_methods_have_names():
    with pytest.raises(InvalidInputError) as caught:
        Bootstrap(np.array(1.0), np.ones(5), ()).interval(method="BCa")
    assert caught.value.field == "method"
