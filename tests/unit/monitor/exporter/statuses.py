"""Statuses of a population whose last cycle has a report that the tests write."""

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np

from lifelong_core.deploy import AdaptationContext, AdaptationPolicy, AdaptationReport, PrevalenceEstimate
from lifelong_core.deploy.adaptation.gain import ExpectedGain, ExpectedProbabilityGain
from lifelong_core.deploy.adaptation.reasons import Reason
from lifelong_core.deploy.label_shift.result import AssumptionTest
from lifelong_core.deploy.performance.performance_estimate import (
    EstimatedMetric,
    PerformanceEstimate,
    PerformanceWarning,
)
from lifelong_core.deploy.shift.change_points import ChangePoint
from lifelong_core.deploy.shift.evidence import ShiftEvidence
from lifelong_core.entities.cycles import Cycle
from lifelong_monitor.cycle.estimates import WantedEstimate
from lifelong_monitor.cycle.reports import Inputs
from lifelong_monitor.exporter.status import PopulationStatus, ServingHead

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
SEEN = PopulationStatus("m@1", "clinic", "skin", ("benign", "malignant"), "promoted", first_seen=NOON)
CYCLE = Cycle(
    id=UUID(int=1),
    model_id=1,
    environment="clinic",
    due_at=NOON,
    started_at=NOON,
    finished_at=NOON,
    outcome="refuse",
    report={},
    window_samples=800,
    log_position=1,
    head_version=3,
    published_version=None,
)


def prevalence(values: Any, *, half: float = 0.05) -> PrevalenceEstimate:
    middle = np.asarray(values, dtype=np.float64)
    return PrevalenceEstimate(
        middle,
        middle - half,
        middle + half,
        0.95,
        800,
        800.0,
        "MLLS",
        np.eye(middle.size),
        np.full(middle.size, 99.0),
    )


def evidence(log_e_value: float, samples: int) -> ShiftEvidence:
    started = ShiftEvidence.start("key", classes=2, bets=20)
    capitals = np.full(started.log_capitals.size, np.logaddexp(0, log_e_value) if log_e_value else 0.0)
    return replace(started, samples=samples, log_capitals=capitals)


def assumption_test(p_value: float) -> AssumptionTest:
    return AssumptionTest(1.0, p_value, 0.01, p_value < 0.01, reliable=True, tests=(), disagreements=())


def gain(value: float, low: float, high: float) -> ExpectedGain:
    return ExpectedGain(value, low, high, low, 1.0, 1.0 - value)


def probability_gain(value: float, low: float, high: float) -> ExpectedProbabilityGain:
    return ExpectedProbabilityGain(value, low, high, 0.0, low, 1.0, 1.0 - value)


def performance(
    head_digest: str,
    estimates: dict[str, tuple[float, float, float]],
    *codes: str,
    validated_error: float | None = None,
) -> PerformanceEstimate:
    return PerformanceEstimate(
        "matched",
        {name: EstimatedMetric(*three) for name, three in estimates.items()},
        np.eye(2) / 2,
        np.array([0.5, 0.5]),
        0.95,
        800,
        800.0,
        validated_error,
        (),
        tuple(PerformanceWarning(code, "A limit.") for code in codes),
        head_digest,
    )


EMPTY = AdaptationReport(
    outcome="keep",
    reasons=(),
    prevalence=None,
    prevalence_without_labels=None,
    change_points=(),
    assumed_prevalence=np.array([0.5, 0.5]),
    shift_test=None,
    evidence=None,
    assumption_test=None,
    pooled=None,
    expected_gain=None,
    expected_probability_gain=None,
    rule_gain=None,
    criterion=None,
    candidate_criterion=None,
    worst_case_cost_increase=None,
    candidate=None,
    performance=None,
    candidate_performance=None,
    policy=AdaptationPolicy(average_run_length=math.exp(12)),
    context=AdaptationContext(),
    seed=0,
    samples=800,
    calibration_digest="",
    quantifier_digest=None,
    head_digest="serving",
    window_digest=None,
)
"""A report that holds no figure."""

REPORT = replace(
    EMPTY,
    prevalence=prevalence([0.9, 0.1]),
    change_points=(ChangePoint(400, 380, 420, 0.8, 0.7, 0.9, datetime(2026, 11, 20, 12, tzinfo=UTC)),),
    evidence=evidence(7.5, 4000),
    assumption_test=assumption_test(0.002),
    reasons=(Reason("prevalence_shifted", "The prevalence has shifted."),),
    expected_gain=gain(0.05, -0.01, 0.12),
    expected_probability_gain=probability_gain(0.04, 0.02, 0.06),
    worst_case_cost_increase=0.25,
    performance=performance(
        "serving",
        {
            "AC": (0.8, 0.7, 0.9),
            "TPR": (0.6, 0.5, 0.7),
            "EC": (1.5, 1.25, 1.75),
            "NPV": (np.nan, np.nan, np.nan),
        },
        "assumption_rejected",
        "calibration_limited",
        "calibration_limited",
        validated_error=0.0125,
    ),
    candidate_performance=performance("new", {"AC": (0.9, 0.85, 0.95)}),
)
WANTED = (
    WantedEstimate("AC", "AC", None, 0.85),
    WantedEstimate("TPR", "TPR", 1, 0.8),
    WantedEstimate("EC", "EC", None, 2.0),
    WantedEstimate("NPV", "PPV", 0, 0.9),
)
JUDGED = replace(
    SEEN,
    head=ServingHead(3, NOON, np.array([0.5, 0.5]), digest="serving"),
    cycle=CYCLE,
    report=REPORT,
    inputs=Inputs(1, "MLLS", quarantined=0, wanted=WANTED),
)
