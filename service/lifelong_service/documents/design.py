"""Interviews and recommendations as JSON documents.

The design loop is imported inside the functions that need it: a worker starts without it.
"""

from typing import TYPE_CHECKING

from lifelong_core.decision_rules.rules import rule_document
from lifelong_core.values.errors import UnavailableError
from lifelong_service.schemas.design import (
    AttachedAnswer,
    AttachedSummary,
    EffectsAnswer,
    InterviewAnswer,
    InterviewSummary,
    MetricAnswer,
    QuestionAnswer,
    RecommendationAnswer,
    RefitAnswer,
    SaidAnswer,
    WhyAnswer,
)

if TYPE_CHECKING:
    from lifelong_core.design import Question, Recommendation
    from lifelong_core.design.interview.interview import Interview
    from lifelong_core.design.recommendation.document import Step
    from lifelong_core.design.recommendation.wording import MetricView
    from lifelong_core.store.design.effects import AttachmentEffects
    from lifelong_core.store.design.records import AttachedRecommendation, InterviewRecord, Refit

NOTHING_REFITTED: RefitAnswer = {"model": None, "head_version": None, "published": [], "kept": []}
"""As `refit_document`, without a refit."""


def interview_document(record: "InterviewRecord") -> InterviewAnswer:
    """An interview with its progress, next question, contradictions, choices and answers."""
    interview = record.interview
    question = interview.question
    return {
        **interview_summary(record),
        "progress": interview.progress.model_dump(mode="json"),
        "question": None if question is None else question_document(question, interview),
        "contradictions": [item.model_dump(mode="json") for item in interview.contradictions],
        "open_choices": [guide.model_dump(mode="json") for guide in interview.open_choices],
        "answers": interview.fingerprint.model_dump(
            mode="json", include=set(interview.fingerprint.answered_fields())
        ),
        "choices": {guide: list(options) for guide, options in interview.choices.items()},
        "history": [_said(interview, item) for item in interview.history],
    }


def interview_summary(record: "InterviewRecord") -> InterviewSummary:
    """An interview without its questions and answers; `stage` is `damaged` where it cannot be read."""
    try:
        names, stage = record.interview.class_names, str(record.interview.stage)
    except UnavailableError:  # the list stays readable, and the damaged interview can be discarded
        names, stage = None, "damaged"
    return {
        "id": str(record.id),
        "task": record.task,
        "revision": record.revision,
        "stage": stage,
        "class_names": None if names is None else list(names),
        "created_at": record.created_at.isoformat(),
        "created_by": record.created_by,
        "updated_at": record.updated_at.isoformat(),
        "updated_by": record.updated_by,
    }


def question_document(question: "Question", interview: "Interview") -> QuestionAnswer:
    """A question with its explanation and possible answers.

    `answers` is empty for questions about a number, a text or several values.
    """
    from lifelong_core.design.interview.views import possible_answers

    offered = possible_answers(question, interview.class_labels, interview.fingerprint.answers())
    return {
        "id": question.id,
        "field": question.field,
        "name": question.name,
        "kind": question.kind,
        "question": question.question,
        "example": question.example,
        "pitfall": question.pitfall,
        "asked_when": question.asked_when,
        "source": question.source,
        "answers": [
            {"value": answer.value, "label": answer.label, "explanation": answer.explanation}
            for answer in offered
        ],
    }


def _said(interview: "Interview", item: str) -> SaidAnswer:
    """An answer or a choice, as a value and as text."""
    from lifelong_core.design.interview.views import view_answer

    view = view_answer(interview, item)
    value = list(view.value) if view.is_choice else view.value
    return {"item": item, "name": view.name, "value": value, "text": view.text}


