"""One adaptation cycle (thesis section 6.1.3): from a window of logits to keep, swap or refuse."""

import hashlib
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.adaptation import reasons
from lifelong_core.deploy.adaptation.context import AdaptationContext, add_labels
from lifelong_core.deploy.adaptation.findings import Findings
from lifelong_core.deploy.adaptation.policy import AdaptationPolicy
from lifelong_core.deploy.adaptation.reasons import Reason
from lifelong_core.deploy.adaptation.refit import Refitted, refit, worth_of
from lifelong_core.deploy.adaptation.report import AdaptationReport, Outcome
from lifelong_core.deploy.adaptation.windows import (
    Bucket,
    FollowedWindow,
    Window,
    follow_changes,
    scores_of,
    window_digest,
)
from lifelong_core.deploy.fitted_calibration import FittedCalibration
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier
from lifelong_core.deploy.quantification.prevalence_estimate import Analysis, PrevalenceEstimate
from lifelong_core.deploy.quantification.registry import quantifier
from lifelong_core.deploy.quantification.uncertainty import label_doubt
from lifelong_core.deploy.shift.evidence import ShiftEvidence, samples_to_alarm, update_evidence
from lifelong_core.deploy.shift.shift_test import ShiftTest, prevalence_shift_test, sequential_shift_test
from lifelong_core.values.errors import InvalidInputError, UnidentifiableError

if TYPE_CHECKING:
    from lifelong_core.deploy.performance.derived_metrics import RequestedMetrics

DEFAULT_QUANTIFIER = "auto"
MINIMUM_GROUPS = 20
"""Windows of fewer independent groups (patients) are too small, whatever their number of samples."""


