import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.metrics.counting.one_versus_rest import (
    f_beta,
    fall_out,
    false_discovery_rate,
    false_omission_rate,
    jaccard,
    markedness,
    miss_rate,
    negative_likelihood_ratio,
    negative_predictive_value,
    positive_likelihood_ratio,
    precision,
    sensitivity,
    specificity,
    youden_index,
)
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.counting_cases import confusions


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@given(confusions(abstaining=False))
def test_duality_under_transposition(confusion):
    """Thesis Prop. 2.39 and 2.42."""
    dual = confusion.T
    same(precision(confusion), sensitivity(dual))
    same(negative_predictive_value(confusion), specificity(dual))
    same(false_discovery_rate(confusion), miss_rate(dual))
    same(false_omission_rate(confusion), fall_out(dual))
    same(markedness(confusion), youden_index(dual))
    same(jaccard(confusion), jaccard(dual))
    same(f_beta(confusion), f_beta(dual))
    same(f_beta(confusion, beta=2), f_beta(dual, beta=0.5))


@given(confusions())
def test_complements(confusion):
    """Thesis Remarks 2.17 and 2.36: the same classes are undefined, too."""
    same(miss_rate(confusion), 1 - sensitivity(confusion))
    same(fall_out(confusion), 1 - specificity(confusion))
    same(false_discovery_rate(confusion), 1 - precision(confusion))
    same(false_omission_rate(confusion), 1 - negative_predictive_value(confusion))


@given(confusions())
def test_sums_and_quotients(confusion):
    rates = sensitivity(confusion), specificity(confusion)
    same(youden_index(confusion), sum(rates) - 1)
    same(markedness(confusion), precision(confusion) + negative_predictive_value(confusion) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        same(positive_likelihood_ratio(confusion), rates[0] / fall_out(confusion))
        same(negative_likelihood_ratio(confusion), miss_rate(confusion) / rates[1])


@given(confusions(), st.floats(0.1, 10))
def test_f_beta_is_a_harmonic_mean(confusion, beta):
    """Of Def. 2.44 where that is defined; and F1 = 2 JAC / (1 + JAC)."""
    recalls, precisions, found = sensitivity(confusion), precision(confusion), f_beta(confusion, beta=beta)
    usable = (np.nan_to_num(recalls) > 0) & (np.nan_to_num(precisions) > 0)
    means = (1 + beta**2) / (beta**2 / recalls[usable] + 1 / precisions[usable])
    same(found[usable], means)
    overlaps = jaccard(confusion)
    same(f_beta(confusion), 2 * overlaps / (1 + overlaps))


@given(confusions(classes=2, abstaining=False))
def test_the_rest_of_two_classes_is_the_other(confusion):
    same(specificity(confusion), sensitivity(confusion)[::-1])
    same(negative_predictive_value(confusion), precision(confusion)[::-1])
    assert (np.diff(np.nan_to_num(youden_index(confusion))) == 0).all()


def test_infinite_and_undefined_ratios():
    """scikit-learn says nan for both, MetricsReloaded nan even for a perfect classifier."""
    assert positive_likelihood_ratio([[5, 0], [0, 7]]).tolist() == [np.inf, np.inf]
    assert negative_likelihood_ratio([[0, 1], [1, 9]]).tolist() == [pytest.approx(10 / 9), np.inf]
    assert np.isnan(positive_likelihood_ratio([[0, 10], [0, 90]])).tolist() == [True, False]
    assert np.isnan(negative_likelihood_ratio([[0, 10], [0, 90]])).tolist() == [False, True]


def test_never_a_silent_zero():
    absent = [[5, 0, 0], [0, 4, 0], [0, 0, 0]]
    for metric in (sensitivity, miss_rate, precision, f_beta, jaccard, youden_index, markedness):
        assert np.isnan(metric(absent)).tolist() == [False, False, True]


@pytest.mark.parametrize("beta", [0, -1, np.nan, np.inf])
def test_beta_is_positive(beta):
    with pytest.raises(InvalidInputError) as caught:
        f_beta([[1, 0], [0, 1]], beta=beta)
    assert caught.value.field == "beta"


@pytest.mark.parametrize(("beta", "limit"), [(1e-90, precision), (1e90, sensitivity)])
def test_extreme_betas(beta, limit):
    confusion = [[6, 2, 1], [1, 3, 0], [4, 2, 0]]
    same(f_beta(confusion, beta=beta), limit(confusion))
    assert f_beta([[0, 5], [0, 5]], beta=beta)[0] == 0


def test_abstaining_is_a_decision_against_every_class():
    confusion = [[6, 1, 3], [2, 8, 0]]
    same(sensitivity(confusion), [0.6, 0.8])
    same(specificity(confusion), [0.8, 0.9])
    same(precision(confusion), [6 / 8, 8 / 9])
    same(negative_predictive_value(confusion), [8 / 12, 9 / 11])
