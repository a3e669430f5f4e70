"""Settings that nearly always are a mistake are taken only with a reason."""

import numpy as np
import pytest

from lifelong_core.configuration.plausibility import check_costs, check_normalisation
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing


@pytest.mark.parametrize(
    "costs",
    [
        [[1, 0], [0, 5]],
        [[0, 1], [2, 3]],
        [[1, -1], [-5, 5]],
        [[0, 1, -1], [5, 0, 1]],
        [[0, 0], [0, 0]],
        [[0, 0], [5, 0]],
        [[0, 1, 0], [5, 0, 0]],
    ],
    ids=["gains", "one row", "signs", "abstention", "no costs", "one decision is free", "free abstention"],
)
def test_costs_that_reward_wrong_decisions_need_a_reason(costs):
    costs = np.array(costs, float)
    with pytest.raises(InvalidInputError, match="costs: ") as refused:
        check_costs(costs)
    assert "--force-because" in refused.value.hint
    assert check_costs(costs, force_reason="a test")["force_reason"] == "a test"
    with pytest.raises(InvalidInputError, match="force_reason"):
        check_costs(costs, force_reason=" ")


@pytest.mark.parametrize(
    "costs",
    [
        [[0, 1], [5, 0]],
        [[-1, 0], [0, -5]],
        [[0, 0, 1], [0, 0, 1], [1, 1, 0]],
        [[0, 1, 0.2], [5, 0, 0.2]],
        [[0, 1, 9], [5, 0, 9]],
    ],
    ids=["plain", "a right one pays", "two alike", "abstention", "useless abstention"],
)
def test_plausible_costs_need_no_reason(costs):
    assert check_costs(np.array(costs, float)) == {}


@pytest.mark.parametrize(
    ("mean", "deviation", "field"),
    [
        ([123.675, 116.28, 103.53], [58.395, 57.12, 57.375], "mean"),
        ([-0.485, -0.456, -0.406], [0.229, 0.224, 0.225], "mean"),
        ([0, 0, 0], [255, 255, 255], "standard_deviation"),
        ([0.485, 0.456, 0.406], [58.395, 57.12, 57.375], "standard_deviation"),
        ([0.485, 0.456, 0.406], [0.0009, 0.0009, 0.0009], "standard_deviation"),
    ],
)
def test_a_normalisation_of_another_scale_needs_a_reason(mean, deviation, field):
    document = Preprocessing.model_validate({"mean": mean, "standard_deviation": deviation})
    with pytest.raises(InvalidInputError, match=f"preprocessing.{field}: .*255"):
        check_normalisation(document)
    assert check_normalisation(document, force_reason="a test")


@pytest.mark.parametrize(
    ("mean", "deviation"), [(0, 1), (0.5, 0.5), (0.485, 0.229), (0, 1 / 255), (0.485, 1 / 255), (1, 1)]
)
def test_a_plausible_normalisation_needs_no_reason(mean, deviation):
    document = Preprocessing.model_validate({"mean": [mean] * 3, "standard_deviation": [deviation] * 3})
    assert check_normalisation(document) == {}
    assert check_normalisation(None) == {}
