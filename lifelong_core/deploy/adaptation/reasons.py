"""Reasons for the outcome of a cycle: a code for programs, and a sentence with the figures for people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, cast, get_args

import numpy as np

from lifelong_core.deploy.adaptation.target_prevalence import PooledAnalysis
from lifelong_core.deploy.adaptation.traffic import BURST_FACTOR, Traffic
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.label_shift.result import AssumptionTest
from lifelong_core.deploy.performance.acceptance import JudgedMetric
from lifelong_core.deploy.quantification.prevalence_estimate import PrevalenceEstimate
from lifelong_core.deploy.shift.change_points import ChangePoint
from lifelong_core.deploy.shift.evidence import MOST_MISSING
from lifelong_core.deploy.shift.fluctuation import Pattern
from lifelong_core.deploy.shift.shift_test import ShiftTest
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError

_SHOWN = 2
"""Disagreements that a sentence shows; the report lists more."""
_SHOWN_METRICS = 5
"""Metrics that a sentence shows."""
_SMALLEST_SAID = 1e-12
_TRUSTED = (
    "A token that is bound to this environment (`lifelong tokens create --environment`) is trusted at once."
)

ReasonCode: TypeAlias = Literal[
    "calibration_unidentifiable",
    "classes_differ",
    "window_invalid",
    "window_too_small",
    "prevalence_changed",
    "prevalence_fluctuates",
    "prevalence_unchanged",
    "evidence_insufficient",
    "prevalence_shifted",
    "calibration_changed",
    "assumption_violated",
    "estimate_pooled",
    "labels_combined",
    "step_limited",
    "rule_refitted",
    "target_unreachable",
    "gain_too_small",
    "gain_sufficient",
    "probability_gain_sufficient",
    "rule_gain_sufficient",
    "head_pinned",
    "proposal_rejected",
    "cooling_down",
    "traffic_unusual",
    "performance_missed",
    "performance_at_risk",
]


@dataclass(frozen=True)
class Reason:
    """One reason for the outcome of a cycle."""

    code: ReasonCode
    """for programs"""
    text: str
    """the reason as a sentence with its figures, for people"""

    def to_document(self) -> dict[str, Any]:
        """The reason as JSON values."""
        return {"code": self.code, "text": self.text}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote.

        Raises:
            InvalidInputError: not a known code with a text.
        """
        found = cast("dict[str, object]", document) if isinstance(cast("object", document), Mapping) else {}
        code, text = found.get("code"), found.get("text")
        if set(found) != {"code", "text"} or code not in get_args(ReasonCode) or not isinstance(text, str):
            raise InvalidInputError("expected objects of a known code and a text.", field="reasons")
        return cls(cast("ReasonCode", code), text)


def labels_combined(without: PrevalenceEstimate, combined: PrevalenceEstimate, labels: int) -> Reason:
    """Reason: the estimate includes labels of the window."""
    moved = float(np.abs(combined.prevalence - without.prevalence).sum())
    number = "1 label" if labels == 1 else f"{labels} labels"
    text = f"The estimate includes {number} of the window, which moved it by {moved:.3f} (L1)."
    news = [caution for caution in combined.cautions if caution not in without.cautions]
    if combined.method == without.method:
        text = f"{number} of the window are left out."
    text = " ".join([text, *news])
    return Reason("labels_combined", text)


def too_few_samples(estimate: PrevalenceEstimate, minimum: int) -> Reason:
    """Reason: the window is too small."""
    text = (
        f"The window is worth {estimate.effective_n:.0f} independent samples; {minimum} are needed."
        " No shift was tested."
    )
    return Reason("window_too_small", text)


def prevalence_changed(changes: Sequence[ChangePoint]) -> Reason:
    """Reason: the prevalence changed within the window."""
    last = changes[-1]
    when = f"{last.samples_ago} samples ago (95 % interval {last.low} to {last.high})"
    if last.changed_at is not None:
        when += f", at {last.changed_at:%Y-%m-%d %H:%M} UTC"
    earlier = len(changes) - 1
    times = "once" if earlier == 1 else f"{earlier} times"
    before = f" It had changed {times} before in this window." if earlier else ""
    text = (
        f"The prevalence changed {when}, by {last.size:.2f} ({last.size_low:.2f} to {last.size_high:.2f}) of 2 in L1"
        f" distance; the estimate uses the samples since.{before}"
    )
    return Reason("prevalence_changed", text)


