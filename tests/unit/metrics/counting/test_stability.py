import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lifelong_core.metrics.counting.stability import (
    adjusted_jaccard,
    adjusted_positive_jaccard,
    adjusted_positive_overlap,
    agreement,
    heuristically_adjusted_positive_jaccard,
    kendall_correlation,
    negative_agreement_ratio,
    pearson_correlation,
    positive_agreement_ratio,
    positive_jaccard,
    positive_overlap,
    spearman_correlation,
    total_agreement_ratio,
)
from lifelong_core.values.errors import InvalidInputError

OF_COUNTS = (
    positive_jaccard,
    positive_overlap,
    adjusted_positive_overlap,
    heuristically_adjusted_positive_jaccard,
    adjusted_positive_jaccard,
    adjusted_jaccard,
    total_agreement_ratio,
    positive_agreement_ratio,
    negative_agreement_ratio,
)
CORRELATIONS = (pearson_correlation, spearman_correlation, kendall_correlation)

counts = st.tuples(*[st.integers(0, 12)] * 4)


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@given(counts)
def test_are_the_published_formulas(table):
    """Direct transcriptions of eqs. 7, 15-19, 21 and 22, and of what eq. 20 means; 0 / 0 is nan."""
    n00, n01, n10, n11 = (np.float64(count) for count in table)
    total, first, second = n00 + n01 + n10 + n11, n10 + n11, n01 + n11
    with np.errstate(divide="ignore", invalid="ignore"):
        both, neither = first * second / total, (total - first) * (total - second) / total
        unavoidable = max(first + second - total, 0)
        same(positive_jaccard(*table), n11 / (n01 + n10 + n11))
        same(positive_overlap(*table), n11 / (min(n10, n01) + n11))
        expected = (n11 - unavoidable) / (n10 + n01 + n11 - unavoidable)
        same(heuristically_adjusted_positive_jaccard(*table), expected)
        same(total_agreement_ratio(*table), (n11 + n00) / total)
        same(positive_agreement_ratio(*table), 2 * n11 / (2 * n11 + n01 + n10))
        same(negative_agreement_ratio(*table), 2 * n00 / (2 * n00 + n01 + n10))
        if first not in (0, total) and second not in (0, total):  # else the fractions are rounded 0 / 0
            same(adjusted_positive_overlap(*table), (n11 - both) / (min(first, second) - both))
        if total not in (n00, n11, 0):
            same(adjusted_positive_jaccard(*table), (n11 - both) / (n10 + n01 + n11 - both))
            same(adjusted_jaccard(*table), (n11 + n00 - both - neither) / (total - both - neither))


@given(counts)
def test_keep_their_ranges_and_do_not_depend_on_the_order_of_the_models(table):
    n00, n01, n10, n11 = table
    lowest = {
        adjusted_positive_overlap: 1 - sum(table),
        adjusted_positive_jaccard: -1 / 3,
        adjusted_jaccard: -1,
    }
    for score in OF_COUNTS:
        found = score(*table)
        same(score(n00, n10, n01, n11), found)
        if not math.isnan(found):
            assert lowest.get(score, 0) - 1e-12 <= found <= 1 + 1e-12


@given(counts, st.integers(2, 5))
def test_duplicated_images_change_nothing(table, times):
    for score in OF_COUNTS:
        same(score(*(times * count for count in table)), score(*table))


def test_one_class_only():
    assert [math.isnan(score(0, 0, 0, 10)) for score in OF_COUNTS] == [False] * 2 + [True] * 4 + [
        False
    ] * 2 + [True]
    assert [math.isnan(score(10, 0, 0, 0)) for score in OF_COUNTS] == [True] * 6 + [False, True, False]
    assert all(math.isnan(score(0, 0, 0, 0)) for score in OF_COUNTS)


def test_one_class_by_rounded_weights():
    assert math.isnan(adjusted_positive_overlap(0.0, 0.1, 0.0, 0.7))
    assert math.isnan(adjusted_jaccard(0.3, 0.0, 0.0, 0.0))


def test_counts_of_decisions():
    found = agreement([0, 0, 1, 1, 1], [0, 1, 0, 1, 1])
    assert found == (1, 1, 1, 2)
    assert found.n11 == 2


@pytest.mark.parametrize("wrong", [-1, math.nan, math.inf])
def test_counts_are_counts(wrong):
    for score in OF_COUNTS:
        with pytest.raises(InvalidInputError) as caught:
            score(1, 2, wrong, 3)
        assert caught.value.field == "counts", score


@pytest.mark.parametrize(
    ("first", "second", "field"),
    [([0, 2], [0, 1], "first"), ([0, 1], [0, 2], "second"), ([0, 1], [0], "second")],
)
def test_decisions_are_0_or_1(first, second, field):
    with pytest.raises(InvalidInputError) as caught:
        agreement(first, second)
    assert caught.value.field == field


scores = st.integers(2, 20).flatmap(
    lambda size: st.tuples(
        *[st.lists(st.integers(0, 6).map(lambda n: n / 6), min_size=size, max_size=size)] * 2
    )
)


@given(scores)
def test_correlations_agree_with_scipy(pair):
    """Theirs warns of constant scores."""
    first, second = pair
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert all(math.isnan(correlation(first, second)) for correlation in CORRELATIONS)
        return
    same(pearson_correlation(first, second), stats.pearsonr(first, second).statistic)
    same(spearman_correlation(first, second), stats.spearmanr(first, second).statistic)
    same(kendall_correlation(first, second), stats.kendalltau(first, second).statistic)


@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_correlations_of_a_model_with_itself_and_its_reverse(correlation):
    values = np.random.default_rng(0).normal(size=50)
    assert correlation(values, values) == pytest.approx(1)
    assert correlation(values, 1e200 * values) == pytest.approx(1)
    assert correlation(values, -values) == pytest.approx(-1)
    assert math.isnan(correlation([0.1] * 3, [1, 2, 3]))  # the mean of 0.1, 0.1, 0.1 is another number
    assert math.isnan(correlation([1], [1]))
    assert math.isnan(correlation([], []))


@pytest.mark.parametrize(
    ("first", "second", "field"),
    [([0, 1], [0], "second"), ([0, math.nan], [0, 1], "first"), ([0, 1], ["a", "b"], "second")],
)
def test_scores_are_numbers(first, second, field):
    for correlation in CORRELATIONS:
        with pytest.raises(InvalidInputError) as caught:
            correlation(first, second)
        assert caught.value.field == field, correlation
