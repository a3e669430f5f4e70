"""Warnings of an estimate: limits that its intervals do not include."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from lifelong_core.deploy.label_shift.result import AssumptionTest
from lifelong_core.deploy.performance.by_prevalence import agree_on_accuracy
from lifelong_core.deploy.performance.performance_estimate import PerformanceWarning
from lifelong_core.deploy.performance.unlabelled_window import JudgedHead

CODES: Mapping[str, str] = MappingProxyType(
    {
        "assumption_rejected": "the assumption test found a shift beyond the prevalence",
        "methods_disagree": "posteriors and rates give intervals of the accuracy that do not overlap",
        "logits_rescaled": "the window's logits have another scale than the calibration set's, and were rescaled",
        "calibration_limited": "the calibration set limits every estimate",
        "class_never_predicted": "a class is never predicted in the calibration set",
        "few_samples": "the window is small",
    }
)
"""Codes of the warnings, with their meaning."""

FEWEST_SAMPLES = 50
"""Effective samples of a window below which an estimate is warned of."""


def assumption_warning(test: AssumptionTest) -> Iterator[PerformanceWarning]:
    """Warning of a rejected assumption test."""
    if test.rejected:
        causes = "; ".join(one.text for one in test.disagreements[:3])
        yield PerformanceWarning(
            "assumption_rejected",
            f"More than the prevalence has changed (p = {test.p_value:.2g}), so the estimate may be wrong by more than"
            f" its interval{f': {causes}' if causes else ''}.",
        )


def size_warning(effective_samples: float) -> Iterator[PerformanceWarning]:
    """Warning of a small window."""
    if effective_samples < FEWEST_SAMPLES:
        yield PerformanceWarning(
            "few_samples",
            f"The window has {effective_samples:.0f} effective samples; intervals are reliable from"
            f" {FEWEST_SAMPLES} on.",
        )


def prevalence_warnings(judged: JudgedHead, method: str, confidence: float) -> Iterator[PerformanceWarning]:
    """Warnings of the methods that use the estimated prevalence."""
    match = judged.evidence.match(method)
    if match.factor != 1:
        yield PerformanceWarning(
            "logits_rescaled",
            f"The window's logits are {1 / match.factor:.2f} times as large as its prevalence explains; they were"
            " rescaled for the estimate.",
        )
    for caution in match.analysis.estimate.cautions:
        yield PerformanceWarning("calibration_limited", caution)
    if not agree_on_accuracy(judged, method, confidence):
        yield PerformanceWarning(
            "methods_disagree",
            "Posteriors and class-conditional rates give intervals of the accuracy that do not overlap: one of their"
            " assumptions fails.",
        )


def fallback_warning(classes: tuple[int, ...]) -> Iterator[PerformanceWarning]:
    """Warning of classes without a parameter of their own."""
    if classes:
        named = ", ".join(str(one) for one in classes[:10])
        yield PerformanceWarning(
            "class_never_predicted",
            f"Classes never predicted in the calibration set have the parameter of all classes: {named}"
            f"{', ...' if len(classes) > 10 else ''}.",
        )
