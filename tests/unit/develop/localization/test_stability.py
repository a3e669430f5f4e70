"""Stability scores of maps: golden values, direct transcriptions, limits, and what chance gives."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest

from lifelong_core.develop.localization.stability import SCORES, stability
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.reference import REFERENCE

ACRONYMS = {
    "S_PO": "positive_overlap",
    "S_APO": "adjusted_positive_overlap",
    "S_J": "positive_jaccard",
    "S_HAPJ": "heuristically_adjusted_positive_jaccard",
    "S_APJ": "adjusted_positive_jaccard",
    "S_AJ": "adjusted_jaccard",
    "pearson": "pearson",
    "spearman": "spearman",
    "kendall_tau_b": "kendall",
}


def of_counts(n00, n01, n10, n11):
    """A pair of maps with these counts, in one row."""
    return [0.0] * n00 + [0.2] * n01 + [0.9] * n10 + [1.0] * n11, [0.1] * n00 + [0.5] * n01 + [0.4] * n10 + [
        0.7
    ] * n11


@pytest.mark.parametrize("case", list(REFERENCE["stability"]))
def test_golden_values(case):
    content = REFERENCE["stability"][case]
    given = content["input"]
    found = stability(*((given["W1"], given["W2"]) if "W1" in given else of_counts(**given)))
    compared = 0
    for key, expected in content["expected"].items():
        if key in ACRONYMS:
            value = getattr(found, ACRONYMS[key])
            compared += 1
            assert math.isnan(value) if expected is None else value == pytest.approx(expected, abs=1e-12)
    assert compared == (3 if "W1" in given else 6)


def slowly(first, second, threshold):
    """Eqs. 7 and 15 to 19 and table Ib, patch by patch, with tau-b and mean ranks for ties."""
    size = len(first)
    positive = [[value >= threshold for value in one] for one in (first, second)]
    n11 = sum(a and b for a, b in zip(*positive, strict=True))
    n10 = sum(a and not b for a, b in zip(*positive, strict=True))
    n01 = sum(b and not a for a, b in zip(*positive, strict=True))
    n00 = size - n11 - n10 - n01
    own, other = n10 + n11, n01 + n11
    both, neither = own * other / size, (size - own) * (size - other) / size
    unavoidable = max(own + other - size, 0)

    def correlation(one, another):
        one, another = ([value - sum(values) / size for value in values] for values in (one, another))
        product = sum(a * b for a, b in zip(one, another, strict=True))
        return product / math.sqrt(sum(a * a for a in one) * sum(b * b for b in another))

    def ranks(values):
        return [
            sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
            for value in values
        ]

    pairs = list(combinations(range(size), 2))
    signs = [[np.sign(one[a] - one[b]) for a, b in pairs] for one in (first, second)]
    ordered = [sum(abs(sign) for sign in one) for one in signs]
    return {
        "positive_overlap": n11 / (min(n10, n01) + n11),
        "adjusted_positive_overlap": (n11 - both) / (min(own, other) - both),
        "positive_jaccard": n11 / (n01 + n10 + n11),
        "heuristically_adjusted_positive_jaccard": (n11 - unavoidable) / (n10 + n01 + n11 - unavoidable),
        "adjusted_positive_jaccard": (n11 - both) / (n10 + n01 + n11 - both),
        "adjusted_jaccard": (n11 + n00 - both - neither) / (size - both - neither),
        "pearson": correlation(first, second),
        "spearman": correlation(ranks(first), ranks(second)),
        "kendall": sum(a * b for a, b in zip(*signs, strict=True)) / math.sqrt(ordered[0] * ordered[1]),
    }


def drawn(seed, shape=(4, 5), *, agreement=0.5):
    """Two maps with ties, which agree to a degree."""
    rng = np.random.default_rng(seed)
    first = rng.random(shape).round(1)
    return first, (agreement * first + (1 - agreement) * rng.random(shape)).round(1)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7])
def test_are_the_published_formulas(seed, threshold):
    first, second = drawn(seed)
    expected = slowly(first.ravel().tolist(), second.ravel().tolist(), threshold)
    found = stability(first, second, threshold=threshold)
    assert tuple(expected) == SCORES
    assert {name: getattr(found, name) for name in SCORES} == pytest.approx(expected, abs=1e-12)


def values(first, second):
    found = stability(first, second)
    return np.array([getattr(found, name) for name in SCORES])


@pytest.mark.parametrize("seed", range(20))
def test_do_not_depend_on_the_order_of_models_and_patches_and_keep_their_limits(seed):
    first, second = drawn(seed, agreement=seed / 20)
    found = values(first, second)
    np.testing.assert_allclose(values(second, first), found, atol=1e-12)
    order = np.random.default_rng(seed).permutation(first.size)
    np.testing.assert_allclose(values(first.ravel()[order], second.ravel()[order]), found, atol=1e-12)
    lowest = [0, 1 - first.size, 0, 0, -1 / 3, -1, -1, -1, -1]
    assert (found >= np.array(lowest) - 1e-12).all()
    assert (found <= 1 + 1e-12).all()


def test_limits_are_reached():
    first, _ = drawn(0)
    assert values(first, first) == pytest.approx(np.ones(9))
    opposite = stability([1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1])
    found = [getattr(opposite, name) for name in SCORES]
    assert found == pytest.approx([0, -1, 0, 0, -1 / 3, -1, -1, -1, -1])
    # n01 = N - 1, n10 = 1 of section III-A2: one positive alone, against all others.
    alone = stability([1, 0, 0, 0, 0], [0, 1, 1, 1, 1])
    assert alone.adjusted_positive_overlap == pytest.approx(-4)
    # A subset of the positives is enough for the overlaps, not for the others.
    subset = stability([1, 1, 1, 0, 0], [1, 0, 0, 0, 0])
    assert (subset.positive_overlap, subset.adjusted_positive_overlap) == pytest.approx((1, 1))
    assert subset.positive_jaccard == pytest.approx(1 / 3)


def test_undefined_scores_are_nan():
    def undefined(first, second):
        return {name for name, one in zip(SCORES, values(first, second), strict=True) if math.isnan(one)}

    adjusted = {
        "heuristically_adjusted_positive_jaccard",
        "adjusted_positive_jaccard",
        "adjusted_jaccard",
    }
    overlaps = {"positive_overlap", "adjusted_positive_overlap"}
    rising, low, high = [0.6, 0.7, 0.8], [0.1, 0.2, 0.3], [0.5, 0.5, 0.5]
    assert undefined(low, low[::-1]) == adjusted | overlaps | {"positive_jaccard"}
    assert undefined(rising, rising[::-1]) == adjusted | {"adjusted_positive_overlap"}
    assert undefined(low, rising) == overlaps
    assert undefined(rising, high) == adjusted | {
        "adjusted_positive_overlap",
        "pearson",
        "spearman",
        "kendall",
    }
    assert undefined([], []) == set(SCORES)


def test_adjusted_scores_are_0_on_average_over_all_permutations():
    """Exactly: the mean over all orders of one map. That of S_APJ is above 0; the other scores are not adjusted."""
    first = np.array([0.9, 0.8, 0.6, 0.2, 0.1, 0.1])
    second = np.array([0.7, 0.5, 0.4, 0.3, 0.2, 0.0])
    found = np.mean([values(first, np.array(order)) for order in permutations(second)], axis=0)
    by_name = dict(zip(SCORES, found, strict=True))
    for name in ("adjusted_positive_overlap", "adjusted_jaccard", "pearson", "spearman", "kendall"):
        assert by_name[name] == pytest.approx(0, abs=1e-12)
    assert 0.01 < by_name["adjusted_positive_jaccard"] < 0.1
    assert by_name["positive_overlap"] > 0.4
    assert by_name["positive_jaccard"] > 0.2


def test_adjusted_scores_of_larger_maps_are_0_by_simulation():
    rng = np.random.default_rng(3)
    first = rng.beta(0.5, 2, size=64)
    found = np.array([values(first, rng.permutation(first)) for _ in range(400)])
    means, errors = found.mean(axis=0), found.std(axis=0) / np.sqrt(len(found))
    centred = [SCORES.index(name) for name in ("adjusted_positive_overlap", "adjusted_jaccard", "kendall")]
    assert (np.abs(means[centred]) < 4 * errors[centred]).all()
    assert abs(means[SCORES.index("adjusted_positive_jaccard")]) < 0.02


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (([[1, 2]], [[1], [2]]), "second"),
        (([1, math.nan], [1, 2]), "first"),
        (([1, 2], [1, math.inf]), "second"),
        ((["a"], [1]), "first"),
    ],
)
def test_maps_are_finite_and_of_one_shape(given, field):
    with pytest.raises(InvalidInputError) as caught:
        stability(*given)
    assert caught.value.field == field
    with pytest.raises(InvalidInputError) as caught:
        stability([1], [1], threshold=math.nan)
    assert caught.value.field == "threshold"