def prevalence_fluctuates(pattern: Pattern, *, is_followed: bool) -> Reason:
    """Reason: the prevalence comes and goes; `is_followed` says whether a lasting change is followed as well."""
    if pattern == "jitter":
        how = "also comes and goes" if is_followed else "comes and goes, without a lasting change"
        advice = "If this has a cause, such as a scanner or a ward, give each its own environment."
    else:
        how = f"follows the {pattern}"
        example = "day and night" if pattern == "time of day" else "weekdays and weekends"
        advice = f"Use separate environments, such as {example}, so that each gets its own head."
    window = "the part after the change" if is_followed else "the whole window"
    text = f"The prevalence {how}; the estimate is the mean of {window}. {advice}"
    return Reason("prevalence_fluctuates", text)


def unchanged(test: ShiftTest, counted: int | None) -> Reason:
    """Reason: there is no significant shift; `counted` are the predictions of the evidence, None: one window."""
    text = f"The prevalence does not differ significantly from what the head assumes ({_strength(test)})."
    if counted is not None:
        number = "1 prediction" if counted == 1 else f"{counted:,} predictions"
        text = (
            f"The evidence of {number} shows no shift beyond what the policy and the calibration set"
            f" leave open ({_strength(test)})."
        )
    return Reason("prevalence_unchanged", text)


def not_enough_evidence(
    estimate: PrevalenceEstimate,
    head: PostProcessingHead,
    test: ShiftTest,
    counted: int,
    missing: int | None,
) -> Reason:
    """Reason: too few predictions were counted to tell whether the prevalence has shifted.

    Args:
        estimate: of the window, whose predictions may have been counted with an earlier head.
        head: the current head.
        test: of the evidence.
        counted: predictions of the evidence.
        missing: `samples_to_alarm` of the estimate.
    """
    number = "no prediction" if counted == 0 else f"{counted:,} prediction{'' if counted == 1 else 's'}"
    more = ""
    if missing is not None:
        about = (
            f"about {_two_digits(missing):,}" if missing <= MOST_MISSING else f"more than {MOST_MISSING:,}"
        )
        more = f" If the estimate is right, {about} more show it."
    text = (
        f"It is not yet shown that the prevalence differs from the one that the head assumes: evidence starts anew with"
        f" each head and policy, and counts {number} so far ({_strength(test)}). The window's estimate differs most for"
        f" {_assumed_and_estimated(_moved_most(estimate, head), estimate, head)}.{more}"
    )
    return Reason("evidence_insufficient", text)


def shifted(estimate: PrevalenceEstimate, head: PostProcessingHead, test: ShiftTest) -> Reason:
    """Reason: the prevalence has shifted; names the class that moved most."""
    most = _assumed_and_estimated(_moved_most(estimate, head), estimate, head)
    return Reason("prevalence_shifted", f"The prevalence has shifted ({_strength(test)}): most for {most}.")


def pooled(own: PrevalenceEstimate, analysis: PooledAnalysis, head: PostProcessingHead) -> Reason:
    """Reason: the estimate was pooled with other environments; names the class whose estimate moved most."""
    used = analysis.analysis.estimate.prevalence
    k = int(np.argmax(np.abs(used - own.prevalence)))
    text = (
        f"With {analysis.environments} other environments of the model, the estimate for {head.class_names[k]!r} is "
        f"{used[k]:.3f} instead of {own.prevalence[k]:.3f}."
    )
    return Reason("estimate_pooled", text)


def step_limited(head: PostProcessingHead, wanted: Floats, maximum: float) -> Reason:
    """Reason: the candidate covers only part of the distance to the estimate."""
    distance = float(np.abs(wanted - head.assumed_prevalence).sum())
    text = (
        f"The estimate is {distance:.2f} (L1) from the prevalence that the head assumes; "
        f"one swap covers at most {maximum:g}."
    )
    return Reason("step_limited", text)


