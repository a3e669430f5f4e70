"""Meta metrics against direct transcriptions of the thesis, scipy, and averages over random orders of equal values."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lifelong_core.develop import transferability as tr
from lifelong_core.values.errors import InvalidInputError

Metric = Callable[[np.ndarray, np.ndarray], float]

rows = st.integers(2, 6).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(0, 3), min_size=n, max_size=n) for _ in range(2)))
)
"""Outcomes and scores with many equal values."""


def over_all_orders(metric: Metric, outcomes: np.ndarray, scores: np.ndarray) -> float:
    """Mean of a metric over all orders of equal outcomes and equal scores, equally likely and independent."""
    found = [
        metric(np.argsort(np.lexsort((first, outcomes))), np.argsort(np.lexsort((second, scores))))
        for first in itertools.permutations(range(outcomes.size))
        for second in itertools.permutations(range(outcomes.size))
    ]
    return float(np.mean(found))


def definition_5_17(outcomes: np.ndarray, scores: np.ndarray) -> float:
    """Definition 5.17 without equal values, with ranks that begin at the best source."""

    def tau(weights: np.ndarray) -> float:
        def product(x: np.ndarray, y: np.ndarray) -> float:
            return sum(
                np.sign(x[i] - x[j]) * np.sign(y[i] - y[j]) * (weights[i] + weights[j])
                for i, j in itertools.combinations(range(x.size), 2)
            )

        return product(outcomes, scores) / math.sqrt(product(outcomes, outcomes) * product(scores, scores))

    by_rank = [1 / (np.argsort(np.argsort(-values)) + 1) for values in (outcomes, scores)]
    return (tau(by_rank[0]) + tau(by_rank[1])) / 2


@pytest.mark.parametrize("oracle", [definition_5_17, lambda o, s: stats.weightedtau(o, s).statistic])
def test_weightedtau_without_equal_values_is_vignas(oracle: Metric) -> None:
    rng = np.random.default_rng(0)
    for n in (2, 3, 10, 40):
        outcomes, scores = rng.normal(size=(2, n))
        assert tr.weightedtau(outcomes, scores) == pytest.approx(oracle(outcomes, scores), abs=1e-12)


@given(st.tuples(*(st.lists(st.integers(0, 2), min_size=3, max_size=3) for _ in range(2))))
def test_weightedtau_with_equal_values_is_the_mean_over_all_orders(pair: tuple[list[int], list[int]]) -> None:
    outcomes, scores = map(np.array, pair)
    assert tr.weightedtau(outcomes, scores) == pytest.approx(
        over_all_orders(lambda o, s: stats.weightedtau(o, s).statistic, outcomes, scores), abs=1e-9
    )


def test_a_random_ranking_has_the_expectation_zero_where_scipy_is_above() -> None:
    rng = np.random.default_rng(1)
    outcomes = rng.integers(0, 6, size=27).astype(float)
    scores = rng.normal(size=(3000, 27))
    ours = tr.weightedtau(outcomes, scores)
    theirs = [stats.weightedtau(outcomes, row).statistic for row in scores[:500]]
    assert abs(ours.mean()) < 4 * ours.std() / math.sqrt(ours.size)
    assert np.mean(theirs) > 0.05


def test_the_best_sources_weigh_most() -> None:
    outcomes = np.array([4.0, 3.0, 2.0, 1.0])
    best_two_swapped, worst_two_swapped = np.array([3.0, 4, 2, 1]), np.array([4.0, 3, 1, 2])
    assert tr.weightedtau(outcomes, best_two_swapped) < tr.weightedtau(outcomes, worst_two_swapped)


@given(rows)
def test_no_result_depends_on_the_order_of_the_sources(pair: tuple[list[int], list[int]]) -> None:
    outcomes, scores = (np.array(one) / 4 for one in pair)
    mixed = np.random.default_rng(len(outcomes)).permutation(outcomes.size)
    for metric in (tr.weightedtau, tr.mean_of_top, tr.max_of_top):
        assert metric(outcomes[mixed], scores[mixed]) == pytest.approx(metric(outcomes, scores), abs=1e-12)
    for value in (tr.percentile, tr.regret):
        assert value(outcomes[mixed]) == pytest.approx(value(outcomes)[mixed])


@given(rows, st.integers(1, 7))
def test_multi_shot_is_the_mean_over_all_orders_of_equal_scores(
    pair: tuple[list[int], list[int]], k: int
) -> None:
    values, scores = (np.array(one, dtype=float) for one in pair)
    tops = [values[np.lexsort((order, -scores))[:k]] for order in itertools.permutations(range(values.size))]
    assert tr.mean_of_top(values, scores, k) == pytest.approx(np.mean([top.mean() for top in tops]))
    assert tr.max_of_top(values, scores, k) == pytest.approx(np.mean([top.max() for top in tops]))


def test_multi_shot_of_equal_scores_is_the_mean_over_all_choices() -> None:
    values = np.random.default_rng(2).normal(size=12)
    choices = [max(chosen) for chosen in itertools.combinations(values, 5)]
    assert tr.max_of_top(values, np.zeros(12), 5) == pytest.approx(np.mean(choices))
    assert tr.mean_of_top(values, np.zeros(12), 5) == pytest.approx(values.mean())


def test_percentile_is_the_definition_without_equal_outcomes_and_fair_with_them() -> None:
    outcomes = np.random.default_rng(3).permutation(9) / 9
    definition = [(outcomes <= own).mean() for own in outcomes]
    assert tr.percentile(outcomes) == pytest.approx(definition)
    assert tr.percentile([0.5, 0.5, 0.5, 0.9]).mean() == pytest.approx((4 + 1) / (2 * 4))


def test_regret_of_the_best_source_is_zero_also_at_the_upper_bound() -> None:
    assert tr.regret([0.8, 0.6]).tolist() == pytest.approx([0.0, 0.5])
    assert tr.regret([1.0, 1.0, 0.5]).tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(InvalidInputError, match="upper bound"):
        tr.regret([80.0, 60.0])


def test_illegal_pairs_are_left_out() -> None:
    rng = np.random.default_rng(4)
    outcomes, scores = rng.uniform(size=(2, 8))
    longer = np.insert(outcomes, [0, 3, 8], np.nan)
    longer_scores = np.insert(scores, [0, 3, 8], 99)
    assert tr.weightedtau(longer, longer_scores) == tr.weightedtau(outcomes, scores)
    assert tr.percentile(longer)[~np.isnan(longer)].tolist() == tr.percentile(outcomes).tolist()
    assert tr.regret(longer)[~np.isnan(longer)].tolist() == tr.regret(outcomes).tolist()
    for metric in (tr.mean_of_top, tr.max_of_top):
        assert metric(longer, longer_scores, 3) == metric(outcomes, scores, 3)


def test_a_source_without_a_score_ranks_last() -> None:
    outcomes = [0.9, 0.8, 0.7]
    assert tr.weightedtau(outcomes, [np.nan, 2, 1]) == tr.weightedtau(outcomes, [0, 2, 1])
    assert tr.mean_of_top(outcomes, [np.nan, 2, 1]) == 0.8


def test_without_a_choice_there_is_no_result() -> None:
    assert np.isnan(tr.weightedtau([0.5, np.nan], [1, 2]))
    assert np.isnan(tr.percentile([0.5, np.nan])).all()
    assert np.isnan(tr.regret([0.5, np.nan])).all()
    assert np.isnan(tr.mean_of_top([np.nan, np.nan], [1, 2]))
    assert np.isnan(tr.max_of_top([np.nan, np.nan], [1, 2]))
    assert tr.mean_of_top([0.5, np.nan], [1, 2], k=3) == 0.5
    with pytest.raises(InvalidInputError, match="at least 1"):
        tr.mean_of_top([0.5, 0.6], [1, 2], k=0)


def test_rows_are_independent() -> None:
    rng = np.random.default_rng(5)
    outcomes, scores = rng.integers(0, 5, size=(2, 2, 3, 9)) / 5
    outcomes[rng.uniform(size=outcomes.shape) < 0.2] = np.nan
    for metric in (tr.weightedtau, tr.mean_of_top, tr.max_of_top):
        at_once = metric(outcomes, scores)
        assert at_once.shape == (2, 3)
        for place in np.ndindex(2, 3):
            assert at_once[place] == pytest.approx(metric(outcomes[place], scores[place]), abs=1e-12)


def test_improvement_and_gain_compare_with_the_baseline() -> None:
    outcomes, baseline = np.array([[0.5, np.nan], [0.25, 1.0]]), np.array([0.5, 0.5])
    assert np.array_equal(tr.improvement(outcomes, baseline), [[0.0, np.nan], [-0.25, 0.5]], equal_nan=True)
    assert np.array_equal(tr.gain(outcomes, baseline), [[0.0, np.nan], [0.0, 1.0]], equal_nan=True)


def test_setup_stability_is_the_mean_tau_over_all_edges() -> None:
    figures = np.random.default_rng(6).integers(0, 6, size=(4, 3, 2, 5)).astype(float)
    figures[1, 2, 0, 3] = np.nan
    figures[0, 0, 0] = 1.0  # no order at all
    nodes = list(np.ndindex(4, 3, 2))
    for axis, found in enumerate(tr.setup_stability(figures)):
        taus = [
            stats.kendalltau(figures[one], figures[two]).statistic
            for one, two in itertools.combinations(nodes, 2)
            if [place for place in range(3) if one[place] != two[place]] == [axis]
        ]
        assert np.isnan(taus).any()
        assert found == pytest.approx(np.nanmean(taus))


def test_win_rate_counts_shared_first_places_for_each() -> None:
    figures = np.array([[0.3, 0.1 + 0.2, 0.1], [0.5, 0.4, 0.6], [np.nan, 1.0, 0.0]])
    assert figures[0, 0] != figures[0, 1]  # the same three figures, summed in another order
    assert tr.win_rate(figures).tolist() == [0.5, 0.5, 0.5]
    assert np.isnan(tr.win_rate(figures[2:])).all()


def test_ranks_are_those_of_scipy() -> None:
    figures = np.random.default_rng(7).integers(0, 4, size=(20, 6))
    assert np.array_equal(tr.rank_methods(figures), stats.rankdata(-figures, axis=1))


def test_a_bootstrap_over_data_sets_draws_them_whole() -> None:
    groups = ["a", "a", "b", "c", "c", "c"]
    weights = tr.bootstrap_weights(6, groups=groups, replicates=500, seed=1)
    assert (weights[:, 0] == weights[:, 1]).all()
    assert (weights[:, 3] == weights[:, 5]).all()
    assert (weights[:, [0, 2, 3]].sum(axis=1) == 3).all()
    assert weights.mean() == pytest.approx(1, abs=0.1)
    assert np.array_equal(weights, tr.bootstrap_weights(6, groups=groups, replicates=500, seed=1))
    single = tr.bootstrap_weights(6, replicates=500)
    assert (single.sum(axis=1) == 6).all()
    with pytest.raises(InvalidInputError, match="groups"):
        tr.bootstrap_weights(5, groups=groups)


def test_bootstrapped_rankings_are_those_of_the_drawn_setups() -> None:
    rng = np.random.default_rng(8)
    figures = rng.normal(size=(30, 4))
    weights = tr.bootstrap_weights(30, replicates=20, seed=2)
    means, ranks = tr.mean_then_rank(figures, weights), tr.rank_then_mean(figures, weights)
    for replicate, counts in enumerate(weights.astype(int)):
        drawn = np.repeat(figures, counts, axis=0)
        assert np.array_equal(means[replicate], stats.rankdata(-drawn.mean(axis=0)))
        assert ranks[replicate] == pytest.approx(stats.rankdata(-drawn, axis=1).mean(axis=0))


def test_setups_of_one_data_set_make_the_interval_wider() -> None:
    rng = np.random.default_rng(9)
    groups = np.repeat(np.arange(10), 20)
    figures = rng.normal(size=10)[groups, np.newaxis] + 0.1 * rng.normal(size=(200, 1))
    by_set, by_setup = (
        tr.mean_over_setups(figures, tr.bootstrap_weights(200, groups=one)).std() for one in (groups, None)
    )
    assert by_set > 3 * by_setup
