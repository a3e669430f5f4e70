"""One pass of the five-step workflow (thesis section 6.1.3): from a window of logits to keep, swap or refuse."""

import hashlib
import operator
from dataclasses import replace
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.arrays import Floats, as_groups, as_logits
from lifelong_core.deploy.gain import ExpectedGain, expected_gain, largest_difference
from lifelong_core.deploy.head import PostProcessingHead, fit_head
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.policy import AdaptationPolicy
from lifelong_core.deploy.quantification import FittedQuantifier, PrevalenceEstimate, quantifier
from lifelong_core.deploy.quantification.uncertainty import number_of_groups
from lifelong_core.deploy.report import AdaptationReport, Outcome, Reason, ReasonCode
from lifelong_core.deploy.shift import ShiftTest, prevalence_shift_test
from lifelong_core.errors import InvalidInputError, UnidentifiableError

DEFAULT_QUANTIFIER = "MLLS"
MINIMUM_GROUPS = 20
"""Samples of fewer independent groups (patients) say too little of a population, however many they are."""


def adapt(
    calibration: LabeledLogits | FittedQuantifier,
    window: ArrayLike,
    head: PostProcessingHead,
    policy: AdaptationPolicy,
    *,
    groups: ArrayLike | None = None,
    method: str = DEFAULT_QUANTIFIER,
    rng: int = 0,
) -> AdaptationReport:
    """Judge one window: does its population need another head?

    A pure function: no clock, no files, nothing hidden; equal arguments give equal reports.

    1. Estimate the prevalence, with intervals that count window and calibration set.
    2. Keep the head if the window has fewer than `policy.minimum_samples` effective samples, or comes from fewer
       than 20 groups.
    3. Keep it unless intervals that hold for all classes at once, at `policy.level`, exclude the prevalence that the
       head assumes, or the head was fitted on another calibration set than this one.
    4. Refit the head for the estimated prevalence, with half a sample of each class added, so that a class that
       was not seen keeps a small prevalence (Jeffreys' prior) and can still be decided.
    5. Swap if, with probability 3/4, the gain in expected cost exceeds `policy.minimum_gain` times the largest
       difference that a decision can make.

    Args:
        calibration: labelled logits of the model, or a quantifier fitted on them.
        window: shape (N, C), logits of the newest predictions.
        head: that serves at present.
        policy: when to swap.
        groups: shape (N,); samples of one group may depend on each other.
        method: the quantifier that is fitted where labelled logits are given; one of QUANTIFIERS.
        rng: seed, kept for the replay. The present steps draw nothing.

    Raises:
        InvalidInputError: `rng` is no whole number.

    Returns:
        The report. The outcome is refuse, with its reason, where the workflow's assumptions fail: the calibration set
        cannot tell the classes apart, the head has other classes, or the window holds values that are not finite.

    Examples:
        >>> rng = np.random.default_rng(0)
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
        >>> report.candidate.assumed_prevalence.round(2).tolist()
        [0.9, 0.1]
    """
    data = calibration.calibration if isinstance(calibration, FittedQuantifier) else calibration
    report = _begin(data, window, groups, head, policy, _seed(rng))
    if data.classes != head.classes:
        text = f"The calibration set has {data.classes} classes, the head {head.classes}."
        return _end(report, "refuse", "classes_differ", text)
    try:
        fitted = (
            calibration if isinstance(calibration, FittedQuantifier) else quantifier(method).fit(calibration)
        )
    except UnidentifiableError as error:
        return _end(report, "refuse", "calibration_unidentifiable", str(error))
    report = replace(report, quantifier_digest=fitted.digest)
    if report.samples == 0 and report.window_digest is not None:
        return _end(report, "keep", "window_too_small", "The window is empty.")
    try:
        analysis = fitted.analyse(window, groups=groups, confidence=policy.confidence)
    except InvalidInputError as error:
        return _end(report, "refuse", "window_invalid", str(error))
    estimate = analysis.estimate
    report = replace(report, prevalence=estimate)
    if analysis.groups is not None and number_of_groups(analysis.groups) < MINIMUM_GROUPS:
        text = f"The window comes from fewer than {MINIMUM_GROUPS} groups of equal size: too few to judge by."
        return _end(report, "keep", "window_too_small", text)
    if estimate.effective_n < policy.minimum_samples:
        text = f"The window has {estimate.effective_n:.0f} effective samples, fewer than {policy.minimum_samples}."
        return _end(report, "keep", "window_too_small", text)
    test = prevalence_shift_test(estimate, head.assumed_prevalence, policy.level)
    report = replace(report, shift_test=test)
    superseded = head.provenance.get("calibration_digest", data.digest) != data.digest
    if not test.rejected and not superseded:
        return _end(report, "keep", "prevalence_unchanged", _no_shift(test))
    target = floored(estimate)
    gain = expected_gain(data, analysis, head, target, policy.confidence)
    report = replace(report, expected_gain=gain)
    if superseded:
        report = _because(report, "calibration_changed", "The head was fitted on another calibration set.")
    if test.rejected:
        report = _because(report, "prevalence_shifted", _shift(estimate, head, test))
    threshold = policy.minimum_gain * largest_difference(head.costs)
    if gain.lower_quartile <= threshold:
        return _end(report, "keep", "gain_too_small", _gain(gain, threshold, enough=False))
    report = replace(report, candidate=_candidate(data, head, target, report))
    return _end(report, "swap", "gain_sufficient", _gain(gain, threshold, enough=True))


