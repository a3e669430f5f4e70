"""View of a recommendation for the result page: metric cards, their paths, and rejected metrics."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lifelong_service.console.interview.inputs import MOST_BOXES

if TYPE_CHECKING:
    from lifelong_core.design import Recommendation, RecommendedMetric, Step
    from lifelong_core.design.interview.interview import Interview
    from lifelong_core.design.method.schema import Confidence
    from lifelong_core.design.recommendation.wording import MetricView


def result_view(interview: "Interview", recommendation: "Recommendation") -> dict[str, Any]:
    """Return all values of a recommendation that the page shows."""
    from lifelong_core.design.method.loader import load_method
    from lifelong_core.design.recommendation.wording import CONFIDENCE_WORDS, DISPLAY_NAMES
    from lifelong_core.metrics import METRICS

    labels = interview.class_labels
    meanings = load_method().meta.confidence
    names = list(dict.fromkeys(metric.label for metric in recommendation.metrics))
    full = {metric.label: METRICS[metric.metric].name for metric in recommendation.metrics}
    steps = [_step(step, labels) for step in recommendation.steps]
    _number(steps, names)
    return {
        "labels": [(full[label], label) for label in names],
        "steps": [step for step in steps if step["metrics"] or step["open"]],
        "empty": [step for step in steps if not (step["metrics"] or step["open"])],
        "open": [_guide(guide) for guide in recommendation.open_choices],
        "confidence": _sureness(recommendation.confidence),
        "legend": [(words, meanings[name]) for name, words in CONFIDENCE_WORDS.items()],
        "warnings": recommendation.warnings,
        "advice": _by_category(recommendation),
        "displays": [DISPLAY_NAMES[name] for name in recommendation.displays],
        "unused": [unused.item for unused in recommendation.unused],
        "method_version": recommendation.method_version,
    }


def _number(steps: list[dict[str, Any]], names: list[str]) -> None:
    """Set the id that the list at the top links to, on the first card of every metric."""
    waiting = {name: f"metric-{index}" for index, name in enumerate(names)}
    for card in (card for step in steps for card in step["metrics"]):
        card["id"] = waiting.pop(card["label"], None)


def format_range(text: str) -> str:
    """Return the range of a metric in mathematical notation.

    Examples:
        >>> format_range("(-inf,inf); [0,sqrt2] for c>=0")
        '(-∞, ∞); [0, √2] for c ≥ 0'
    """
    signs = {",": ", ", "-inf": "-∞", "inf": "∞", ">=": " ≥ ", "sqrt2": "√2"}
    for written, printed in signs.items():
        text = text.replace(written, printed)
    return text


def _step(step: "Step", labels: Sequence[str]) -> dict[str, Any]:
    from lifelong_core.metrics import METRICS

    return {
        "id": step.subprocess,
        "title": step.title,
        "metrics": [_card(metric, labels) for metric in step.metrics],
        "path": step.path,
        "guides": [_guide(guide) for guide in step.guides],
        "open": [guide for guide in step.guides if not guide.chosen],
        "notes": step.notes,
        "action": step.action,
        "rejected": [
            {"metric": item.metric, "name": METRICS[item.metric].name, "reason": item.reason}
            for item in step.rejected
        ],
        "confidence": _sureness(step.confidence),
        "source": step.source,
    }


def _by_category(recommendation: "Recommendation") -> list[tuple[str, list[Any]]]:
    """Return the advice by category, in the order of the method."""
    found: dict[str, list[Any]] = {}
    for advice in recommendation.advice:
        found.setdefault(advice.category.capitalize(), []).append(advice)
    return list(found.items())


def _sureness(confidence: "Confidence") -> dict[str, str]:
    from lifelong_core.design.method.loader import load_method
    from lifelong_core.design.recommendation.wording import CONFIDENCE_WORDS

    return {
        "name": confidence,
        "text": CONFIDENCE_WORDS[confidence],
        "meaning": load_method().meta.confidence[confidence],
    }


def _guide(guide: Any) -> dict[str, Any]:
    from lifelong_core.design.recommendation.wording import option_label

    return {
        "id": guide.guide,
        "title": guide.title,
        "why": guide.why,
        "decided_by": guide.decided_by,
        "chosen": [option_label(guide.guide, option) for option in guide.chosen],
        "options": [option_label(guide.guide, option) for option in guide.options],
        "can_change": len(guide.options) > 1,
    }


def _card(metric: "RecommendedMetric", labels: Sequence[str]) -> dict[str, Any]:
    """Return a metric with its card, its parameters and its classes."""
    from lifelong_core.design.recommendation.wording import view_metric

    view = view_metric(metric, labels)
    return {
        "label": view.label,
        "name": view.card.name,
        "meaning": view.card.meaning,
        "range": format_range(view.card.range),
        "better": view.direction,
        "scope": _reported_for(view),
        "costs": _costs(metric, labels),
        "values": _values(metric, labels),
    }


def _reported_for(view: "MetricView") -> str:
    if not view.metric.per_class:
        return "one number for all classes"
    return "for each class" if view.target_class_name is None else f"for the class {view.target_class_name}"


def _costs(metric: "RecommendedMetric", labels: Sequence[str]) -> dict[str, Any] | None:
    """Return the cost matrix with the names of its rows and columns."""
    from lifelong_core.design.interview.class_names import decision_names

    costs: Any = metric.parameters.get("costs")
    if costs is None or len(labels) > MOST_BOXES:
        return None
    columns = decision_names(labels, len(costs[0]))
    rows = [(label, [f"{cost:g}" for cost in row]) for label, row in zip(labels, costs, strict=True)]
    return {"columns": columns, "rows": rows}


def _values(metric: "RecommendedMetric", labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return the other parameters, by name."""
    from lifelong_core.metrics import METRICS

    found: list[tuple[str, str]] = []
    if METRICS[metric.metric].prevalence_dependent and "prevalence" not in metric.parameters:
        found.append(("Class mix", "the value depends on it"))
    for name, value in metric.parameters.items():
        given: Any = value
        match name:
            case "costs" if len(labels) <= MOST_BOXES:
                pass  # they are shown as a table
            case "costs":
                found.append(("Costs", f"of {len(labels)} classes, as answered"))
            case "prevalence" if len(labels) > MOST_BOXES:
                found.append(("For the class mix", f"of {len(labels)} classes, as answered"))
            case "prevalence":
                shares = zip(labels, given, strict=True)
                found.append(
                    ("For the class mix", ", ".join(f"{label} {share:.4g}" for label, share in shares))
                )
            case "target":
                found.append(
                    ("At the cut-off where", f"{METRICS[given[0]].name} ({given[0]}) is {given[1]:g}")
                )
            case "threshold":
                found.append(("Acting above a risk of", f"{given:g}"))
            case _:
                found.append((name, f"{given:g}"))
    if metric.class_weights is not None and len(labels) > MOST_BOXES:
        found.append(("Weights in the mean", f"of {len(labels)} classes, as answered"))
    elif metric.class_weights is not None:
        weights = zip(labels, metric.class_weights, strict=True)
        found.append(("Weights in the mean", ", ".join(f"{label} {weight:g}" for label, weight in weights)))
    return found
