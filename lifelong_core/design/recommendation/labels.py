"""Names that tell recommended metrics apart."""

from collections import Counter

from lifelong_core.design.recommendation.document import Recommendation, RecommendedMetric


def label_metrics(recommendation: Recommendation) -> tuple[tuple[str, RecommendedMetric], ...]:
    """The recommended metrics, each under a label of its own.

    Where two have the same label, such as EC with different costs, the second is `EC (2)`.
    """
    seen: Counter[str] = Counter()
    found: list[tuple[str, RecommendedMetric]] = []
    for metric in recommendation.metrics:
        seen[metric.label] += 1
        count = seen[metric.label]
        found.append((metric.label if count == 1 else f"{metric.label} ({count})", metric))
    return tuple(found)
