"""Figures of a recorded cycle for the exporter."""

import math
from collections.abc import Sequence

import numpy as np

from lifelong_core.deploy import AdaptationReport, ExpectedGain, ExpectedProbabilityGain
from lifelong_core.deploy.criterion.expected_criterion import ExpectedCriterion
from lifelong_core.deploy.performance.estimate import PerformanceEstimate
from lifelong_core.store.cycles.records import Cycle
from lifelong_monitor.cycle.reports import Inputs, inputs_of, readable_report_of
from lifelong_monitor.cycle.wanted_estimates import WantedEstimate
from lifelong_monitor.exporter.status import (
    AssumptionFigures,
    CycleFigures,
    EstimatedFigure,
    EvidenceFigures,
    GainFigures,
    PerformanceFigures,
)


def extract_figures(
    cycle: Cycle,
    serving_version: int | None,
    *,
    report: AdaptationReport | None = None,
    inputs: Inputs | None = None,
) -> CycleFigures:
    """The figures of a cycle; only outcome and size of the window where its report cannot be read.

    Args:
        cycle: as recorded.
        serving_version: the head that serves now: evidence against another one is not shown as evidence against it.
        report: of the cycle; None: it is read from the record.
        inputs: of the cycle; None: they are read from the record.
    """
    report = report or readable_report_of(cycle)
    if report is None:
        return CycleFigures(cycle.outcome, cycle.window_samples)
    inputs = inputs or inputs_of(cycle)
    estimate = report.prevalence
    return CycleFigures(
        outcome=cycle.outcome,
        window_samples=cycle.window_samples,
        quarantined=inputs.quarantined or 0,
        prevalence=None if estimate is None else estimate.prevalence,
        low=None if estimate is None else estimate.low,
        high=None if estimate is None else estimate.high,
        shift_l1=(
            None if estimate is None else float(np.abs(estimate.prevalence - report.assumed_prevalence).sum())
        ),
        changed_at=report.change_points[-1].changed_at if report.change_points else None,
        evidence=_evidence(report) if cycle.head_version == serving_version else None,
        assumption=_assumption(report),
        gain=_gain(report.expected_gain),
        probability_gain=_gain(report.expected_probability_gain),
        worst_case_cost_increase=report.worst_case_cost_increase,
        performance=_performance(report.performance, inputs.wanted),
        candidate_performance=_performance(report.candidate_performance, inputs.wanted),
        criteria=_criteria(report),
        missed_cycles=inputs.missed_cycles,
    )


def _criteria(report: AdaptationReport) -> dict[str, ExpectedCriterion]:
    """What the rules of the judged head and of the head to swap in will reach, by digest."""
    found = {report.head_digest: report.criterion}
    if report.candidate is not None:
        found[report.candidate.digest] = report.candidate_criterion
    return {digest: one for digest, one in found.items() if one is not None}


def _performance(
    estimate: PerformanceEstimate | None, wanted: Sequence[WantedEstimate]
) -> PerformanceFigures | None:
    if estimate is None:
        return None
    return PerformanceFigures(
        head_digest=estimate.head_digest,
        method=estimate.method,
        metrics=tuple(
            EstimatedFigure(
                one.metric, one.class_index, *estimate.estimates[one.key], one.threshold, one.judge(estimate)
            )
            for one in wanted
            if one.key in estimate.estimates
        ),
        validated_error=estimate.validated_error,
        warnings=tuple(warning.code for warning in estimate.warnings),
    )


def _evidence(report: AdaptationReport) -> EvidenceFigures | None:
    if report.evidence is None:
        return None
    return EvidenceFigures(
        log_e_value=report.evidence.log_e_value,
        alarm=math.log(report.policy.average_run_length),
        samples=report.evidence.samples,
    )


def _assumption(report: AdaptationReport) -> AssumptionFigures | None:
    test = report.assumption_test
    return None if test is None else AssumptionFigures(test.p_value, test.level)


def _gain(gain: ExpectedGain | ExpectedProbabilityGain | None) -> GainFigures | None:
    return None if gain is None else GainFigures(gain.value, gain.low, gain.high)