def adapt(
    calibration: LabeledLogits | FittedQuantifier,
    window: Window,
    head: PostProcessingHead,
    policy: AdaptationPolicy,
    *,
    new_buckets: Sequence[Bucket] = (),
    evidence: ShiftEvidence | None = None,
    context: AdaptationContext | None = None,
    groups: ArrayLike | None = None,
    times: ArrayLike | None = None,
    method: str = DEFAULT_QUANTIFIER,
    performance_metrics: Sequence[str] = (),
    rng: int = 0,
) -> AdaptationReport:
    """Decide for one window whether its population needs another head: keep, swap or refuse.

    A pure function without clock, files or hidden state: equal arguments give equal reports.

    1. Find the change points of the prevalence in the window, and estimate the prevalence from the last change on. The
       intervals include the sampling of window and calibration set and the uncertain time of the change. Keep the head
       if the window has fewer than `policy.minimum_samples` effective samples, or, with groups, fewer than 20 groups.
    2. Keep the head unless the prevalence has shifted from the prevalence that it assumes, or it was fitted on another
       calibration set. With `new_buckets` or `evidence` the test is sequential over all cycles, so that endless looks
       raise no more false alarms than the policy allows; otherwise it tests this window alone, at `policy.level`.
    3. Refit the head for the estimated prevalence plus half a sample of each class (Jeffreys' prior), so that an unseen
       class keeps a small prevalence and can still be decided. One step is at most `policy.maximum_step` long.
    4. Refuse if more has changed than the prevalence.
    5. Swap if, with probability 3/4, the gain in expected cost exceeds `policy.minimum_gain` times the largest
       difference that a decision can make; or if, with probability 9/10, the gain in expected log loss exceeds
       `policy.minimum_probability_gain` and the decisions do no harm: the gain in expected cost is not negative, and
       with probability 3/4 the loss is at most `policy.minimum_gain`. For a decision rule with a metric of its own,
       that metric takes the place of the expected cost: it is brought to its target first, then the best of the other
       metric counts. A pin, a rejected proposal for the same
       prevalence or a cool-down prevents a swap. Where `context.traffic` is unusual, the report says so, and
       `report.mode` may become a proposal to a person.

    Args:
        calibration: labelled logits of the model, or a quantifier fitted on them.
        window: shape (N, C), logits of the newest predictions in order of time, or summaries by the same quantifier
            of its successive parts, or of all at once (no change can be found then). Windows may overlap from cycle to
            cycle.
        head: the current head.
        policy: conditions of a swap.
        new_buckets: samples since the last cycle, each in exactly one bucket of one cycle.
        evidence: `report.evidence` of the last cycle; it restarts if head, quantifier or policy have changed.
        context: circumstances beside the data: time since the last swap, a pin, rejected proposals, the other
            environments' estimates.
        groups: shape (N,), groups of the window's rows; samples of one group may depend on each other. A summary
            contains its groups.
        times: shape (N,), ascending; seconds since 1970 (UTC) of the rows, or of the begin of each summary's part. They
            date the changes, and show daily and weekly rhythms.
        method: name of the quantifier to fit on labelled logits; one of QUANTIFIERS.
        performance_metrics: metrics of the current head and of the candidate to estimate without labels, such as
            ("AC", "EC"), see `estimate_performance`; the first estimate with a calibration set takes some seconds.
        rng: seed, kept for replay. The present steps draw no random numbers.

    Raises:
        InvalidInputError: `rng` is no whole number, a metric cannot be estimated without labels, or the policy has
            label errors of another number of classes.

    Returns:
        The report. The outcome is refuse, with its reason, where the workflow's assumptions fail: the calibration set
        cannot tell the classes apart, the head has other classes, the window holds values that are not finite, or
        more has changed than the prevalence.

    Examples:
        >>> import numpy as np
        >>> from lifelong_core.deploy import fit_head
        >>> rng = np.random.default_rng(1)
        >>> def sample(*counts):
        ...     labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        ...     return 2 * np.eye(len(counts))[labels] + rng.normal(size=(labels.size, len(counts))), labels
        >>> calibration = LabeledLogits(*sample(400, 400))
        >>> head = fit_head(calibration, [[0, 1], [1, 0]])
        >>> adapt(calibration, sample(500, 500)[0], head, AdaptationPolicy()).outcome
        'keep'
        >>> report = adapt(calibration, sample(900, 100)[0], head, AdaptationPolicy())
        >>> report.outcome, [reason.code for reason in report.reasons]
        ('swap', ['prevalence_shifted', 'gain_sufficient'])
        >>> report.candidate.assumed_prevalence.round(1).tolist()
        [0.9, 0.1]
    """
    data = calibration.calibration if isinstance(calibration, FittedQuantifier) else calibration
    report = _begin(data, window, groups, head, policy, context or AdaptationContext(), _seed(rng))
    if len(policy.label_error_rates) not in (0, 1, data.classes):
        raise InvalidInputError(f"expected 1 or {data.classes} shares.", field="label_error_rates")
    if data.classes != head.classes:
        text = f"The calibration set has {data.classes} classes, the head {head.classes}."
        return _end(report, "refuse", Reason("classes_differ", text))
    metrics = _requested(performance_metrics, data.classes)
    try:
        fitted = (
            calibration if isinstance(calibration, FittedQuantifier) else quantifier(method).fit(calibration)
        )
    except UnidentifiableError as error:
        return _end(report, "refuse", Reason("calibration_unidentifiable", str(error)))
    report = replace(report, quantifier_digest=fitted.digest)
    try:
        report = replace(report, evidence=_gather(fitted, head, policy, new_buckets, evidence))
        if report.samples == 0 and report.window_digest is not None:
            return _end(report, "keep", Reason("window_too_small", "The window is empty."))
        followed = follow_changes(fitted, window, groups, times, policy.change_level)
        analysis = _analyse(fitted, followed, policy)
    except InvalidInputError as error:
        return _end(report, "refuse", Reason("window_invalid", str(error)))
    report = replace(report, prevalence=analysis.estimate, change_points=followed.changes)
    if followed.changes:
        report = report.because(reasons.prevalence_changed(followed.changes))
    if followed.pattern is not None:
        is_followed = bool(followed.changes)
        report = report.because(reasons.prevalence_fluctuates(followed.pattern, is_followed=is_followed))
    findings = Findings(fitted, followed, head, policy, analysis, metrics)
    report = replace(report, performance=findings.performance(head))
    report, analysis = _add_labels(report, analysis)
    if analysis is not findings.analysis:  # else what the findings have computed of it is used again
        findings = replace(findings, analysis=analysis)
    report = replace(report, criterion=findings.criterion(head, analysis, report.seed))
    too_small = _too_small(analysis, policy)
    if too_small is not None:
        return _end(report, "keep", too_small)
    return _judge(report, findings)


