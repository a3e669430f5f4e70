import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy import PrevalenceEstimate
from lifelong_core.deploy.performance.labelled.prevalence_evidence import with_labels
from lifelong_core.values.errors import InvalidInputError


def estimate(prevalence=(0.5, 0.3, 0.2), size=400, freedom=300.0):
    centre = np.array(prevalence)
    covariance = (np.diag(centre) - np.outer(centre, centre)) / size
    return PrevalenceEstimate(
        prevalence=centre,
        low=np.zeros(3),
        high=np.ones(3),
        confidence=0.95,
        n=1000,
        effective_n=900.0,
        method="KDEyML",
        covariance=covariance,
        degrees_of_freedom=np.full(3, freedom),
    )


def test_without_labels_nothing_changes():
    assert with_labels(estimate(), []) == estimate()


def test_with_very_many_labels_it_is_their_class_shares():
    labels = np.repeat([0, 1, 2], [510_000, 290_000, 200_000])
    found = with_labels(estimate(), labels, propensities=np.ones(labels.size))
    assert found.prevalence == pytest.approx([0.51, 0.29, 0.2], abs=2e-4)
    assert np.diag(found.covariance) == pytest.approx(
        np.array([0.51 * 0.49, 0.29 * 0.71, 0.16]) / 1e6, rel=0.01
    )
    assert found.cautions == ()


def test_the_weights_are_the_inverse_variances():
    """A binary task in a corner of the three classes: the closed form of two independent estimates of one share."""
    found = with_labels(
        estimate((0.6, 0.4, 0.0), 100), np.repeat([0, 1], [50, 50]), propensities=np.ones(100)
    )
    own, labels = 0.24 / 100, 0.25 / 99 + 0.24 / 100**2
    weight = own / (own + labels)
    assert found.prevalence[0] == pytest.approx(0.6 - 0.1 * weight)
    assert found.covariance[0, 0] == pytest.approx(own * labels / (own + labels))


@given(
    counts=st.lists(st.integers(0, 40), min_size=3, max_size=3),
    shares=st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda three: sum(three) > 0.01),
    known=st.booleans(),
)
def test_the_result_is_a_prevalence_with_intervals_that_never_widen_by_agreeing_labels(counts, shares, known):
    labels = np.repeat([0, 1, 2], counts)
    centre = np.array(shares) / sum(shares)
    start = estimate(centre)
    found = with_labels(start, labels, propensities=np.full(labels.size, 0.1) if known else None)
    assert found.prevalence.sum() == pytest.approx(1)
    assert (found.prevalence >= 0).all()
    assert (found.low <= found.prevalence + 1e-9).all()
    assert (found.prevalence <= found.high + 1e-9).all()
    if not any("different" in caution for caution in found.cautions):
        assert (np.diag(found.covariance) <= np.diag(start.covariance) + 1e-12).all()


def test_contradicting_labels_replace_the_estimate_only_if_their_selection_is_known():
    labels = np.repeat([0, 1, 2], [10, 20, 70])
    unknown = with_labels(estimate(), labels)
    assert (unknown.prevalence == estimate().prevalence).all()
    assert "left out" in unknown.cautions[-1]
    known = with_labels(estimate(), labels, propensities=np.full(100, 0.2))
    assert known.prevalence == pytest.approx([0.1, 0.2, 0.7])
    assert "different prevalences" in known.cautions[-1]


def test_labels_of_unknown_selection_are_a_caution():
    found = with_labels(estimate(), np.repeat([0, 1, 2], [50, 30, 20]))
    assert len(found.cautions) == 1


def test_an_estimate_of_unknown_spread_gives_way_to_the_labels():
    found = with_labels(estimate(freedom=0.0), np.repeat([0, 1, 2], [20, 50, 30]), propensities=np.ones(100))
    assert found.prevalence == pytest.approx([0.2, 0.5, 0.3])


def test_groups_count_once():
    labels = np.repeat([0, 0, 1, 2, 0, 1, 0, 2, 1, 0], 10)
    groups = np.repeat(np.arange(10), 10)
    alone, together = (with_labels(estimate(), labels, groups=keys) for keys in (None, groups))
    assert together.covariance[0, 0] > alone.covariance[0, 0]
    assert together.effective_n == pytest.approx(910)


def test_intervals_cover_the_prevalence():
    rng = np.random.default_rng(0)
    truth, covered = np.array([0.5, 0.3, 0.2]), []
    for _ in range(300):
        start = estimate(rng.multinomial(400, truth) / 400)
        found = with_labels(start, rng.choice(3, size=60, p=truth), propensities=np.full(60, 0.1))
        covered.append((found.low <= truth) & (truth <= found.high))
    assert np.mean(covered) >= 0.92


def test_errors_name_the_field():
    with pytest.raises(InvalidInputError, match="labels"):
        with_labels(estimate(), [3])
    with pytest.raises(InvalidInputError, match="propensities"):
        with_labels(estimate(), [0], propensities=[0])
