"""Exact test of whether two models err equally often on the same cases, also with dependent cases."""

from dataclasses import dataclass

import numpy as np

from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.scientific import normal_probability

MOST_EXACT = 20_000
"""largest sum of sizes of differences that is convolved exactly; beyond it, the normal limit is as good"""


@dataclass(frozen=True)
class SignFlipTest:
    """Two-sided p-values of the null hypothesis that the difference of each unit is as likely as its negative."""

    exact: float
    """never rejects too often"""
    mid_p: float
    """half of the probability of the observed value is left out: less conservative (Lancaster, 1961)"""


def sign_flip_test(differences: Integers) -> SignFlipTest:
    """Test whether integer differences are symmetric around 0, by all 2^U ways to flip their signs.

    With one difference of -1, 0 or 1 for each case, this is McNemar's exact test (1947) and its mid-p version
    (Fagerland, Lydersen and Laake, 2013). With the sum of these over each group of dependent cases, it holds whatever
    the dependence within groups, as long as groups are independent.

    Args:
        differences: shape (U,), of each independent unit.

    Examples:
        >>> found = sign_flip_test(np.array([1] * 9 + [-1]))
        >>> round(found.exact, 6), round(found.mid_p, 6)
        (0.021484, 0.011719)
        >>> sign_flip_test(np.array([0, 0]))
        SignFlipTest(exact=1.0, mid_p=1.0)
    """
    sizes = np.abs(differences[differences != 0])
    if not sizes.size:
        return SignFlipTest(1.0, 1.0)
    observed, largest = abs(int(differences.sum())), int(sizes.sum())
    if largest > MOST_EXACT:
        return _normal(observed, float((sizes.astype(np.float64) ** 2).sum()))
    # The sum of the positive sizes after random flips; the total is twice this less `largest`.
    shares = _distribution(sizes)
    totals = np.abs(2 * np.arange(shares.size) - largest)
    beyond, at = float(shares[totals > observed].sum()), float(shares[totals == observed].sum())
    return SignFlipTest(min(1.0, beyond + at), min(1.0, beyond + at / 2))


def _distribution(sizes: Integers) -> Floats:
    """Probabilities of the sum of a random half of the sizes, shape (sum + 1,)."""
    shares = np.ones(1)
    for size, count in zip(*np.unique(sizes, return_counts=True), strict=True):
        own = np.zeros(size * count + 1)
        own[::size] = _binomial(int(count))
        shares = np.convolve(shares, own)
    return shares


def _binomial(count: int) -> Floats:
    """Probabilities of 0..count heads of fair coins."""
    steps = np.log(np.arange(1, count + 1))
    factorial = np.concatenate([[0.0], np.cumsum(steps)])
    logarithms = factorial[-1] - factorial - factorial[::-1] - count * np.log(2)
    shares = np.exp(logarithms)
    return shares / shares.sum()


def _normal(observed: int, variance: float) -> SignFlipTest:
    p = 2 * float(normal_probability(-observed / np.sqrt(variance)))
    return SignFlipTest(min(1.0, p), min(1.0, p))