def recommendation_document(
    recommendation: "Recommendation", class_names: tuple[str, ...] | None = None
) -> RecommendationAnswer:
    """A recommendation: metrics with cards and reasons, and rejected metrics with reasons.

    `document` is the complete recommendation, which can be stored and attached to a task.
    """
    from lifelong_core.design.recommendation.wording import view_metrics

    steps = recommendation.steps
    return {
        "metrics": [_metric(view, recommendation) for view in view_metrics(recommendation, class_names)],
        "rejected": [
            {"subprocess": step.subprocess, "metric": rejected.metric, "reason": rejected.reason}
            for step in steps
            for rejected in step.rejected
        ],
        "guides": [guide.model_dump(mode="json") for step in steps for guide in step.guides],
        "open_choices": [guide.guide for guide in recommendation.open_choices],
        "actions": [
            {"subprocess": step.subprocess, "action": step.action, "notes": list(step.notes)}
            for step in steps
            if step.action is not None or step.notes
        ],
        "warnings": [warning.model_dump(mode="json") for warning in recommendation.warnings],
        "advice": [advice.model_dump(mode="json") for advice in recommendation.advice],
        "displays": list(recommendation.displays),
        "unused": [item.model_dump(mode="json") for item in recommendation.unused],
        "confidence": recommendation.confidence,
        "document": recommendation.to_document(),
    }


def _metric(view: "MetricView", recommendation: "Recommendation") -> MetricAnswer:
    metric, card = view.metric, view.card
    return {
        "label": view.label,
        "metric": metric.metric,
        "name": card.name,
        "meaning": card.meaning,
        "definition": card.definition,
        "formula": card.formula,
        "range": card.range,
        "orientation": "up" if card.orientation == "up" else "down",
        "prevalence_dependent": card.prevalence_dependent,
        "undefined": card.undefined,
        "per_class": metric.per_class,
        "parameters": metric.model_dump(mode="json")["parameters"],
        "target_class": metric.target_class,
        "target_class_name": view.target_class_name,
        "class_weights": None if metric.class_weights is None else list(metric.class_weights),
        "why": [_why(step) for step in recommendation.steps if metric in step.metrics],
    }


def _why(step: "Step") -> WhyAnswer:
    """The path that led to the metrics of a subprocess."""
    return {
        "subprocess": step.subprocess,
        "title": step.title,
        "row": step.row,
        "path": [entry.model_dump(mode="json") for entry in step.path],
        "confidence": step.confidence,
        "source": step.source,
        "guides": [guide.guide for guide in step.guides],
    }


def attached_document(
    attached: "AttachedRecommendation", class_names: tuple[str, ...] | None = None
) -> AttachedAnswer:
    """A recommendation attached to a task, with its acceptance thresholds."""
    return {
        **attached_summary(attached),
        "thresholds": [threshold.model_dump(mode="json") for threshold in attached.thresholds],
        "recommendation": recommendation_document(attached.recommendation, class_names),
    }


def attached_summary(attached: "AttachedRecommendation") -> AttachedSummary:
    """Version, digest, author and metrics of an attached recommendation; `damaged` holds the reason if unreadable."""
    labels, damage = _labels(attached)
    return {
        "task": attached.task,
        "version": attached.version,
        "digest": attached.digest,
        "created_at": attached.created_at.isoformat(),
        "created_by": attached.created_by,
        "labels": labels,
        "damaged": damage,
    }


def _labels(attached: "AttachedRecommendation") -> tuple[list[str], str | None]:
    from lifelong_core.design.recommendation.document import label_metrics

    try:
        _ = attached.thresholds
        return [label for label, _ in label_metrics(attached.recommendation)], None
    except UnavailableError as error:  # the list stays readable
        return [], error.message


def refit_document(refit: "Refit") -> RefitAnswer:
    """The heads that a recommendation published, and those that it kept; environment null is the default head."""
    return {
        "model": refit.model.reference,
        "head_version": refit.default_version,
        "published": [
            {"environment": head.environment, "version": head.record.version} for head in refit.published
        ],
        "kept": [
            {
                "environment": head.environment,
                "version": head.version,
                "cause": head.cause,
                "reason": head.reason,
            }
            for head in refit.kept
        ],
    }


def effects_document(effects: "AttachmentEffects") -> EffectsAnswer:
    """Costs and decision rule of a task, and the heads in force that differ from them."""
    return {
        "costs": effects.task.costs.tolist(),
        "decision_rule": rule_document(effects.task.decision_rule),
        "decision_rule_text": effects.rule,
        "not_executed": effects.not_executed,
        "differing_heads": [
            {
                "model": head.model,
                "environment": head.environment,
                "version": head.version,
                "differs_in": list(head.differs_in),
                "sentence": head.sentence,
            }
            for head in effects.differing
        ],
        "hint": effects.hint,
    }
