import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lifelong_core.deploy.performance.labelled.sampling import (
    decision_uncertainty,
    draw_sample,
    labelling_probabilities,
)
from lifelong_core.values.errors import InvalidInputError

SCORES = arrays.arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 100, allow_subnormal=False))


@given(scores=SCORES, share=st.floats(0.01, 1), floor=st.floats(0.01, 1))
def test_probabilities_sum_to_the_size_and_keep_the_floor(scores, share, floor):
    size = max(1, int(share * scores.size))
    found = labelling_probabilities(scores, size, floor=floor)
    assert found.sum() == pytest.approx(size)
    assert (found <= 1).all()
    assert (found >= floor * size / scores.size * (1 - 1e-9)).all()


@given(scores=SCORES, share=st.floats(0.01, 1), floor=st.floats(0.01, 1))
def test_probabilities_rise_linearly_with_the_score_until_1(scores, share, floor):
    found = labelling_probabilities(scores, max(1, int(share * scores.size)), floor=floor)
    order = np.argsort(scores)
    assert (np.diff(found[order]) >= -1e-9).all()
    free = (found < 1) & (scores > 1e-3)
    slopes = (found[free] - floor * max(1, int(share * scores.size)) / scores.size) / scores[free]
    assert slopes == pytest.approx(slopes[:1].repeat(slopes.size), rel=1e-5, abs=1e-9)


def test_certain_samples_share_what_the_uncertain_ones_leave():
    assert labelling_probabilities([0, 0, 3, 1], 3).tolist() == [0.5, 0.5, 1, 1]
    assert labelling_probabilities([0, 0, 0, 0], 2).tolist() == [0.5] * 4


def test_the_uncertainty_is_the_standard_deviation_of_the_cost():
    rng = np.random.default_rng(0)
    costs = [[0, 1, 5, 2], [1, 0, 1, 2], [9, 1, 0, 2]]
    posterior = np.array([0.5, 0.3, 0.2])
    drawn = np.array(costs)[rng.choice(3, size=200_000, p=posterior), 0]
    found = decision_uncertainty([posterior, posterior], [0, 3], costs)
    assert found == pytest.approx([drawn.std(), 0], rel=0.01)


def test_samples_are_drawn_with_their_probabilities():
    rng = np.random.default_rng(0)
    probabilities = labelling_probabilities(rng.random(20) ** 4, 7)
    drawn = np.zeros(20)
    for _ in range(20_000):
        chosen = draw_sample(probabilities, rng)
        assert chosen.size == 7
        drawn[chosen] += 1
    errors = np.sqrt(probabilities * (1 - probabilities) / 20_000)
    assert (np.abs(drawn / 20_000 - probabilities) <= 4.5 * errors + 1e-12).all()


@given(
    probabilities=arrays.arrays(np.float64, 30, elements=st.floats(0, 1)),
    strata=arrays.arrays(np.int64, 30, elements=st.integers(0, 3)),
    seed=st.integers(0, 99),
)
def test_each_stratum_gets_its_expected_number(probabilities, strata, seed):
    chosen = draw_sample(probabilities, seed, strata=strata)
    assert np.unique(chosen).size == chosen.size
    for stratum in np.unique(strata):
        expected = probabilities[strata == stratum].sum()
        assert abs((strata[chosen] == stratum).sum() - expected) < 1 + 1e-6


def test_errors_name_the_field():
    for arguments, field in [
        (([-1, 1], 1), "scores"),
        (([], 1), "scores"),
        (([1, 1], 3), "size"),
        (([1, 1], 0), "size"),
    ]:
        with pytest.raises(InvalidInputError) as caught:
            labelling_probabilities(*arguments)
        assert caught.value.field == field
    with pytest.raises(InvalidInputError, match="floor"):
        labelling_probabilities([1, 1], 1, floor=0)
    with pytest.raises(InvalidInputError, match="probabilities"):
        draw_sample([0.5, 1.5], 0)
