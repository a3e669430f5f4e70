"""The figures that overviews show of a report."""

import pytest

from lifelong_core.entities.entity import read_document
from lifelong_core.entities.populations import CycleFigures, figures_of


def test_figures_are_those_of_the_report() -> None:
    found = figures_of(
        {
            "reasons": [{"code": "gain_too_small", "text": "…"}],
            "assumed_prevalence": [0.7, 0.2, 0.1],
            "prevalence": {"prevalence": [0.5, 0.3, 0.2], "low": [0.4, 0.15, 0.15], "high": [0.6, 0.4, 0.25]},
            "expected_gain": {"current_cost": 0.5, "candidate_cost": 0.4},
            "performance": {"estimates": {"AC": [0.8, None, None], "EC": [0.45, 0.4, 0.5]}},
        }
    )
    assert found.shift is not None
    # The first class loses .1 at least, which the others gain; at most it loses .3, the others gain .2 and .15.
    assert tuple(found.shift) == pytest.approx((0.4, 0.2, 0.65))
    assert (found.expected_cost, found.best_expected_cost, found.reasons) == (0.5, 0.4, ("gain_too_small",))
    assert found.accuracy is not None
    assert found.accuracy.value == 0.8
    assert read_document(found.to_document(), CycleFigures).to_document() == found.to_document()


def test_of_two_classes_the_distance_is_twice_that_of_one() -> None:
    estimate = {"prevalence": [0.4, 0.6], "low": [0.3, 0.55], "high": [0.45, 0.7]}
    found = figures_of({"assumed_prevalence": [0.9, 0.1], "prevalence": estimate}).shift
    assert found is not None
    assert tuple(found) == pytest.approx((1.0, 0.9, 1.2))


def test_without_a_gain_the_cost_is_that_of_the_performance() -> None:
    found = figures_of({"expected_gain": None, "performance": {"estimates": {"EC": [0.45, 0.4, 0.5]}}})
    assert (found.expected_cost, found.best_expected_cost) == (0.45, None)


def test_a_report_without_them_has_no_figures() -> None:
    assert figures_of({"outcome": "keep", "prevalence": None, "performance": None}) == CycleFigures()
