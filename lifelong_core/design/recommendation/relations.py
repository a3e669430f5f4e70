"""Recommended metrics that say much the same, of which a ranking counts one (thesis tables 4.2 and 4.3)."""

from collections.abc import Sequence
from itertools import combinations

from lifelong_core.design.method.schema import Relations
from lifelong_core.design.recommendation.document import RecommendedMetric, RelationWarning, Step
from lifelong_core.metrics import METRICS


def relation_between(first: str, second: str, relations: Relations) -> RelationWarning | None:
    """What makes two metrics say much the same; None if no relation is known.

    Args:
        first: acronym.
        second: acronym of another metric.
        relations: of the recommendation document, beside those of thesis table 4.2.

    Examples:
        >>> from lifelong_core.design.method.loader import load_method
        >>> relation_between("BA", "TPR", load_method().relations).statement
        'BA is the mean of TPR over the classes'
        >>> relation_between("BA", "AUROC", load_method().relations) is None
        True
    """
    for relation in METRICS[first].relations:
        if relation.other(first) == second:
            source = f"thesis {relation.source}"
            return RelationWarning(metrics=(first, second), statement=relation.statement, source=source)
    for further in relations.further:
        if set(further.metrics) == {first, second}:
            return RelationWarning(
                metrics=(first, second), statement=further.statement, source=further.source
            )
    return None


def warnings_among(steps: tuple[Step, ...], relations: Relations) -> tuple[RelationWarning, ...]:
    """Warnings about pairs of recommended metrics with similar information, but for pairs that belong together."""
    names = list(dict.fromkeys(item.metric for step in steps for item in step.metrics))
    companions = [set(pair.metrics) for pair in relations.companions]
    found = (
        relation_between(*pair, relations) for pair in combinations(names, 2) if set(pair) not in companions
    )
    return tuple(warning for warning in found if warning is not None)


def same_information(
    metric: RecommendedMetric, others: Sequence[RecommendedMetric], relations: Relations
) -> str | None:
    """Why a metric says much the same as one of others, in a sentence; None: it adds something.

    A metric at a target is one of its own cut-off, so it is related only to metrics at the same target.

    Examples:
        >>> from lifelong_core.design.method.loader import load_method
        >>> known = load_method().relations
        >>> area, sensitivity = (RecommendedMetric(metric=name, per_class=True) for name in ("AUROC", "TPR"))
        >>> same_information(sensitivity, [area, RecommendedMetric(metric="BA", per_class=False)], known)
        'it says much the same as BA: BA is the mean of TPR over the classes'
        >>> same_information(area, [sensitivity], known) is None
        True
    """
    for other in others:
        if metric.parameters.get("target") != other.parameters.get("target"):
            continue
        if metric.metric == other.metric:
            return f"it is {other.metric} with other parameters"
        relation = relation_between(other.metric, metric.metric, relations)
        if relation is not None:
            return f"it says much the same as {other.label}: {relation.statement}"
    return None