def floored(estimate: PrevalenceEstimate) -> Floats:
    """The estimate after half a sample more of each class, shape (C,), positive (Jeffreys' prior)."""
    raised = estimate.effective_n * estimate.prevalence + 0.5
    return raised / raised.sum()


def _begin(
    calibration: LabeledLogits,
    window: ArrayLike,
    groups: ArrayLike | None,
    head: PostProcessingHead,
    policy: AdaptationPolicy,
    seed: int,
) -> AdaptationReport:
    """A report with the inputs and nothing found yet."""
    samples, digest = _fingerprint(window, groups)
    return AdaptationReport(
        outcome="keep",
        reasons=(),
        prevalence=None,
        assumed_prevalence=head.assumed_prevalence,
        shift_test=None,
        expected_gain=None,
        candidate=None,
        policy=policy,
        seed=seed,
        samples=samples,
        calibration_digest=calibration.digest,
        quantifier_digest=None,
        head_digest=head.digest,
        window_digest=digest,
    )


def _seed(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise InvalidInputError("expected a whole number, which the report can hold.", field="rng")
    return operator.index(value)


def _fingerprint(window: ArrayLike, groups: ArrayLike | None) -> tuple[int, str | None]:
    """Number of rows, and SHA-256 (hex) over logits and groups; 0 and None where they are not legal."""
    try:
        logits = as_logits(window)
        keys = as_groups(groups, samples=logits.shape[0])
    except InvalidInputError:
        return 0, None
    digest = hashlib.sha256(f"{logits.shape}\n".encode())
    digest.update(logits.astype("<f4", copy=False).tobytes())
    if keys is not None:
        # Which samples belong together is what counts; the keys themselves are pseudonyms of any type.
        digest.update(np.unique(keys, return_inverse=True)[1].astype("<i8").tobytes())
    return logits.shape[0], digest.hexdigest()


def _because(report: AdaptationReport, code: ReasonCode, text: str) -> AdaptationReport:
    return replace(report, reasons=(*report.reasons, Reason(code, text)))


def _end(report: AdaptationReport, outcome: Outcome, code: ReasonCode, text: str) -> AdaptationReport:
    return replace(_because(report, code, text), outcome=outcome)


def _candidate(
    calibration: LabeledLogits, head: PostProcessingHead, target: Floats, report: AdaptationReport
) -> PostProcessingHead:
    provenance = {
        "origin": "adaptation",
        "replaces": report.head_digest,
        "quantifier_digest": report.quantifier_digest,
        "window_digest": report.window_digest,
    }
    return fit_head(
        calibration,
        head.costs,
        target_prevalence=target,
        class_names=head.class_names,
        provenance=provenance,
    )


def _no_shift(test: ShiftTest) -> str:
    return (
        f"The prevalence does not differ significantly from what the head assumes (p = {test.p_value:.2g}, "
        f"level {test.level:g})."
    )


def _shift(estimate: PrevalenceEstimate, head: PostProcessingHead, test: ShiftTest) -> str:
    k = int(np.argmax(np.abs(estimate.prevalence - head.assumed_prevalence)))
    return (
        f"The prevalence has shifted (p = {test.p_value:.2g}, level {test.level:g}): most of all that of "
        f"{head.class_names[k]!r}, assumed {head.assumed_prevalence[k]:.3f}, estimated {estimate.prevalence[k]:.3f} "
        f"({estimate.low[k]:.3f} to {estimate.high[k]:.3f})."
    )


def _gain(gain: ExpectedGain, threshold: float, *, enough: bool) -> str:
    verdict = "more than" if enough else "which does not exceed"
    return (
        f"A refitted head lowers the expected cost from {gain.current_cost:.4f} to {gain.candidate_cost:.4f}; with "
        f"probability 3/4 by at least {gain.lower_quartile:.4f}, {verdict} the {threshold:.4f} that a swap must gain."
    )
