import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.metrics.counting.cost import quadratic_costs, zero_one_costs
from lifelong_core.metrics.counting.multiclass import (
    accuracy,
    balanced_accuracy,
    cohen_kappa,
    error_rate,
    expected_cost,
    matthews_correlation,
    weighted_cohen_kappa,
)
from lifelong_core.metrics.counting.one_versus_rest import markedness, precision, sensitivity, youden_index
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.counting_cases import (
    EVERY,
    FUNCTIONS,
    OF_ALL_CLASSES,
    PER_CLASS,
    RANGES,
    STACKED,
    confusions,
)


def same(found, expected, name=""):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=name)


@given(st.data())
def test_a_stack_gives_what_its_matrices_give(data):
    kind = confusions(classes=data.draw(st.integers(2, 3)), abstaining=data.draw(st.booleans()))
    matrices = data.draw(st.lists(kind, min_size=1, max_size=4))
    stack = np.array(matrices)
    for name in EVERY:
        expected = [FUNCTIONS[name](matrix) for matrix in matrices]
        same(STACKED[name](stack), expected, name)
        same(STACKED[name](stack[np.newaxis]), [expected], name)


@given(confusions())
def test_each_keeps_its_range_and_warns_of_nothing(confusion):
    for name in EVERY:
        found, (low, high) = np.asarray(FUNCTIONS[name](confusion)), RANGES[name]
        assert found.shape == ((len(confusion),) if name in PER_CLASS else ()), name
        defined = found[~np.isnan(found)]
        assert (defined >= low - 1e-12).all(), name
        assert (defined <= high + 1e-12).all(), name


@given(confusions(), st.integers(2, 5))
def test_duplicated_data_change_nothing(confusion, times):
    for name in EVERY:
        expected = FUNCTIONS[name](confusion)
        same(FUNCTIONS[name](times * confusion), expected, name)
        same(FUNCTIONS[name](confusion / times), expected, name)


@pytest.mark.parametrize("factor", [1e-290, 1e290])
def test_weights_of_any_size_are_counted(factor):
    confusion = np.array([[5, 2, 1], [1, 6, 0], [0, 2, 3]])
    for name in EVERY:
        same(FUNCTIONS[name](confusion * factor), FUNCTIONS[name](confusion), name)


@given(confusions(abstaining=False), st.randoms())
def test_the_order_of_the_classes_does_not_matter(confusion, random):
    order = list(range(len(confusion)))
    random.shuffle(order)
    for name in sorted(set(EVERY) - {"EC", "WCK"}):  # their costs would have to be reordered too
        found, expected = FUNCTIONS[name](confusion[np.ix_(order, order)]), FUNCTIONS[name](confusion)
        same(found, np.asarray(expected)[order] if name in PER_CLASS else expected, name)


def test_are_undefined_without_samples():
    for name in EVERY:
        assert np.isnan(FUNCTIONS[name](np.zeros((3, 3)))).all(), name


@pytest.mark.parametrize("wrong", [[[1, 2], [3]], [[1, -1], [0, 1]], [[1, np.nan], [0, 1]], [[1, 2]], ["a"]])
def test_refuse_what_is_no_confusion_matrix(wrong):
    for name in sorted(set(EVERY) - {"EC", "WCK"}):  # whose costs are made from the matrix here
        with pytest.raises(InvalidInputError) as caught:
            FUNCTIONS[name](wrong)
        assert caught.value.field == "confusion", name


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
def test_refuse_a_stack_with_a_wrong_entry(wrong):
    stack = np.ones((4, 2, 2))
    stack[2, 0, 1] = wrong
    for name in sorted(OF_ALL_CLASSES):
        with pytest.raises(InvalidInputError):
            STACKED[name](stack)


@given(confusions())
def test_accuracy_and_error_rate_add_up(confusion):
    same(accuracy(confusion) + error_rate(confusion), 1.0 if confusion.any() else np.nan)
    same(error_rate(confusion), expected_cost(confusion, zero_one_costs(*confusion.shape)))


@given(confusions())
def test_balanced_accuracy_is_the_accuracy_of_equally_frequent_classes(confusion):
    """Also: costs of 1 / (C P(i)) for every error give its complement."""
    sizes, classes = confusion.sum(axis=1), len(confusion)
    if not sizes.all():
        assert math.isnan(balanced_accuracy(confusion))
        return
    uniform = np.full(classes, 1 / classes)
    wrong = zero_one_costs(*confusion.shape)
    same(balanced_accuracy(confusion), 1 - expected_cost(confusion, wrong, prevalence=uniform))
    costs = wrong * (sizes.sum() / (classes * sizes))[:, np.newaxis]
    same(balanced_accuracy(confusion), 1 - expected_cost(confusion, costs))