def _add_labels(report: AdaptationReport, analysis: Analysis) -> tuple[AdaptationReport, Analysis]:
    """Combine the estimate with the labels since the last change, where the policy uses labels."""
    labelled = report.context.labelled
    if not report.policy.labelled_evidence or labelled is None:
        return report, analysis
    if report.change_points:
        changed_at = report.change_points[-1].changed_at
        if changed_at is None:
            return report, analysis
        labelled = labelled.since(changed_at.timestamp())
    if not labelled.labels.size:
        return report, analysis
    combined = add_labels(analysis, labelled)
    report = replace(report, prevalence=combined.estimate, prevalence_without_labels=analysis.estimate)
    reason = reasons.labels_combined(analysis.estimate, combined.estimate, labelled.labels.size)
    return report.because(reason), combined


def _judge(report: AdaptationReport, findings: Findings) -> AdaptationReport:
    """Do steps 2 to 5 on a window that is large enough."""
    policy, estimate, head = report.policy, findings.analysis.estimate, findings.head
    shift = _shift_test(report.evidence, estimate, head, policy)
    kind = findings.assumption_test
    report = replace(report, shift_test=shift, assumption_test=kind)
    if not shift.rejected and not findings.superseded:
        report = report.because(_no_shift(report, findings, shift))
        return report.because(reasons.assumption_violated(kind)) if kind.rejected else report
    if findings.superseded:
        text = "The head was fitted on another calibration set."
        report = report.because(Reason("calibration_changed", text))
    if shift.rejected:
        report = report.because(reasons.shifted(estimate, head, shift))
    report, refitted = refit(report, findings)
    if kind.rejected:
        report = report.because(reasons.assumption_violated(kind, report.worst_case_cost_increase))
        if policy.assumption_violated == "refuse":
            return replace(report, outcome="refuse")
    return _decide(report, refitted)


def _no_shift(report: AdaptationReport, findings: Findings, test: ShiftTest) -> Reason:
    """Reason to keep the head: there is no shift, or too little evidence to tell."""
    evidence, policy = report.evidence, report.policy
    if evidence is None:
        return reasons.unchanged(test, None)
    estimate, head = findings.analysis.estimate, findings.head
    missing = None
    if prevalence_shift_test(estimate, head.assumed_prevalence, policy.level).rejected:
        missing = samples_to_alarm(
            evidence,
            findings.calibration.score_reference(head),
            estimate.prevalence,
            tolerance=policy.tolerance,
            average_run_length=policy.average_run_length,
        )
    if evidence.samples and missing is None:
        return reasons.unchanged(test, evidence.samples)
    return reasons.not_enough_evidence(estimate, head, test, evidence.samples, missing)


def _decide(report: AdaptationReport, refitted: Refitted) -> AdaptationReport:
    """Do step 5: swap, unless the gain is too small or something forbids a swap.

    The gain is that of a head for the estimate; the candidate of a limited step must only do no harm.
    """
    policy, context = report.policy, report.context
    worth = worth_of(refitted, policy)
    if worth.code == "gain_too_small":
        return _end(report, "keep", worth)
    report = report.because(worth)
    if context.pinned:
        return _end(report, "keep", Reason("head_pinned", "A person has pinned the head."))
    used = report.pooled or report.prevalence
    if used is not None and context.is_rejected(used):
        text = "A person has rejected a proposal for this prevalence: its intervals overlap the present ones."
        return _end(report, "keep", Reason("proposal_rejected", text))
    passed = context.seconds_since_swap
    if passed is not None and passed < policy.cool_down_seconds:
        return _end(report, "keep", reasons.cooling_down(passed, policy.cool_down_seconds))
    traffic = context.traffic
    if traffic is not None and traffic.is_other_sender:
        report = report.because(reasons.another_sender(traffic))
    elif traffic is not None and traffic.is_unknown_sender:
        report = report.because(reasons.unknown_senders(traffic))
    if traffic is not None and traffic.is_burst:
        report = report.because(reasons.burst(traffic))
    return replace(report, outcome="swap", candidate=refitted.candidate)


