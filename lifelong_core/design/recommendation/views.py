"""What the API, the console and the terminal show of recommended metrics and of options of guides."""

from collections.abc import Sequence
from dataclasses import dataclass

from lifelong_core.design.interview.wording import DIRECTIONS
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.recommendation.document import Recommendation, RecommendedMetric
from lifelong_core.design.recommendation.labels import label_metrics
from lifelong_core.metrics import METRICS
from lifelong_core.metrics.declaration import MetricInfo


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
