"""Changed decisions: counts by class and direction, the costly cases, and the test with groups."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from lifelong_core.promotion import decision_changes
from lifelong_core.promotion.decision_changes import DecisionChanges, sign_flip_test
from lifelong_core.values.arrays import Floats, Integers

COSTS = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [9.0, 3.0, 0.0]])
LABELS = np.array([0, 0, 1, 2, 2, 2, 1, 0])
CURRENT = np.array([0, 1, 1, 0, 2, 2, 2, 0])
NEW = np.array([0, 0, 0, 1, 2, 0, 1, 0])


def sure(decisions: Integers) -> Floats:
    return np.where(np.arange(3) == decisions[:, None], 0.8, 0.1)


def changes(*, unit: Integers | None = None, names: list[str] | None = None) -> DecisionChanges:
    return DecisionChanges.of(
        LABELS,
        (NEW, sure(NEW)),
        (CURRENT, sure(CURRENT)),
        costs=COSTS,
        unit=np.arange(8) if unit is None else unit,
        is_grouped=unit is not None,
        names=names,
    )


def test_they_are_counted_by_true_class_and_direction() -> None:
    found = changes()
    assert (found.samples, found.changed) == (8, 5)
    counts = [(one.samples, one.corrected, one.broken, one.other) for one in found.by_class]
    assert counts == [(3, 1, 0, 0), (2, 1, 1, 0), (3, 0, 1, 1)]
    kinds = {(one.class_index, one.current, one.new): (one.count, one.cost_change) for one in found.kinds}
    assert kinds == {
        (0, 1, 0): (1, -1.0),
        (1, 1, 0): (1, 1.0),
        (1, 2, 1): (1, -1.0),
        (2, 0, 1): (1, -6.0),
        (2, 2, 0): (1, 9.0),
    }


def test_the_most_costly_come_first_by_name() -> None:
    found = changes(names=[f"case {row}" for row in range(8)])
    assert [(one.name, one.cost_change) for one in found.worse] == [("case 5", 9.0), ("case 2", 1.0)]
    assert (found.better[0].name, found.better[0].cost_change) == ("case 3", -6.0)
    assert len(found.better) == 3
    first = found.worse[0]
    assert (first.row, first.class_index, first.current, first.new) == (5, 2, 2, 0)
    assert (first.new_confidence, first.current_confidence) == pytest.approx((0.8, 0.8))
    assert changes().worse[0].name is None


def test_a_change_between_equal_costs_is_named_too() -> None:
    labels, current, new = np.array([1, 2]), np.array([0, 2]), np.array([2, 2])
    found = DecisionChanges.of(
        labels, (new, sure(new)), (current, sure(current)), costs=COSTS, unit=np.arange(2), is_grouped=False
    )
    assert [one.row for one in found.equal] == [one.row for one in found.cases] == [0]


def test_only_the_largest_changes_of_many_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_changes, "MOST_CASES", 3)
    monkeypatch.setattr(decision_changes, "MOST_KINDS", 2)
    found = changes()
    assert [one.cost_change for one in found.cases] == [9.0, 1.0, -6.0]
    assert (len(found.kinds), found.changed) == (2, 5)


def test_mcnemar_is_over_cases_or_over_groups() -> None:
    found = changes().mcnemar
    assert (found.corrected, found.broken, found.groups) == (2, 2, None)
    assert found.exact == pytest.approx(stats.binomtest(2, 4).pvalue)
    grouped = changes(unit=np.array([0, 1, 2, 3, 3, 2, 1, 0])).mcnemar
    # Sums by group: 0, 2, -2, 0: a fair coin for each of two groups.
    assert (grouped.corrected, grouped.broken, grouped.groups) == (2, 2, 4)
    assert (grouped.exact, grouped.mid_p) == pytest.approx((1.0, 0.75))


def test_an_abstention_is_wrong_and_has_its_cost() -> None:
    costs = np.hstack([COSTS, np.full((3, 1), 0.5)])
    labels, current, new = np.array([0, 2]), np.array([0, 0]), np.array([3, 3])
    found = DecisionChanges.of(
        labels, (new, sure(new)), (current, sure(current)), costs=costs, unit=np.arange(2), is_grouped=False
    )
    assert [one.cost_change for one in found.worse] == [0.5]
    assert [one.cost_change for one in found.better] == [-8.5]
    assert (found.mcnemar.corrected, found.mcnemar.broken) == (0, 1)
    assert found.by_class[2].other == 1


def test_equal_decisions_change_nothing() -> None:
    found = DecisionChanges.of(
        LABELS, (NEW, sure(NEW)), (NEW, sure(NEW)), costs=COSTS, unit=np.arange(8), is_grouped=False
    )
    assert (found.changed, found.kinds, found.cases) == (0, (), ())
    assert found.mcnemar.exact == 1.0


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
    monkeypatch.setattr(decision_changes, "MOST_EXACT", 1000)
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