@given(confusions(classes=2, abstaining=False))
def test_two_classes(confusion):
    """BA = (J + 1) / 2, |MCC| = sqrt(J MK) with the sign of J, and MCC by the formula of Prop. 2.51."""
    informedness, marked = youden_index(confusion)[0], markedness(confusion)[0]
    (tp, fn), (fp, tn) = confusion.astype(float)
    same(balanced_accuracy(confusion), (informedness + 1) / 2)
    spread = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    expected = (tp * tn - fp * fn) / np.sqrt(spread) if spread else np.nan
    same(matthews_correlation(confusion), expected)
    if not np.isnan(informedness + marked):
        same(matthews_correlation(confusion), np.sign(informedness) * np.sqrt(informedness * marked))


@given(confusions(abstaining=False))
def test_kappa_of_a_balanced_task(confusion):
    """(C BA - 1) / (C - 1) (thesis Prop. 2.31)."""
    sizes, classes = confusion.sum(axis=1), len(confusion)
    balanced = confusion * (np.lcm.reduce(sizes) // sizes)[:, np.newaxis] if sizes.all() else confusion
    if sizes.all():
        same(cohen_kappa(balanced), (classes * balanced_accuracy(balanced) - 1) / (classes - 1))


@given(confusions(abstaining=False))
def test_matthews_correlation_is_that_of_indicators(confusion):
    """A direct transcription of thesis Def. 2.49."""
    total = confusion.sum()
    if not total:
        return
    prevalence, bias = confusion.sum(axis=1) / total, confusion.sum(axis=0) / total
    spread = (1 - (prevalence**2).sum()) * (1 - (bias**2).sum())
    if (confusion.sum(axis=1) == total).any() or (confusion.sum(axis=0) == total).any():
        assert math.isnan(matthews_correlation(confusion))
    else:
        expected = (np.trace(confusion) / total - prevalence @ bias) / np.sqrt(spread)
        same(matthews_correlation(confusion), expected)


@given(confusions(abstaining=False), st.integers(0, 99))
def test_weighted_kappa_is_what_is_saved_of_the_cost_of_chance(confusion, seed):
    """A direct transcription of thesis Def. 2.30."""
    total = confusion.sum()
    if not total:
        return
    costs = np.random.default_rng(seed).uniform(0.5, 2, size=confusion.shape)
    prevalence, bias = confusion.sum(axis=1) / total, confusion.sum(axis=0) / total
    expected = 1 - (costs * confusion).sum() / total / (costs * np.outer(prevalence, bias)).sum()
    same(weighted_cohen_kappa(confusion, costs), expected)


@given(confusions(abstaining=False))
def test_quadratic_kappa_is_a_concordance(confusion):
    """2 cov / (var + var + (difference of the means)^2) of the class indices."""
    counts = confusion.ravel()
    rows, columns = np.divmod(np.repeat(np.arange(counts.size), counts), len(confusion))
    if rows.size == 0:
        return
    covariance = ((rows - rows.mean()) * (columns - columns.mean())).mean()
    spread = rows.var() + columns.var() + (rows.mean() - columns.mean()) ** 2
    found = weighted_cohen_kappa(confusion, quadratic_costs(len(confusion)))
    if len(set(rows) | set(columns)) == 1:
        assert math.isnan(found)
    else:
        same(found, 2 * covariance / spread)


def test_a_constant_decision_has_no_correlation():
    """It is 0 / 0, where scikit-learn says 0 and torchmetrics something else."""
    assert math.isnan(matthews_correlation([[0, 10], [0, 90]]))
    assert cohen_kappa([[0, 10], [0, 90]]) == 0
    assert math.isnan(cohen_kappa([[0, 0], [0, 7]]))


def test_constant_decisions_by_weights_are_recognised_too():
    """Sums of weights are rounded; what is 0 must stay 0."""
    weights = np.array([[0.0, 0.1, 0.0], [0.0, 0.2, 0.0], [0.0, 0.7, 0.0]])
    assert math.isnan(matthews_correlation(weights))
    assert math.isnan(matthews_correlation(weights.T))
    assert np.isnan(precision(weights)).tolist() == [True, False, True]
    assert np.isnan(sensitivity(weights.T)).tolist() == [True, False, True]


def test_a_kappa_can_be_far_below_minus_one():
    assert weighted_cohen_kappa([[0, 5], [95, 0]], [[0, 1], [0, 0]]) == pytest.approx(-19)
    assert weighted_cohen_kappa([[2, 0], [0, 2]], [[1, -1], [0, 0]]) == -math.inf
    assert math.isnan(weighted_cohen_kappa([[1, 1], [1, 1]], [[0, 1], [-1, 0]]))


def test_abstaining_is_an_error_of_every_class():
    confusion = [[6, 1, 3], [2, 8, 0]]
    assert accuracy(confusion) == 0.7
    assert balanced_accuracy(confusion) == pytest.approx((0.6 + 0.8) / 2)
    assert cohen_kappa(confusion) == pytest.approx(1 - 0.3 / (1 - 0.5 * 0.4 - 0.5 * 0.45))
    expected = (0.7 - 0.5 * 0.4 - 0.5 * 0.45) / math.sqrt(0.5 * (1 - 0.4**2 - 0.45**2 - 0.15**2))
    assert matthews_correlation(confusion) == pytest.approx(expected)