def _analyse(fitted: FittedQuantifier, followed: FollowedWindow, policy: AdaptationPolicy) -> Analysis:
    """Estimate from the last change on; its covariance includes the uncertainty about whether and when the change
    happened, and wrong calibration labels.
    """
    analysis = fitted.analyse(followed.window, groups=followed.groups, confidence=policy.confidence)
    if policy.label_error_rates:
        prevalence = analysis.estimate.prevalence
        rates = np.broadcast_to(policy.label_error_rates, prevalence.shape)
        analysis = analysis.with_change_doubt(label_doubt(prevalence, rates))
    if followed.scatter is not None:
        analysis = analysis.with_change_doubt(followed.scatter)
    if not followed.alternatives:
        return analysis
    others = np.array([fitted.prevalence(window) for window, _ in followed.alternatives])
    weights = np.array([weight for _, weight in followed.alternatives])
    moves = others - analysis.estimate.prevalence
    return analysis.with_change_doubt((moves * weights[:, np.newaxis]).T @ moves)


def _gather(
    fitted: FittedQuantifier,
    head: PostProcessingHead,
    policy: AdaptationPolicy,
    new_buckets: Sequence[Bucket],
    evidence: ShiftEvidence | None,
) -> ShiftEvidence | None:
    """Evidence including the new buckets; None where the window is tested by itself."""
    if not new_buckets and evidence is None:
        return None
    key = hashlib.sha256("\n".join((fitted.digest, head.digest, policy.digest)).encode()).hexdigest()
    return update_evidence(
        evidence,
        FittedCalibration.of(fitted).score_reference(head),
        [scores_of(head, bucket) for bucket in new_buckets],
        key=key,
        tolerance=policy.tolerance,
    )


def _shift_test(
    evidence: ShiftEvidence | None,
    estimate: PrevalenceEstimate,
    head: PostProcessingHead,
    policy: AdaptationPolicy,
) -> ShiftTest:
    if evidence is None:
        return prevalence_shift_test(estimate, head.assumed_prevalence, policy.level)
    return sequential_shift_test(evidence.log_e_value, policy.average_run_length)


def _too_small(analysis: Analysis, policy: AdaptationPolicy) -> Reason | None:
    """Reason why the window is too small; None: it is large enough."""
    if analysis.clusters is not None and analysis.clusters.number < MINIMUM_GROUPS:
        text = f"The window comes from fewer than {MINIMUM_GROUPS} groups of equal size: too few to judge."
        return Reason("window_too_small", text)
    if analysis.estimate.effective_n < policy.minimum_samples:
        return reasons.too_few_samples(analysis.estimate, policy.minimum_samples)
    return None


def _begin(
    calibration: LabeledLogits,
    window: Window,
    groups: ArrayLike | None,
    head: PostProcessingHead,
    policy: AdaptationPolicy,
    context: AdaptationContext,
    seed: int,
) -> AdaptationReport:
    """Report with the inputs only."""
    samples, digest = window_digest(window, groups)
    return AdaptationReport(
        outcome="keep",
        reasons=(),
        prevalence=None,
        prevalence_without_labels=None,
        change_points=(),
        assumed_prevalence=head.assumed_prevalence,
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
        policy=policy,
        context=context,
        seed=seed,
        samples=samples,
        calibration_digest=calibration.digest,
        quantifier_digest=None,
        head_digest=head.digest,
        window_digest=digest,
    )


def _requested(metrics: Sequence[str], classes: int) -> "RequestedMetrics | None":
    if not metrics:
        return None
    # Here and not above: a service never comes here, and starts earlier without the metric pool.
    from lifelong_core.deploy.performance.derived_metrics import RequestedMetrics

    return RequestedMetrics.of(metrics, classes)


def _seed(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise InvalidInputError("expected a whole number.", field="rng")
    return operator.index(value)


def _end(report: AdaptationReport, outcome: Outcome, reason: Reason) -> AdaptationReport:
    return replace(report.because(reason), outcome=outcome)
