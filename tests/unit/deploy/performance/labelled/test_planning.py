"""The chosen samples have the stated propensities, and the expected widths are those of simulated labels."""

import numpy as np
import pytest

from lifelong_core.deploy.performance.labelled.planning import choose_labels
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
