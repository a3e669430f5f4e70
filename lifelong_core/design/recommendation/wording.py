"""Terms and recommended metrics as the terminal, the browser and reports show them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from lifelong_core.design.method.loader import load_method
from lifelong_core.design.method.schema import Confidence, Display
from lifelong_core.design.recommendation.document import (
    DecidedBy,
    Recommendation,
    RecommendedMetric,
    label_metrics,
)
from lifelong_core.metrics import METRICS
from lifelong_core.metrics.declaration import MetricInfo

CONFIDENCE_WORDS: Mapping[Confidence, str] = MappingProxyType(
    {
        "stated": "stated by a source",
        "forced": "the only consistent reading",
        "inferred": "inferred",
        "not_in_source": "our proposal",
    }
)
"""Short texts of confidences; the method has sentences."""

DECIDED_BY: Mapping[DecidedBy, str] = MappingProxyType(
    {"person": "a person decided", "answers": "by the answers", "default": "by default", "nobody": "open"}
)
"""Texts for the ways in which a guide is decided."""

DISPLAY_NAMES: Mapping[Display, str] = MappingProxyType(
    {
        "confusion_matrix": "confusion matrix",
        "roc_curve": "ROC curve",
        "precision_recall_curve": "precision-recall curve",
        "reliability_diagram": "reliability diagram",
        "decision_curve": "decision curve",
    }
)
"""Names of plots and tables."""

DIRECTIONS: Mapping[str, str] = MappingProxyType({"up": "higher is better", "down": "lower is better"})
"""Which values of a metric are better, by its orientation."""

THRESHOLD_RELATIONS: Mapping[str, str] = MappingProxyType({"up": "at least", "down": "at most"})
"""How a value compares with an acceptance threshold that it reaches, by the orientation of the metric."""

FEWEST_DIGITS, MOST_DIGITS = 4, 17
"""with 17 digits, every number has a text of its own"""


def format_distinct(first: float, second: float) -> tuple[str, str]:
    """Two numbers with four digits, or with as many as are needed to tell them apart.

    Examples:
        >>> format_distinct(0.87654321, 0.95)
        ('0.8765', '0.95')
        >>> format_distinct(0.9499996, 0.95)
        ('0.9499996', '0.95')
        >>> format_distinct(0.95, 0.95)
        ('0.95', '0.95')
    """
    for digits in range(FEWEST_DIGITS, MOST_DIGITS):
        one, other = f"{first:.{digits}g}", f"{second:.{digits}g}"
        if first == second or float(one) != float(other):
            return one, other
    return f"{first:.{MOST_DIGITS}g}", f"{second:.{MOST_DIGITS}g}"


@dataclass(frozen=True)
class MetricView:
    """A recommended metric with its card from the catalogue and the names of classes."""

    label: str
    metric: RecommendedMetric
    card: MetricInfo
    target_class_name: str | None

    @property
    def direction(self) -> str:
        """Which values are better, in words."""
        return DIRECTIONS[self.card.orientation]


def view_metric(
    metric: RecommendedMetric, class_labels: Sequence[str], label: str | None = None
) -> MetricView:
    """A recommended metric, as all surfaces show it.

    Args:
        metric: the metric.
        class_labels: the names of the classes, or their numbers.
        label: a label that no other metric has; None: the label of the metric.
    """
    target = metric.target_class
    name = None if target is None else class_labels[target]
    return MetricView(label or metric.label, metric, METRICS[metric.metric], name)


def view_metrics(
    recommendation: Recommendation, class_names: Sequence[str] | None = None
) -> tuple[MetricView, ...]:
    """All recommended metrics, each once, under labels that differ."""
    labels = recommendation.fingerprint.class_labels(class_names)
    return tuple(view_metric(metric, labels, label) for label, metric in label_metrics(recommendation))


def option_label(guide: str, option: str) -> str:
    """An option of a guide with the names of its metrics, or the parameter values that it sets."""
    chosen = load_method().guide(guide).option(option)
    names = [METRICS[entry.metric].name for entry in chosen.metrics]
    values = [f"{name} = {value:g}" for name, value in chosen.parameters.items()]
    return f"{' and '.join(names)} ({option})" if names else ", ".join(values)