def assumption_violated(test: AssumptionTest, harm: float | None = None) -> Reason:
    """Reason: more has changed than the prevalence; names the largest disagreements and the worst-case cost of a
    swap.
    """
    parts = [f"More has changed than the prevalence ({_probability(test.p_value)}, level {test.level:g})."]
    parts += [item.text for item in test.disagreements[:_SHOWN]]
    if not test.reliable:
        parts.append("The calibration set is too small for this test to keep its level.")
    if harm is not None:
        parts.append(f"In the worst case a swap costs {harm:.3f} more per decision.")
    return Reason("assumption_violated", " ".join(parts))


def cooling_down(passed: float, wanted: float) -> Reason:
    """Reason: the last swap is too recent."""
    text = f"The head changed {passed:.0f} s ago; the next swap must wait until {wanted:.0f} s have passed."
    return Reason("cooling_down", text)


def another_sender(traffic: Traffic) -> Reason:
    """Reason: much of the window came from a sender that sent little here before."""
    text = (
        f"{traffic.sender_share:.0%} of the window came with the token {traffic.sender!r}, which sent"
        f" {traffic.usual_share or 0:.0%} of the predictions before. {_TRUSTED}"
    )
    return Reason("traffic_unusual", text)


def unknown_senders(traffic: Traffic) -> Reason:
    """Reason: much of the window came from senders that are neither bound to the environment nor known in it."""
    text = (
        f"{traffic.unknown_share or 0:.0%} of the window came with tokens that are not bound to this environment and"
        f" sent few or no predictions here on other days, such as {traffic.sender!r}. {_TRUSTED}"
    )
    return Reason("traffic_unusual", text)


def burst(traffic: Traffic) -> Reason:
    """Reason: much of the window came at an unusual rate."""
    text = (
        f"{traffic.burst_share or 0:.0%} of the window came in hours with more than {BURST_FACTOR:g} times the"
        f" predictions of a busy hour there (the busiest: {traffic.burst_ratio or 0:.0f} times)."
    )
    return Reason("traffic_unusual", text)


def performance_below_acceptance(
    metrics: Sequence[JudgedMetric], *, is_missed: bool, is_assumption_rejected: bool
) -> Reason:
    """Reason beside the outcome: estimated metrics are on the wrong side of their acceptance thresholds.

    Args:
        metrics: at least one.
        is_missed: whether their whole intervals are.
        is_assumption_rejected: whether the assumption test of the window is rejected.
    """
    shown = "; ".join(metric.describe() for metric in metrics[:_SHOWN_METRICS])
    more = len(metrics) - _SHOWN_METRICS
    others = f"; and {more} more" if more > 0 else ""
    verdict = (
        "The estimated performance (no labels) misses acceptance thresholds, with the whole interval"
        if is_missed
        else "The estimated performance (no labels) is on the wrong side of acceptance thresholds that its interval"
        " contains"
    )
    text = f"{verdict}: {shown}{others}."
    if is_assumption_rejected:
        text += " The assumption test is rejected, so the estimate may be wrong by more than its interval."
    return Reason("performance_missed" if is_missed else "performance_at_risk", text)


def _strength(test: ShiftTest) -> str:
    if test.p_value is not None:
        return f"{_probability(test.p_value)}, level {test.level:g}"
    return f"evidence {_power_of_ten(test.statistic)}, an alarm needs {_power_of_ten(-np.log(test.level))}"


def _moved_most(estimate: PrevalenceEstimate, head: PostProcessingHead) -> int:
    return int(np.argmax(np.abs(estimate.prevalence - head.assumed_prevalence)))


def _assumed_and_estimated(k: int, estimate: PrevalenceEstimate, head: PostProcessingHead) -> str:
    return (
        f"{head.class_names[k]!r}, assumed {head.assumed_prevalence[k]:.3f}, estimated {estimate.prevalence[k]:.3f} "
        f"({estimate.low[k]:.3f} to {estimate.high[k]:.3f})"
    )


def _two_digits(number: int) -> int:
    """Rounded up to two significant digits."""
    unit = 10 ** max(0, len(str(number)) - 2)
    return -(-number // unit) * unit


def _power_of_ten(logarithm: float) -> str:
    # Evidence is gathered no further than a little above this; what lies between there is noise.
    return "10^12 or more" if logarithm > 12 * np.log(10) else f"10^{logarithm / np.log(10):.1f}"


def _probability(p_value: float) -> str:
    return f"p = {p_value:.2g}" if p_value >= _SMALLEST_SAID else f"p < {_SMALLEST_SAID:g}"
