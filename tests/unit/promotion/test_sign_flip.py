"""The exact test: against binomial tails, all flips one by one, and its level under dependence."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from lifelong_core.promotion import decision_changes as sign_flip
from lifelong_core.promotion.decision_changes import sign_flip_test


@pytest.mark.parametrize(("corrected", "broken"), [(9, 1), (0, 6), (7, 7), (3, 12), (1, 0), (300, 260)])
def test_with_single_cases_it_is_mcnemars(corrected: int, broken: int) -> None:
    found = sign_flip_test(np.array([1] * corrected + [0] * 11 + [-1] * broken))
    fewer, total = min(corrected, broken), corrected + broken
    tail, own = stats.binom.cdf(fewer, total, 0.5), stats.binom.pmf(fewer, total, 0.5)
    assert found.exact == pytest.approx(min(1.0, 2 * tail), rel=1e-9)
    assert found.exact == pytest.approx(stats.binomtest(corrected, total, 0.5).pvalue, rel=1e-9)
    mid_p = 1 - own / 2 if corrected == broken else 2 * tail - own
    assert found.mid_p == pytest.approx(mid_p, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_with_groups_it_counts_all_flips(seed: int) -> None:
    differences = np.random.default_rng(seed).integers(-4, 5, size=9)
    flips = np.array(list(product((-1, 1), repeat=9))) @ np.abs(differences)
    observed = abs(differences.sum())
    found = sign_flip_test(differences)
    assert found.exact == pytest.approx((np.abs(flips) >= observed).mean())
    at = (np.abs(flips) == observed).mean()
    assert found.mid_p == pytest.approx((np.abs(flips) > observed).mean() + at / 2)


def test_very_many_cases_take_the_normal_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = np.array([1] * 5200 + [-1] * 5000 + [2] * 30)
    exact = sign_flip_test(differences)
    monkeypatch.setattr(sign_flip, "MOST_EXACT", 1000)
    assert sign_flip_test(differences).mid_p == pytest.approx(exact.mid_p, rel=0.02)


def test_the_level_holds_for_dependent_cases_where_that_of_single_cases_does_not() -> None:
    """Under the null hypothesis: groups of six cases that are mostly won or lost together."""
    rng = np.random.default_rng(0)
    together, alone = 0, 0
    for _ in range(600):
        sums = rng.choice([-6, -5, 0, 5, 6], size=25)
        together += sign_flip_test(sums).mid_p < 0.05
        cases = np.concatenate([np.full(abs(one), np.sign(one)) for one in sums])
        alone += sign_flip_test(cases.astype(np.int64)).mid_p < 0.05
    assert together / 600 < 0.08
    assert alone / 600 > 0.2
