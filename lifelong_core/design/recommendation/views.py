"""A recommendation as the API, the terminal and the browser show it: metrics with their cards and reasons."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from lifelong_core.design.method.conditions import ParameterValue
from lifelong_core.design.method.schema import Confidence, Display
from lifelong_core.design.recommendation.document import (
    Advice,
    GuideOutcome,
    PathEntry,
    Recommendation,
    RecommendedMetric,
    RelationWarning,
    Step,
    UnusedAnswer,
)
from lifelong_core.design.recommendation.wording import MetricView, view_metrics
from lifelong_core.values.documents import Frozen, FrozenDocument

CARD = (
    "name",
    "meaning",
    "definition",
    "formula",
    "range",
    "orientation",
    "prevalence_dependent",
    "undefined",
)
"""Fields of a card of the catalogue."""


class WhyAnswer(Frozen):
    """The answers and guides that led to a metric."""

    subprocess: str
    title: str
    row: str
    path: tuple[PathEntry, ...]
    confidence: Confidence
    source: str
    guides: tuple[str, ...]


class MetricAnswer(Frozen):
    """A recommended metric with its card, and why it is recommended."""

    label: str
    metric: str
    name: str
    meaning: str
    definition: str
    formula: str
    range: str
    orientation: Literal["up", "down"]
    prevalence_dependent: bool | None
    undefined: str
    per_class: bool
    parameters: Mapping[str, ParameterValue] = Field(description="Parameter of the metric -> its value.")
    target_class: int | None
    target_class_name: str | None
    class_weights: tuple[float, ...] | None
    why: tuple[WhyAnswer, ...]


class RejectedAnswer(Frozen):
    """A metric that was rejected, and why."""

    subprocess: str
    metric: str
    reason: str


class ActionAnswer(Frozen):
    """A further action that the method recommends."""

    subprocess: str
    action: str | None
    notes: tuple[str, ...]


class RecommendationAnswer(FrozenDocument):
    """A recommendation as text; `document` is the complete recommendation, to be stored and attached to a task."""

    metrics: tuple[MetricAnswer, ...]
    rejected: tuple[RejectedAnswer, ...]
    guides: tuple[GuideOutcome, ...]
    open_choices: tuple[str, ...]
    actions: tuple[ActionAnswer, ...]
    warnings: tuple[RelationWarning, ...]
    advice: tuple[Advice, ...]
    displays: tuple[Display, ...]
    unused: tuple[UnusedAnswer, ...]
    confidence: Confidence
    document: Recommendation


def view_recommendation(
    recommendation: Recommendation, class_names: Sequence[str] | None = None
) -> RecommendationAnswer:
    """A recommendation as text.

    Args:
        recommendation: the recommendation.
        class_names: in the order of the scores; None: classes are numbers.
    """
    steps = recommendation.steps
    return RecommendationAnswer(
        metrics=tuple(_card(view, steps) for view in view_metrics(recommendation, class_names)),
        rejected=tuple(
            RejectedAnswer(subprocess=step.subprocess, metric=rejected.metric, reason=rejected.reason)
            for step in steps
            for rejected in step.rejected
        ),
        guides=tuple(guide for step in steps for guide in step.guides),
        open_choices=tuple(guide.guide for guide in recommendation.open_choices),
        actions=tuple(
            ActionAnswer(subprocess=step.subprocess, action=step.action, notes=step.notes)
            for step in steps
            if step.action is not None or step.notes
        ),
        warnings=recommendation.warnings,
        advice=recommendation.advice,
        displays=recommendation.displays,
        unused=recommendation.unused,
        confidence=recommendation.confidence,
        document=recommendation,
    )


def _card(view: MetricView, steps: Sequence[Step]) -> MetricAnswer:
    metric = view.metric
    return MetricAnswer(
        label=view.label,
        target_class_name=view.target_class_name,
        why=tuple(_reason(step) for step in steps if metric in step.metrics),
        **{name: getattr(metric, name) for name in RecommendedMetric.model_fields},
        **{name: getattr(view.card, name) for name in CARD},
    )


def _reason(step: Step) -> WhyAnswer:
    parts = {name: getattr(step, name) for name in WhyAnswer.model_fields if name != "guides"}
    return WhyAnswer(**parts, guides=tuple(guide.guide for guide in step.guides))
