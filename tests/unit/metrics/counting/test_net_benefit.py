import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.metrics.counting.confusion import confusion_matrix
from lifelong_core.metrics.counting.cost import (
    decision_curve,
    net_benefit,
    net_benefit_from_probabilities,
)
from lifelong_core.metrics.counting.multiclass import expected_cost
from lifelong_core.values.errors import InvalidInputError
from tests.unit.metrics.counting_cases import confusions
from tests.unit.metrics.labelled_cases import labelled, simulated


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@given(confusions(classes=2, abstaining=False), st.floats(0, 0.99))
def test_is_what_is_saved_of_the_cost_of_never_finding_the_class(confusion, threshold):
    """NB(t) = P(class) - EC with costs of 1 for a false negative and t / (1 - t) for a false positive."""
    if not confusion.any():
        assert np.isnan(net_benefit(confusion, threshold=threshold)).all()
        return
    rate = threshold / (1 - threshold)
    prevalence = confusion.sum(axis=1) / confusion.sum()
    expected = [prevalence[k] - expected_cost(confusion, costs) for k, costs in enumerate(costs_of(rate))]
    same(net_benefit(confusion, threshold=threshold), expected)


def costs_of(rate):
    return [[0, 1], [rate, 0]], [[0, rate], [1, 0]]


@given(labelled(), st.sampled_from([0, 0.1, 0.25, 0.5, 0.75]))
def test_probabilities_are_decided_at_the_threshold(cases, threshold):
    """From the threshold on, so that an equal probability is positive."""
    labels, probabilities = cases
    found = net_benefit_from_probabilities(labels, probabilities, threshold=threshold)
    for k in range(probabilities.shape[1]):
        decisions = (probabilities[:, k] >= threshold).astype(int)
        confusion = confusion_matrix(labels == k, decisions, classes=2)
        same(found[k], net_benefit(confusion, threshold=threshold)[1])


@given(labelled(), st.booleans())
def test_the_curve_holds_the_net_benefits(cases, chosen):
    labels, probabilities = cases
    thresholds = [0.75, 0, 0.2, 0.5] if chosen else None
    curve = decision_curve(labels, probabilities, positive=1, thresholds=thresholds)
    assert curve.thresholds.tolist() == (thresholds if chosen else [i / 100 for i in range(100)])
    everybody = np.tile([0.0, 1.0], (len(labels), 1))
    some = slice(None) if chosen else slice(3, None, 12)
    values = (curve.thresholds[some], curve.net_benefit[some], curve.treat_all[some])
    for threshold, found, treated in zip(*values, strict=True):
        expected = net_benefit_from_probabilities((labels == 1) * 1, everybody, threshold=threshold)
        same(treated, expected[1])
        same(found, net_benefit_from_probabilities(labels, probabilities, threshold=threshold)[1])


def test_treating_everybody_is_as_good_as_possible_without_a_price():
    labels, probabilities = simulated(200)
    curve = decision_curve(labels, probabilities, positive=0)
    assert curve.net_benefit[0] == curve.treat_all[0] == (labels == 0).mean()


def test_a_calibrated_model_is_better_than_treating_all_or_nobody():
    labels, probabilities = simulated(20_000, classes=2)
    curve = decision_curve(labels, probabilities, positive=1, thresholds=np.arange(5, 95) / 100)
    assert (curve.net_benefit > np.maximum(curve.treat_all, 0)).all()


def test_is_undefined_at_one_and_without_samples():
    assert np.isnan(net_benefit([[4, 1], [2, 3]], threshold=1)).all()
    assert np.isnan(net_benefit_from_probabilities([0], [[0.5, 0.5]], threshold=1)).all()
    nothing = np.empty((0, 2))
    assert np.isnan(net_benefit_from_probabilities([], nothing, threshold=0.5)).all()
    curve = decision_curve([], nothing, positive=1)
    assert np.isnan(curve.net_benefit).all()
    assert np.isnan(curve.treat_all).all()
    last = decision_curve([0, 1], [[0.5, 0.5], [0.5, 0.5]], positive=1, thresholds=[0.5, 1])
    assert np.isnan(last.net_benefit).tolist() == np.isnan(last.treat_all).tolist() == [False, True]


@pytest.mark.parametrize("threshold", [-0.1, 1.1, np.nan])
def test_thresholds_are_probabilities(threshold):
    for call in (
        lambda: net_benefit([[1, 0], [0, 1]], threshold=threshold),
        lambda: net_benefit_from_probabilities([0], [[0.5, 0.5]], threshold=threshold),
    ):
        with pytest.raises(InvalidInputError) as caught:
            call()
        assert caught.value.field == "threshold"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"positive": 2}, "positive"),
        ({"positive": 1, "thresholds": [[0.1]]}, "thresholds"),
        ({"positive": 1, "thresholds": [2]}, "thresholds"),
        ({"positive": 1, "thresholds": "many"}, "thresholds"),
    ],
)
def test_bad_arguments_are_named(arguments, field):
    with pytest.raises(InvalidInputError) as caught:
        decision_curve([0, 1], [[0.5, 0.5], [0.1, 0.9]], **arguments)
    assert caught.value.field == field


def test_another_population_keeps_the_rates_and_changes_the_shares():
    """Remark 2.58, and the same cases repeated until they have the shares."""
    rng = np.random.default_rng(3)
    labels, probabilities = np.arange(60) % 3, rng.dirichlet(np.ones(3), size=60)
    times = np.array([5, 3, 2])
    repeated = np.repeat(np.arange(60), times[labels])
    decided = np.where(probabilities[:, 1] >= 0.3, 1, 0)
    confusion = confusion_matrix(labels, decided, classes=3)
    rates = np.array([(decided[labels == true] == 1).mean() for true in range(3)])
    wanted = 0.3 * rates[1] - (0.5 * rates[0] + 0.2 * rates[2]) * 0.3 / 0.7
    shares = times / times.sum()
    assert net_benefit(confusion, threshold=0.3, prevalence=shares)[1] == pytest.approx(wanted)
    found = decision_curve(labels, probabilities, positive=1, prevalence=shares)
    same = decision_curve(labels[repeated], probabilities[repeated], positive=1)
    np.testing.assert_allclose(found.net_benefit, same.net_benefit, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.treat_all, same.treat_all, rtol=1e-9, atol=1e-12)
    assert found.net_benefit[30] == pytest.approx(wanted)


def test_a_class_of_the_population_without_a_case_leaves_it_undefined():
    assert np.isnan(net_benefit([[4, 1], [0, 0]], threshold=0.2, prevalence=[0.5, 0.5])).all()
    assert net_benefit([[4, 1], [0, 0]], threshold=0.2, prevalence=[1, 0])[0] == pytest.approx(0.8)
    curve = decision_curve([0, 0], [[0.5, 0.5]] * 2, positive=1, prevalence=[0.5, 0.5])
    assert np.isnan(curve.net_benefit).all()
