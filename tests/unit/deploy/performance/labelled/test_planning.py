"""The chosen samples have the stated propensities, and the expected widths are those of simulated labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lifelong_core.deploy.performance.labelled.planning import (
    choose_labels,
    decision_uncertainty,
    draw_sample,
    labelling_probabilities,
)
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.errors import InvalidInputError

COSTS = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [9.0, 3.0, 0.0]])


def window(samples: int, seed: int = 0) -> tuple[Floats, Integers]:
    """Posteriors, most of them nearly certain, and the decisions of lowest expected cost."""
    rng = np.random.default_rng(seed)
    scores = rng.gumbel(size=(samples, 3)) * rng.choice([1.0, 4.0], size=(samples, 1))
    posteriors = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return posteriors, (posteriors @ COSTS).argmin(axis=1)


def test_every_sample_is_chosen_as_often_as_its_propensity_says() -> None:
    posteriors, decisions = window(40)
    counts, draws = np.zeros(40), 2000
    propensities = choose_labels(posteriors, decisions, COSTS, 10).propensities
    for seed in range(draws):
        choice = choose_labels(posteriors, decisions, COSTS, 10, rng=seed)
        assert len(choice.chosen) == len(set(choice.chosen.tolist())) == 10
        counts[choice.chosen] += 1
    errors = counts / draws - propensities
    deviation = np.sqrt(propensities * (1 - propensities) / draws)
    assert np.abs(errors).max() < 5 * deviation.max()
    assert propensities.sum() == pytest.approx(10)
    assert propensities.max() > 3 * propensities.min()


def test_the_order_of_the_chosen_samples_is_random_so_that_the_first_ones_are_a_sample_too() -> None:
    posteriors, decisions = window(30)
    places = np.zeros((30, 6))
    for seed in range(2000):
        chosen = choose_labels(posteriors, decisions, COSTS, 6, rng=seed).chosen
        places[chosen, np.arange(6)] += 1
    often = places[places.sum(axis=1) > 333]
    assert len(often) >= 3
    shares = often / often.sum(axis=1, keepdims=True)
    assert np.abs(shares - 1 / 6).max() < 0.08


def test_samples_with_a_label_are_known_and_not_chosen_again() -> None:
    posteriors, decisions = window(50)
    labelled = np.zeros(50, dtype=bool)
    labelled[[3, 7, 20]] = True
    choice = choose_labels(posteriors, decisions, COSTS, 12, labelled=labelled)
    assert not set(choice.chosen.tolist()) & {3, 7, 20}
    assert choice.propensities[labelled].tolist() == [1, 1, 1]
    assert choice.propensities[~labelled].sum() == pytest.approx(12)


def test_at_most_all_open_samples_are_chosen() -> None:
    posteriors, decisions = window(8)
    labelled = np.arange(8) < 3
    choice = choose_labels(posteriors, decisions, COSTS, 100, labelled=labelled)
    assert sorted(choice.chosen.tolist()) == [3, 4, 5, 6, 7]
    assert choice.propensities.tolist() == [1.0] * 8
    with pytest.raises(InvalidInputError) as refused:
        choose_labels(posteriors, decisions, COSTS, 1, labelled=np.ones(8, dtype=bool))
    assert refused.value.field == "labelled"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"size": 0}, "size"),
        ({"size": 2.5}, "size"),
        ({"labelled": np.zeros(3, dtype=bool)}, "labelled"),
        ({"floor": 0.0}, "floor"),
        ({"confidence": 1.0}, "confidence"),
        ({"decisions": np.zeros(3, dtype=int)}, "decisions"),
    ],
)
def test_illegal_arguments_are_named(changed: dict[str, object], field: str) -> None:
    posteriors, decisions = window(8)
    arguments = {"posteriors": posteriors, "decisions": decisions, "costs": COSTS, "size": 3} | changed
    with pytest.raises(InvalidInputError) as refused:
        choose_labels(**arguments)  # type: ignore[arg-type]
    assert refused.value.field == field


def test_the_expected_widths_are_those_of_simulated_labels() -> None:
    """Horvitz-Thompson difference estimates, transcribed, of windows and labels drawn from the posteriors."""
    size, samples = 60, 600
    planned: list[float] = []
    alone: list[float] = []
    widths: list[tuple[float, float]] = []
    for seed in range(800):
        rng = np.random.default_rng(seed)
        posteriors, decisions = window(samples, seed)
        paid = COSTS.T[decisions]
        labels = (posteriors.cumsum(axis=1) < rng.random((samples, 1))).sum(axis=1).clip(max=2)
        costs = paid[np.arange(samples), labels]
        choice = choose_labels(posteriors, decisions, COSTS, size, rng=rng)
        predicted = (posteriors * paid).sum(axis=1)
        residuals = (costs - predicted)[choice.chosen] / choice.propensities[choice.chosen]
        planned.append(predicted.mean() + residuals.sum() / samples)
        alone.append(costs[rng.choice(samples, size, replace=False)].mean())
        widths.append((choice.expected_width, choice.random_width))
    expected, random = np.mean(widths, axis=0) / (2 * 2.0010)  # t quantile of 59 degrees of freedom
    assert np.std(planned) == pytest.approx(expected, rel=0.1)
    assert np.std(alone) == pytest.approx(random, rel=0.1)
    assert expected < 0.8 * random


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
