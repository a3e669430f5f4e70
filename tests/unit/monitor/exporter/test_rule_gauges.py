"""Gauges of the decision rule's metric: of the head that serves, expected and realised."""

from dataclasses import replace

import numpy as np
import pytest

from lifelong_core.deploy import fit_head
from lifelong_core.deploy.criterion.expected_criterion import ExpectedCriterion
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.entities.performance import RealisedRuleMetric
from lifelong_monitor.cycle.reports import Inputs
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.exporter.status import PopulationStatus, ServingHead
from tests.unit import performance_samples
from tests.unit.monitor.exporter import statuses
from tests.unit.monitor.exporter.statuses import NOON
from tests.unit.monitor.population import BALANCED, CLASS_NAMES, COSTS, draw

EXPECTED = ExpectedCriterion("PPV", 0.72, 0.66, 0.78, 0.95, 0.8, True, 0.41, 300, None)
REALISED = RealisedRuleMetric(
    3, "precision of malignant at least 0.8", "PPV", "malignant", 90, EstimatedMetric(0.7, 0.6, 0.79), 0.8
)
RULED = replace(statuses.EMPTY, criterion=EXPECTED)
CANDIDATE = fit_head(draw(BALANCED, 300, seed=1), COSTS, class_names=CLASS_NAMES)
JUDGED = replace(
    statuses.JUDGED,
    head=ServingHead(3, NOON, np.array([0.5, 0.5]), digest="serving", rule_class="malignant"),
    report=RULED,
    inputs=Inputs(1, "MLLS", missed_cycles=2),
    performance=replace(performance_samples.comparison(), rule_metric=REALISED),
)
ROLE = {"model": "m@1", "environment": "clinic", "role": "promoted"}


def shown(exporter: Exporter, status: PopulationStatus, name: str, **labels: str) -> float | None:
    exporter.show(status)
    named = {"metric": "PPV", "class": "malignant"} | labels if name != "missed_cycles" else {}
    return exporter.registry.get_sample_value(f"lifelong_decision_rule_{name}", ROLE | named)


def test_value_bounds_target_and_cut_off_are_metrics_of_their_own(exporter: Exporter) -> None:
    expected = {
        "expected": 0.72,
        "expected_low": 0.66,
        "expected_high": 0.78,
        "target": 0.8,
        "reachable": 1.0,
        "cut_off": 0.41,
        "missed_cycles": 2.0,
        "realised": 0.7,
        "realised_low": 0.6,
        "realised_high": 0.79,
    }
    assert {name: shown(exporter, JUDGED, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("metric", "value", "low", "high", "target", "reached"),
    [
        ("PPV", 0.81, 0.7, 0.9, 0.8, 1),
        ("PPV", 0.79, 0.7, 0.8, 0.8, 0.5),
        ("PPV", 0.7, 0.6, 0.79, 0.8, 0),
        ("PPR", 0.09, 0.05, 0.12, 0.1, 1),
        ("PPR", 0.11, 0.1, 0.12, 0.1, 0.5),
        ("PPR", 0.2, 0.11, 0.3, 0.1, 0),
        ("F_beta", 0.2, 0.1, 0.3, None, None),
    ],
)
def test_a_target_is_missed_where_the_whole_interval_is_on_the_wrong_side(
    exporter: Exporter,
    metric: str,
    value: float,
    low: float,
    high: float,
    target: float | None,
    reached: float | None,
) -> None:
    expected = replace(EXPECTED, metric=metric, value=value, low=low, high=high, target=target)
    realised = replace(REALISED, metric=metric, value=EstimatedMetric(value, low, high), target=target)
    status = replace(
        JUDGED,
        report=replace(RULED, criterion=expected),
        performance=replace(performance_samples.comparison(), rule_metric=realised),
    )
    for by in ("estimate", "labels"):
        assert shown(exporter, status, "reached", metric=metric, by=by) == reached
    assert shown(exporter, status, "reachable", metric=metric) == (None if target is None else 1)


def test_after_a_swap_the_figures_are_those_of_the_new_head_and_labels_of_the_old_one_are_gone(
    exporter: Exporter,
) -> None:
    criterion = replace(EXPECTED, value=0.81, high=0.9, cut_off=0.6)
    head = replace(JUDGED.head, version=4, digest=CANDIDATE.digest)  # type: ignore[type-var]
    report = replace(RULED, outcome="swap", candidate=CANDIDATE, candidate_criterion=criterion)
    swapped = replace(JUDGED, head=head, report=report)
    assert shown(exporter, swapped, "cut_off") == 0.6
    assert shown(exporter, swapped, "reached", by="estimate") == 1
    assert shown(exporter, swapped, "reached", by="labels") is None
    assert shown(exporter, swapped, "realised") is None


def test_a_head_of_least_cost_or_that_no_cycle_judged_has_no_series(exporter: Exporter) -> None:
    least_cost = replace(JUDGED, report=statuses.EMPTY, performance=None)
    by_a_person = replace(JUDGED, head=replace(JUDGED.head, digest="other"), performance=None)  # type: ignore[type-var]
    for name in ("expected", "target", "reached", "cut_off"):
        assert shown(exporter, least_cost, name, **({"by": "estimate"} if name == "reached" else {})) is None
        assert shown(exporter, by_a_person, name, **({"by": "estimate"} if name == "reached" else {})) is None
    assert shown(exporter, least_cost, "missed_cycles") is None
