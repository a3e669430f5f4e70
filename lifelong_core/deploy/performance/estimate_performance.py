"""How good a head's decisions are in a window without labels."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.checks import as_level
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.label_shift.assumption_test import AssumptionReference, assumption_test
from lifelong_core.deploy.label_shift.result import AssumptionTest
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.performance import warnings
from lifelong_core.deploy.performance.by_confidence import estimate_by_confidence
from lifelong_core.deploy.performance.by_prevalence import estimate_by_prevalence
from lifelong_core.deploy.performance.choice import MethodChoice, choose_method
from lifelong_core.deploy.performance.confidence.registry import CONFIDENCE_METHODS
from lifelong_core.deploy.performance.derived_metrics import RequestedMetrics
from lifelong_core.deploy.performance.performance_estimate import ASSUMPTIONS, AUTO, PerformanceEstimate
from lifelong_core.deploy.performance.unlabelled_window import UnlabelledWindow
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier
from lifelong_core.deploy.quantification.registry import quantifier
from lifelong_core.deploy.quantification.uncertainty import Clusters
from lifelong_core.deploy.quantification.window_summary import WindowSummary
from lifelong_core.values.arrays import Floats, Logits, as_groups, as_logits
from lifelong_core.values.errors import InvalidInputError

PERFORMANCE_METHODS = (AUTO, *ASSUMPTIONS, *CONFIDENCE_METHODS)
"""Names of all methods."""
_MOST_TESTED = 20_000
"""Rows of a window, evenly spread, whose features the assumption test uses; it sees any larger shift with these."""


def estimate_performance(
    calibration: LabeledLogits | FittedQuantifier,
    window: ArrayLike | WindowSummary,
    head: PostProcessingHead,
    *,
    method: str = AUTO,
    metrics: Sequence[str] = ("AC", "EC"),
    groups: ArrayLike | None = None,
    confidence: float = 0.95,
    rng: int | np.random.Generator = 0,  # noqa: ARG001 - methods that draw samples will need it
) -> PerformanceEstimate:
    """Estimate how good the decisions of a head are in a window without labels.

    - `posteriors`: the class densities of the quantifier and the estimated prevalence give each sample's probabilities
      of the true class.
    - `rates`: P(decision | class) of the calibration set times the estimated prevalence (thesis Prop. 2.25).
    - `matched`: the mean of both, after the window's logits are rescaled if their scale is not that of the calibration
      set. It is right under prevalence shifts and under a common factor of all logits. A constant shift of one class's
      logit biases it.
    - `auto`: the best of these three in windows simulated from the calibration set (`choice.choose_method`).
    - the confidence methods of Li et al. 2022 (AC to CS-TS-ATC), for comparison: they ignore that the prevalence may
      have shifted.

    The intervals count the sampling of the window and of the calibration set (of their groups, where known), and the
    uncertainty of the estimated prevalence. They hold under the method's assumption; the warnings say where it fails.

    Args:
        calibration: labelled logits of the model, or a quantifier fitted on them, by default `auto`.
        window: logits, shape (N, C), N >= 1, or a summary of them by the same quantifier.
        head: the head whose decisions are judged; it may be another than the one that decided.
        method: one of PERFORMANCE_METHODS.
        metrics: acronyms of METRICS that count decisions, and AUROC. A metric of one class against the rest gives one
            value for each class; "TPR[2]" asks for one class only.
        groups: shape (N,); samples of one group may depend on each other. A summary contains its groups.
        confidence: nominal coverage of each interval.
        rng: seed or generator; the present methods draw no random numbers of it, so equal inputs give equal results.

    Raises:
        InvalidInputError: a shape or a value does not fit, or an unknown method or metric.
        UnidentifiableError: the calibration set cannot tell the classes apart.

    Examples:
        >>> from lifelong_core.deploy import fit_head
        >>> rng = np.random.default_rng(1)
        >>> def sample(*counts):
        ...     labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        ...     return 2 * np.eye(len(counts))[labels] + rng.normal(size=(labels.size, len(counts))), labels
        >>> calibration = LabeledLogits(*sample(400, 400))
        >>> head = fit_head(calibration, [[0, 1], [1, 0]])
        >>> logits, labels = sample(1800, 200)
        >>> found = estimate_performance(calibration, logits, head, metrics=["AC", "PPV"])
        >>> {name: round(one.value, 2) for name, one in found.estimates.items()}
        {'AC': 0.92, 'PPV': 0.53}
        >>> float((head.apply(logits).decisions == labels).mean())
        0.914
    """
    level, chosen = as_level(confidence, "confidence"), _checked_method(method)
    data = calibration.calibration if isinstance(calibration, FittedQuantifier) else calibration
    if data.classes != head.classes:
        raise InvalidInputError(
            f"the calibration set has {data.classes} classes, the head {head.classes}.", field="head"
        )
    wanted = RequestedMetrics.of(metrics, data.classes)
    if chosen in CONFIDENCE_METHODS:
        return _by_confidence(calibration, window, head, chosen, wanted, groups, level)
    fitted = calibration if isinstance(calibration, FittedQuantifier) else quantifier("auto").fit(data)
    analysis = fitted.analyse(window, groups=groups, confidence=level)
    evidence = UnlabelledWindow(fitted, window, groups, analysis)
    test = _assumption(fitted.assumption_reference, window, analysis.estimate.effective_n)
    return judge_head(evidence, head, test, wanted, method=chosen)


def judge_head(
    evidence: UnlabelledWindow,
    head: PostProcessingHead,
    test: AssumptionTest,
    wanted: RequestedMetrics,
    *,
    method: str = AUTO,
) -> PerformanceEstimate:
    """Estimate the performance of one head; several heads may share the evidence.

    Args:
        evidence: the window and its estimated prevalence, whose confidence the intervals have.
        head: the head.
        test: assumption test of the window.
        wanted: the metrics.
        method: `auto` or one of ASSUMPTIONS.
    """
    choice = evidence.quantifier.once(choose_method) if method == AUTO else MethodChoice(method, {})
    judged = evidence.judge(head)
    found = estimate_by_prevalence(judged, choice.method, wanted.acronyms)
    analysis = evidence.match(choice.method).analysis
    estimate, level = analysis.estimate, evidence.analysis.estimate.confidence
    return PerformanceEstimate(
        method=choice.method,
        estimates=wanted.select(found.intervals(analysis, level)),
        confusion_matrix=found.confusion,
        prevalence=estimate.prevalence,
        confidence=level,
        samples=estimate.n,
        effective_samples=estimate.effective_n,
        validated_error=choice.validated_error,
        assumptions=(ASSUMPTIONS[choice.method],),
        warnings=(
            *warnings.assumption_warning(test),
            *warnings.size_warning(estimate.effective_n),
            *warnings.prevalence_warnings(judged, choice.method, level),
        ),
        head_digest=head.digest,
    )


def _by_confidence(
    calibration: LabeledLogits | FittedQuantifier,
    window: ArrayLike | WindowSummary,
    head: PostProcessingHead,
    method: str,
    wanted: RequestedMetrics,
    groups: ArrayLike | None,
    confidence: float,
) -> PerformanceEstimate:
    if isinstance(calibration, FittedQuantifier):
        fitted, data = calibration, calibration.calibration
    else:
        fitted, data = None, calibration
    rows = _rows(window, groups, fitted, data)
    kind = CONFIDENCE_METHODS[method]
    found = estimate_by_confidence(kind, data, head, rows, wanted.acronyms, confidence)
    reference = AssumptionReference.of(data) if fitted is None else fitted.assumption_reference
    test = _assumption(reference, window, found.effective_samples)
    return PerformanceEstimate(
        method=method,
        estimates=wanted.select(found.intervals),
        confusion_matrix=found.confusion,
        prevalence=found.confusion.sum(axis=1) / found.confusion.sum(),
        confidence=confidence,
        samples=round(float(rows[1].sum())),
        effective_samples=found.effective_samples,
        validated_error=None,
        assumptions=(kind.assumption,),
        warnings=(
            *warnings.assumption_warning(test),
            *warnings.size_warning(found.effective_samples),
            *warnings.fallback_warning(found.fallback_classes),
        ),
        head_digest=head.digest,
    )


def _rows(
    window: ArrayLike | WindowSummary,
    groups: ArrayLike | None,
    fitted: FittedQuantifier | None,
    data: LabeledLogits,
) -> tuple[Logits, Floats, Clusters | None]:
    """Distinct rows of the window, their numbers of samples, and the groups of the samples."""
    if isinstance(window, WindowSummary):
        if fitted is None:
            raise InvalidInputError(
                "expected the quantifier that made the summary.",
                field="calibration",
                hint="Pass the fitted quantifier in place of the calibration set.",
            )
        clusters = fitted.clusters(window, groups, window.samples)
        logits, counts = window.points()
        return logits, counts.astype(np.float64), clusters
    logits = as_logits(window, classes=data.classes)
    if not len(logits):
        raise InvalidInputError("expected at least one sample.", field="logits")
    keys = as_groups(groups, samples=len(logits))
    return logits, np.ones(len(logits)), None if keys is None else Clusters.of(keys)


def _assumption(
    reference: AssumptionReference, window: ArrayLike | WindowSummary, effective_samples: float
) -> AssumptionTest:
    if isinstance(window, WindowSummary):
        means, samples = window.moments / window.samples, window.samples
    else:
        rows = as_logits(window)
        chosen = np.unique(np.linspace(0, len(rows) - 1, _MOST_TESTED).astype(np.int64))
        means, samples = reference.feature_sums(rows[chosen]) / chosen.size, chosen.size
    return assumption_test(reference, means, n=samples, effective_n=min(effective_samples, samples))


def _checked_method(method: str) -> str:
    if method not in PERFORMANCE_METHODS:
        raise InvalidInputError(
            f"there is no method {method!r}.",
            field="method",
            hint=f"Use one of {', '.join(PERFORMANCE_METHODS)}.",
        )
    return method
