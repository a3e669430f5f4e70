"""The difference estimate, combined with the label-free estimate where its assumption holds."""

from collections.abc import Mapping

from lifelong_core.deploy.performance.estimate import EstimatedMetric
from lifelong_core.deploy.performance.labelled.estimate import LabelledEstimate


def combined_with(
    difference: LabelledEstimate,
    label_free: Mapping[str, EstimatedMetric],
    *,
    assumption_rejected: bool,
    confidence: float = 0.95,
) -> LabelledEstimate:
    """Combine a difference estimate with the label-free estimate of the same window.

    The label-free estimate has the weight that its own interval deserves, less where the labels contradict it. It has
    none where the assumption test rejects: a label-free estimate that is trusted under a shift of another kind misses
    the truth without a sign of it.

    Args:
        difference: estimate with labels, of `difference_estimate`.
        label_free: `estimates` of the PerformanceEstimate of the same window and head.
        assumption_rejected: whether the test "only the prevalence changed" rejects on this window.
        confidence: nominal coverage of the intervals of `label_free`.

    Returns:
        The estimate with method "combined", or `difference` with a caution where the assumption is rejected.
    """
    raise NotImplementedError
