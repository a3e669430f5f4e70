"""The gauges of a population: name, meaning, and how its value follows from the status."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, get_args

from lifelong_core.configuration.policy_fields import MODES
from lifelong_core.deploy import AdaptationReport, PrevalenceEstimate
from lifelong_core.deploy.performance.labelled.agreement import Agreement
from lifelong_core.deploy.shift.size import shift_size
from lifelong_core.entities.cycles import Outcome
from lifelong_core.entities.performance import LabelCheck
from lifelong_core.values.arrays import Floats
from lifelong_monitor.exporter.performance_gauges import PERFORMANCE_GAUGES, Gauge, Reader, Values
from lifelong_monitor.exporter.rule_gauges import RULE_GAUGES
from lifelong_monitor.exporter.status import PopulationStatus
from lifelong_monitor.realised.records import RealisedMetric


def _one(value: float | None) -> Values:
    return {} if value is None else {(): value}


def _per_class(status: PopulationStatus, values: Floats | None) -> Values:
    return {} if values is None else dict(zip(zip(status.class_names), values.tolist(), strict=True))


def _of_report(part: Callable[[AdaptationReport], float | None]) -> Reader:
    """A figure of the report of the last cycle."""
    return lambda status: _one(status.report and part(status.report))


def _of_estimate(part: Callable[[PrevalenceEstimate], Floats]) -> Reader:
    """A figure per class of the prevalence that the last cycle estimated."""

    def read(status: PopulationStatus) -> Values:
        estimate = None if status.report is None else status.report.prevalence
        return {} if estimate is None else _per_class(status, part(estimate))

    return read


def _of_evidence(part: Callable[[AdaptationReport], float | None]) -> Reader:
    """A figure of the evidence against the head that serves; the last cycle may have judged another head."""

    def read(status: PopulationStatus) -> Values:
        head, cycle = status.head, status.cycle
        is_judged = head is not None and cycle is not None and head.version == cycle.head_version
        return _one(status.report and part(status.report)) if is_judged else {}

    return read


def _shift(part: int) -> Reader:
    """The size of the shift, or its lower or upper bound."""

    def read(report: AdaptationReport) -> float | None:
        found = report.prevalence
        if found is None:
            return None
        return shift_size(report.assumed_prevalence, found.prevalence, found.low, found.high)[part]

    return _of_report(read)


def _changed_at(report: AdaptationReport) -> float | None:
    moment = report.change_points[-1].changed_at if report.change_points else None
    return None if moment is None else moment.timestamp()


def _which(chosen: str, names: Iterable[str]) -> Values:
    return {(name,): float(name == chosen) for name in names}


def _realised(status: PopulationStatus, part: Callable[[RealisedMetric], float | None]) -> Values:
    """A figure of the realised metrics by metric, class and class mix, where it is defined.

    Metrics with stated prevalences come from the comparison at all class mixes: all of these have the same labels.
    """
    metrics = () if status.realised is None else status.realised.recommended.values
    parts = {(metric.label, _class(status, metric), "realised"): part(metric) for metric in metrics}
    for one in () if status.performance is None else status.performance.class_mixes:
        metric = RealisedMetric(one.label, None, *one.metric, one.threshold, one.accepted)
        parts[one.label, "", one.mix] = part(metric)
    return {
        labels: float(value) for labels, value in parts.items() if value is not None and not math.isnan(value)
    }


def _class(status: PopulationStatus, metric: RealisedMetric) -> str:
    return "" if metric.class_index is None else status.class_names[metric.class_index]


def _defined(value: float | None) -> Values:
    return _one(None if value is None or math.isnan(value) else value)


def _agreement(status: PopulationStatus, part: Callable[[Agreement], float | None]) -> Values:
    """A figure of the agreement of the head version with the newest estimate, by metric."""
    newest = None if status.performance is None else status.performance.newest
    found = {} if newest is None else newest.agreement
    parts = {(name,): part(one) for name, one in found.items() if one.verdict != "too_few_labels"}
    return {labels: value for labels, value in parts.items() if value is not None}


def _labelled(status: PopulationStatus) -> int | None:
    """Labelled predictions of the head version with the newest estimate."""
    newest = None if status.performance is None else status.performance.newest
    if newest is None:
        return None
    return 0 if newest.realised is None else newest.realised.samples


def _check(
    status: PopulationStatus,
    check: Literal["calibration_drift", "selection"],
    part: Literal["p_value", "level"],
) -> float | None:
    found: LabelCheck | None = None if status.performance is None else getattr(status.performance, check)
    return None if found is None else getattr(found, part)


GAUGES: Final[Mapping[str, Gauge]] = {
    "lifelong_prevalence_estimate": (
        "Share of each class among the recent predictions, estimated without labels.",
        ("class",),
        _of_estimate(lambda estimate: estimate.prevalence),
    ),
    "lifelong_prevalence_low": (
        "Lower bound of the interval of lifelong_prevalence_estimate.",
        ("class",),
        _of_estimate(lambda estimate: estimate.low),
    ),
    "lifelong_prevalence_high": (
        "Upper bound of the interval of lifelong_prevalence_estimate.",
        ("class",),
        _of_estimate(lambda estimate: estimate.high),
    ),
    "lifelong_prevalence_assumed": (
        "Share of each class that the active head assumes.",
        ("class",),
        lambda status: _per_class(status, status.head and status.head.assumed_prevalence),
    ),
    "lifelong_prevalence_shift_l1": (
        "L1 distance (0 to 2) between the prevalence that the last cycle estimated and the one that its head assumed.",
        (),
        _shift(0),
    ),
    "lifelong_prevalence_shift_l1_low": (
        "Lower bound of lifelong_prevalence_shift_l1, from the intervals of all classes.",
        (),
        _shift(1),
    ),
    "lifelong_prevalence_shift_l1_high": (
        "Upper bound of lifelong_prevalence_shift_l1, from the intervals of all classes.",
        (),
        _shift(2),
    ),
    "lifelong_prevalence_changed_timestamp_seconds": (
        "Unix time of the last change of the prevalence within the window of the last cycle; absent where none was"
        " found. The estimate uses the predictions since.",
        (),
        _of_report(_changed_at),
    ),
    "lifelong_window_samples": (
        "Predictions in the window of the last cycle.",
        (),
        lambda status: _one(status.cycle and status.cycle.window_samples),
    ),
    "lifelong_quarantined_predictions": (
        "Predictions left out of the window of the last cycle because their logits are not finite, all equal, or of"
        " another number of classes.",
        (),
        lambda status: _one(status.cycle and (0 if status.inputs is None else status.inputs.quarantined)),
    ),
    "lifelong_cycle_last_outcome": (
        "1 for the outcome of the last cycle that judged a window, 0 for the others; swap: published, or in another"
        " mode than auto only proposed or reported.",
        ("outcome",),
        lambda status: _which(status.cycle.outcome, get_args(Outcome)) if status.cycle else {},
    ),
    "lifelong_cycle_last_reason": (
        "1 for each reason of the last cycle that judged a window.",
        ("reason",),
        lambda status: {(one.code,): 1.0 for one in status.report.reasons} if status.report else {},
    ),
    "lifelong_shift_log_e_value": (
        "Natural logarithm of the evidence that the prevalence is not what the head assumes which serves now,"
        " gathered since that head came in force.",
        (),
        _of_evidence(lambda report: report.evidence and report.evidence.log_e_value),
    ),
    "lifelong_shift_log_e_value_alarm": (
        "Value of lifelong_shift_log_e_value from which on the prevalence counts as shifted.",
        (),
        _of_evidence(lambda report: report.evidence and math.log(report.policy.average_run_length)),
    ),
    "lifelong_shift_evidence_samples": (
        "Predictions behind lifelong_shift_log_e_value, each counted once.",
        (),
        _of_evidence(lambda report: report.evidence and report.evidence.samples),
    ),
    "lifelong_assumption_p_value": (
        "Probability of a window as odd as that of the last cycle if nothing but the prevalence has changed.",
        (),
        _of_report(lambda report: report.assumption_test and report.assumption_test.p_value),
    ),
    "lifelong_assumption_level": (
        "Significance level of lifelong_assumption_p_value: below it more than the prevalence has changed.",
        (),
        _of_report(lambda report: report.assumption_test and report.assumption_test.level),
    ),
    "lifelong_expected_gain": (
        "Drop of the expected cost per decision that the last cycle expected of a refitted head.",
        (),
        _of_report(lambda report: report.expected_gain and report.expected_gain.value),
    ),
    "lifelong_expected_gain_low": (
        "Lower bound of the interval of lifelong_expected_gain.",
        (),
        _of_report(lambda report: report.expected_gain and report.expected_gain.low),
    ),
    "lifelong_expected_gain_high": (
        "Upper bound of the interval of lifelong_expected_gain.",
        (),
        _of_report(lambda report: report.expected_gain and report.expected_gain.high),
    ),
    "lifelong_expected_probability_gain": (
        "Drop of the expected log loss per prediction, in nats, that the last cycle expected of a refitted head.",
        (),
        _of_report(
            lambda report: report.expected_probability_gain and report.expected_probability_gain.value
        ),
    ),
    "lifelong_expected_probability_gain_low": (
        "Lower bound of the interval of lifelong_expected_probability_gain.",
        (),
        _of_report(lambda report: report.expected_probability_gain and report.expected_probability_gain.low),
    ),
    "lifelong_expected_probability_gain_high": (
        "Upper bound of the interval of lifelong_expected_probability_gain.",
        (),
        _of_report(lambda report: report.expected_probability_gain and report.expected_probability_gain.high),
    ),
    "lifelong_worst_case_cost_increase": (
        "Largest increase of the cost per decision that a swap could cause on the window of the last cycle.",
        (),
        _of_report(lambda report: report.worst_case_cost_increase),
    ),
    "lifelong_policy_mode": (
        "1 for what a cycle that wants another head does now (auto: swap, propose: ask, shadow: nothing), 0 for"
        " the others.",
        ("mode",),
        lambda status: _which(status.mode, MODES),
    ),
    "lifelong_head_pinned": (
        "1 while a person holds the head that serves now, else 0.",
        (),
        lambda status: _one(float(status.pinned)),
    ),
    "lifelong_proposal_open": (
        "1 while a head that a cycle proposed waits for a person's approval, else 0.",
        (),
        lambda status: _one(float(status.proposed)),
    ),
    "lifelong_cycle_last_success_timestamp_seconds": (
        "Unix time of the last cycle that ended without error, or found nothing new to judge.",
        (),
        lambda status: _one(status.last_success and status.last_success.timestamp()),
    ),
    "lifelong_population_first_seen_timestamp_seconds": (
        "Unix time when this monitor, since its start, first found predictions of the population.",
        (),
        lambda status: _one(status.first_seen.timestamp()),
    ),
    "lifelong_population_task": (
        "1 for the task of the model.",
        ("task",),
        lambda status: {(status.task,): 1.0},
    ),
    "lifelong_last_swap_timestamp_seconds": (
        "Unix time when a cycle last published a head for the population, by itself or after approval; absent where"
        " none did.",
        (),
        lambda status: _one(status.last_swap and status.last_swap.timestamp()),
    ),
    "lifelong_head_version": (
        "Version of the head that serves now.",
        (),
        lambda status: _one(status.head and status.head.version),
    ),
    "lifelong_head_activated_timestamp_seconds": (
        "Unix time when the head that serves now became the active one.",
        (),
        lambda status: _one(status.head and status.head.activated_at.timestamp()),
    ),
    "lifelong_affected_decisions": (
        "Decisions that the head that serves now would make otherwise, among those from the change of the prevalence"
        " to the swap that brought it; absent where no cycle brought it.",
        (),
        lambda status: _one(status.affected and status.affected.counts.affected),
    ),
    "lifelong_affected_decisions_share": (
        "lifelong_affected_decisions as a share of the decisions of that time.",
        (),
        lambda status: _one(status.affected and status.affected.counts.share),
    ),
    "lifelong_affected_decisions_expected_cost": (
        "Expected cost of lifelong_affected_decisions as they were answered, less that of the new ones; summed, in the"
        " units of the task's cost matrix.",
        (),
        lambda status: _one(status.affected and status.affected.counts.expected_cost),
    ),
    **PERFORMANCE_GAUGES,
    **RULE_GAUGES,
    "lifelong_realised_accuracy": (
        "Share of correct decisions among the newest predictions with a known true class.",
        (),
        lambda status: _one(status.realised and status.realised.accuracy),
    ),
    "lifelong_realised_expected_cost": (
        "Mean cost per decision among the newest predictions with a known true class.",
        (),
        lambda status: _one(status.realised and status.realised.expected_cost),
    ),
    "lifelong_realised_accuracy_low": (
        "Lower bound of the interval of lifelong_realised_accuracy.",
        (),
        lambda status: _defined(status.realised and status.realised.accuracy_interval[0]),
    ),
    "lifelong_realised_accuracy_high": (
        "Upper bound of the interval of lifelong_realised_accuracy.",
        (),
        lambda status: _defined(status.realised and status.realised.accuracy_interval[1]),
    ),
    "lifelong_realised_expected_cost_low": (
        "Lower bound of the interval of lifelong_realised_expected_cost.",
        (),
        lambda status: _defined(status.realised and status.realised.expected_cost_interval[0]),
    ),
    "lifelong_realised_expected_cost_high": (
        "Upper bound of the interval of lifelong_realised_expected_cost.",
        (),
        lambda status: _defined(status.realised and status.realised.expected_cost_interval[1]),
    ),
    "lifelong_performance_agreement": (
        "1 where the estimate without labels of the newest head agrees with its labelled predictions, 0 where they"
        " disagree; AC: accuracy, EC: expected cost; absent while there are too few labels to tell.",
        ("metric",),
        lambda status: _agreement(status, lambda one: float(one.verdict == "agree")),
    ),
    "lifelong_performance_agreement_p_value": (
        "Probability of a difference as large as that behind lifelong_performance_agreement if both agree.",
        ("metric",),
        lambda status: _agreement(status, lambda one: one.p_value),
    ),
    "lifelong_performance_labelled_samples": (
        "Labelled predictions behind lifelong_performance_agreement.",
        (),
        lambda status: _one(_labelled(status)),
    ),
    "lifelong_calibration_drift_p_value": (
        "Probability of labels as odd as the newest ones if the answered probabilities are calibrated; absent while"
        " there are too few labels.",
        (),
        lambda status: _one(_check(status, "calibration_drift", "p_value")),
    ),
    "lifelong_calibration_drift_level": (
        "Significance level of lifelong_calibration_drift_p_value: below it the probabilities are not calibrated.",
        (),
        lambda status: _one(_check(status, "calibration_drift", "level")),
    ),
    "lifelong_label_selection_p_value": (
        "Probability of a difference as large between labelled and unlabelled logits if the labelled predictions are"
        " chosen without regard to them; absent while there are too few labels.",
        (),
        lambda status: _one(_check(status, "selection", "p_value")),
    ),
    "lifelong_label_selection_level": (
        "Significance level of lifelong_label_selection_p_value: below it labelled predictions differ from the others.",
        (),
        lambda status: _one(_check(status, "selection", "level")),
    ),
    "lifelong_realised_metric": (
        "Metric that the recommendation of the task names, of the answers to the newest predictions with a known true"
        " class; class is empty for all classes; prevalence: realised (the class mix of the labels), and where the"
        " recommendation states prevalences also stated and estimated (of the last cycle).",
        ("metric", "class", "prevalence"),
        lambda status: _realised(status, lambda metric: metric.estimate),
    ),
    "lifelong_realised_metric_low": (
        "Lower bound of the interval of lifelong_realised_metric.",
        ("metric", "class", "prevalence"),
        lambda status: _realised(status, lambda metric: metric.low),
    ),
    "lifelong_realised_metric_high": (
        "Upper bound of the interval of lifelong_realised_metric.",
        ("metric", "class", "prevalence"),
        lambda status: _realised(status, lambda metric: metric.high),
    ),
    "lifelong_realised_metric_accepted": (
        "1 where lifelong_realised_metric reaches its acceptance threshold, 0 where its whole interval misses it;"
        " absent while there are too few labels to tell.",
        ("metric", "class", "prevalence"),
        lambda status: _realised(status, lambda metric: metric.accepted),
    ),
    "lifelong_labelled_samples": (
        "Predictions with a known true class behind the realised accuracy, cost and metrics.",
        (),
        lambda status: _one(status.realised and status.realised.samples),
    ),
}
