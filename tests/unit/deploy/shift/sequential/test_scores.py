import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.deploy.shift.betting import BucketScores, bucket_scores
from lifelong_core.values.errors import InvalidInputError

HEAD = PostProcessingHead(1.5, [0.3, -0.1, -0.2], 1 - np.eye(3), [0.5, 0.3, 0.2], ("a", "b", "c"))
ROWS = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)


def close(one, other):
    return (
        one.samples == other.samples
        and one.largest == other.largest
        and np.allclose(one.sums, other.sums)
        and np.allclose(one.products, other.products)
    )


def grouped(rows, groups):
    """Transcription of what the fields say."""
    scores = HEAD.apply(rows).probabilities
    sums = [scores[groups == key].sum(axis=0) for key in set(groups.tolist())]
    return sum(sums), sum(np.outer(s, s) for s in sums)


def test_holds_the_sums_of_groups_and_of_their_products():
    groups = np.random.default_rng(1).choice(["x", "y", "z", "w"], size=60)
    found = bucket_scores(HEAD, ROWS, groups=groups)
    sums, products = grouped(ROWS, groups)
    assert found.samples == 60
    np.testing.assert_allclose(found.sums, sums)
    np.testing.assert_allclose(found.products, products)
    assert found.largest == np.unique(groups, return_counts=True)[1].max()


def test_samples_without_groups_are_their_own():
    assert close(bucket_scores(HEAD, ROWS), bucket_scores(HEAD, ROWS, groups=np.arange(60)))


def test_counts_repeat_rows():
    counts = np.random.default_rng(2).integers(0, 4, size=60)
    groups = np.arange(60) // 7
    repeated = np.repeat(ROWS, counts, axis=0)
    assert close(bucket_scores(HEAD, ROWS, counts=counts), bucket_scores(HEAD, repeated))
    assert close(
        bucket_scores(HEAD, ROWS, counts=counts, groups=groups),
        bucket_scores(HEAD, repeated, groups=np.repeat(groups, counts)),
    )


@given(st.permutations(range(60)), st.integers(0, 60), st.integers(0, 60))
def test_order_does_not_matter_and_parts_add_up(order, first, second):
    low, high = sorted((first, second))
    rows = ROWS[list(order)]
    parts = [bucket_scores(HEAD, part) for part in (rows[:low], rows[low:high], rows[high:])]
    whole = bucket_scores(HEAD, ROWS)
    assert close((parts[0] + parts[1]) + parts[2], whole)
    assert close(parts[0] + (parts[1] + parts[2]), whole)
    assert close(parts[2] + parts[0] + parts[1], whole)


def test_two_moments_give_the_squares_around_any_centre():
    groups = np.arange(60) // 5
    centre = np.array([0.2, 0.5, 0.3])
    scores = HEAD.apply(ROWS).probabilities
    sums = [(scores[groups == g] - centre).sum(axis=0) for g in range(12)]
    found = bucket_scores(HEAD, ROWS, groups=groups).squares_around(centre)
    np.testing.assert_allclose(found, sum(np.outer(s, s) for s in sums), atol=1e-12)


def test_a_design_effect_counts_like_groups_of_equal_samples():
    repeated = np.repeat(ROWS, 4, axis=0)
    known = bucket_scores(HEAD, repeated, groups=np.repeat(np.arange(60), 4))
    assert close(bucket_scores(HEAD, repeated, design_effect=4), known)


def test_the_largest_group_may_be_larger_than_the_design_effect():
    found = bucket_scores(HEAD, ROWS, design_effect=4, largest=9)
    assert found.largest == 9
    np.testing.assert_allclose(found.products, bucket_scores(HEAD, ROWS, design_effect=4).products)
    assert bucket_scores(HEAD, ROWS, design_effect=4, largest=2).largest == 4
    assert bucket_scores(HEAD, ROWS, groups=np.arange(60) // 10, largest=2).largest == 10
    assert bucket_scores(HEAD, ROWS, largest=7.5).largest == 7.5


def test_an_empty_bucket_adds_nothing():
    empty = bucket_scores(HEAD, np.empty((0, 3)))
    assert empty.samples == 0
    assert np.isnan(empty.mean).all()
    assert close(bucket_scores(HEAD, ROWS) + empty, bucket_scores(HEAD, ROWS))
    assert close(bucket_scores(HEAD, ROWS, counts=np.zeros(60)), empty)


def test_extreme_logits_have_scores_on_the_simplex():
    found = bucket_scores(HEAD, [[1e4, -1e4, 0], [-1e4, 1e4, 0]])
    np.testing.assert_allclose(found.sums, [1, 1, 0])


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"logits": [[1.0, 2.0]]}, "logits"),
        ({"logits": [[np.nan, 2.0, 1.0]]}, "logits"),
        ({"logits": ROWS, "counts": [1]}, "counts"),
        ({"logits": ROWS, "counts": np.full(60, 0.5)}, "counts"),
        ({"logits": ROWS, "counts": np.full(60, -1)}, "counts"),
        ({"logits": ROWS, "groups": ["x"]}, "groups"),
        ({"logits": ROWS, "design_effect": 0.5}, "design_effect"),
        ({"logits": ROWS, "largest": 0.5}, "largest"),
        ({"logits": ROWS, "largest": np.nan}, "largest"),
    ],
)
def test_says_what_is_wrong(arguments, field):
    with pytest.raises(InvalidInputError) as caught:
        bucket_scores(HEAD, **arguments)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ((1, [1.0], [[1.0]]), "sums"),
        ((1, [0.5, 0.5], [[1.0]]), "products"),
        ((-1, [0.5, 0.5], np.eye(2)), "samples"),
        ((1, [0.5, 0.5], np.eye(2), 0.0), "largest"),
    ],
)
def test_a_bucket_checks_its_fields(values, field):
    with pytest.raises(InvalidInputError) as caught:
        BucketScores(*values)
    assert caught.value.field == field


def test_other_classes_do_not_add_up():
    with pytest.raises(InvalidInputError):
        bucket_scores(HEAD, ROWS) + BucketScores(0, np.zeros(2), np.zeros((2, 2)))
