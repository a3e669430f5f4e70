"""The partition is optimal, and false changes are as frequent as the threshold says."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy.shift.partition import best_partition, block_bounds, change_threshold


@pytest.mark.parametrize(("dimensions", "expected"), [(1, 8.85), (2, 11.79), (5, 18.35), (10, 27.03)])
def test_the_threshold_is_that_of_published_tables(dimensions, expected):
    """Andrews (1993), table I, 5 %, trimmed at 0.15."""
    assert change_threshold(dimensions, level=0.05, shortest_share=0.15) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("dimensions", [1, 4])
def test_chance_reaches_the_threshold_no_more_often_than_stated(dimensions):
    rng = np.random.default_rng(0)
    blocks, repeats, level = 50, 4000, 0.05
    threshold = change_threshold(dimensions, level=level, shortest_share=0.1)
    steps = rng.normal(size=(repeats, blocks, dimensions))
    bridges = np.cumsum(steps - steps.mean(axis=1, keepdims=True), axis=1)
    share = np.arange(1, blocks + 1) / blocks
    inner = (share >= 0.1) & (share <= 0.9)
    values = (bridges**2).sum(axis=2)[:, inner] / (blocks * share * (1 - share))[inner]
    assert level / 2 < (values.max(axis=1) > threshold).mean() <= level


def cost(sums, weights, changes, penalty):
    bounds = [0, *changes, len(sums)]
    parts = [slice(*pair) for pair in pairwise(bounds)]
    gain = sum((sums[part].sum(axis=0) ** 2).sum() / weights[part].sum() for part in parts)
    return gain - penalty * len(changes)


@given(seed=st.integers(0, 2**32 - 1), blocks=st.integers(1, 7), shortest=st.floats(0.5, 4))
def test_no_partition_is_better(seed, blocks, shortest):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2, size=blocks)
    sums = 3 * rng.normal(size=(blocks, 2))
    found = best_partition(sums, weights, penalty=5.0, shortest=shortest)
    legal = [
        list(changes)
        for number in range(blocks)
        for changes in combinations(range(1, blocks), number)
        if not changes or min(part.sum() for part in np.split(weights, changes)) >= shortest - 1e-9
    ]
    best = max(cost(sums, weights, changes, 5.0) for changes in legal)
    assert found in legal
    assert cost(sums, weights, found, 5.0) == pytest.approx(best)


@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=60), most=st.integers(1, 30))
def test_blocks_cover_all_pieces_in_order(sizes, most):
    ends = np.concatenate([[0.0], np.cumsum(sizes)])
    bounds = block_bounds(ends, most)
    assert (bounds[0], bounds[-1]) == (0, len(sizes))
    assert (np.diff(bounds) > 0).all()
    assert len(bounds) - 1 <= most
