"""Reasons of a recommendation: paths, rejected metrics, and metrics that carry similar information."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from lifelong_core.design.method.schema import (
    Confidence,
    Implied,
    Method,
    MetricEntry,
    Relations,
    Rule,
    weakest,
)
from lifelong_core.design.problem_fingerprint import ProblemFingerprint
from lifelong_core.design.recommendation.document import (
    DecidedBy,
    GuideOutcome,
    PathEntry,
    RecommendedMetric,
    RejectedMetric,
    RelationWarning,
    Step,
)
from lifelong_core.design.recommendation.walk import Decision, MetricCandidate, StepResult
from lifelong_core.metrics import METRICS

REPORTING = ("target_class", "class_weights")
"""Parameters of the report of a metric, not of its computation."""


def step_of(method: Method, result: StepResult, fingerprint: ProblemFingerprint) -> Step:
    """The recommendation of one subprocess, with the path that led to it."""
    first, last = result.rows[0], result.rows[-1]
    also = [last.also] if result.also and last.also is not None else []
    path = tuple(_path(method, result, fingerprint))
    guides = tuple(outcome for decision in result.decisions for outcome in _outcomes(decision))
    metrics = tuple(_recommended(item, fingerprint) for item in result.metrics)
    return Step(
        subprocess=result.table.id,
        title=result.table.title,
        row=first.id,
        fallback_row=last.id if last is not first else None,
        action=first.action,
        notes=tuple(item.note for item in (*result.rows, *also) if item.note is not None),
        path=path,
        metrics=metrics,
        rejected=tuple(_rejected(result, {item.metric for item in metrics})),
        guides=guides,
        confidence=weakest(
            item.confidence for item in (*result.rows, *also, *guides, *_implied(method, path))
        ),
        source="; ".join(dict.fromkeys(row.source for row in result.rows)),
    )


def _recommended(candidate: MetricCandidate, fingerprint: ProblemFingerprint) -> RecommendedMetric:
    known = candidate.parameters(fingerprint)
    parameters = {name: value for name, value in known.items() if name not in REPORTING}
    reporting = {name: known.get(name) for name in REPORTING}
    values = {
        "metric": candidate.metric,
        "per_class": METRICS[candidate.metric].is_per_class,
        "parameters": parameters,
    }
    return RecommendedMetric.model_validate(values | reporting)


def _path(method: Method, result: StepResult, fingerprint: ProblemFingerprint) -> Iterator[PathEntry]:
    """The answers that rows and guides used, each once."""
    assumed = result.rows[0].fallback or {}
    fields = [field for row in result.rows for field in row.when]
    fields += [field for decision in result.decisions for field in _looked_at(decision)]
    for field in dict.fromkeys(fields):
        question = method.question(field)
        answer = fingerprint.answers().get(field) if field in assumed else result.answers.get(field)
        if answer is None:
            continue
        implied = question.implied if getattr(fingerprint, field) is None else None
        yield PathEntry(
            item=question.id,
            field=field,
            name=question.name,
            answer=answer,
            label=question.describe(answer),
            implied=None if implied is None else implied.why,
        )


def _looked_at(decision: Decision) -> Iterator[str]:
    """The fields of the rules up to the deciding one."""
    if not decision.by_person or decision.like is not None:
        for rule in decision.guide.rules:
            yield from rule.when.fields()
            if rule is decision.rule:
                break
    for other in (decision.like, *decision.then):
        if other is not None:
            yield from _looked_at(other)


def _implied(method: Method, path: tuple[PathEntry, ...]) -> list[Implied]:
    rules = [method.question(entry.field).implied for entry in path if entry.implied is not None]
    return [rule for rule in rules if rule is not None]


def _outcomes(decision: Decision) -> Iterator[GuideOutcome]:
    guide = decision.guide
    yield GuideOutcome(
        guide=guide.id,
        title=guide.title,
        options=tuple(option.id for option in guide.options),
        several=guide.several,
        chosen=tuple(option.id for option in decision.options),
        decided_by=_decided_by(decision),
        why=_why(decision),
        default=guide.default.option if guide.default is not None else None,
        confidence=_confidence(decision),
        arguments=guide.arguments,
        source=guide.source,
    )
    for other in decision.then:
        yield from _outcomes(other)


def _decided_by(decision: Decision) -> DecidedBy:
    if decision.by_person:
        return "person"
    if decision.rule is None:
        return "nobody"
    return "answers" if isinstance(decision.rule, Rule) else "default"


def _why(decision: Decision) -> str:
    if decision.by_person:
        return "You decided for it."
    if decision.rule is None:
        return "No source says what to do for these answers; the arguments may help you to decide."
    also = f" {_why(decision.like)}" if decision.like is not None else ""
    return decision.rule.why + also


def _confidence(decision: Decision) -> Confidence:
    """The confidence of the deciding rule; a person's choice and an open choice do not lower it."""
    own: Confidence = "stated" if decision.rule is None else decision.rule.confidence
    return own if decision.like is None else weakest((own, _confidence(decision.like)))


def _rejected(result: StepResult, recommended: set[str]) -> Iterator[RejectedMetric]:
    for metric in result.table.pool:
        if metric not in recommended:
            yield RejectedMetric(metric=metric, reason=_reason(result, metric))


def _reason(result: StepResult, metric: str) -> str:
    for decision in result.decisions:
        for option in decision.guide.options:
            for entry in option.metrics:
                if entry.metric == metric:
                    return _reason_of_guide(decision, entry, is_chosen=option in decision.options)
    return next(
        rejection.reason
        for rejection in result.table.rejections
        if metric in rejection.metrics and rejection.when.holds(result.answers)
    )


def _reason_of_guide(decision: Decision, entry: MetricEntry, *, is_chosen: bool) -> str:
    if is_chosen:
        return entry.otherwise
    if not decision.options:
        return f"{decision.guide.id} is still open, and this is one of its options."
    chosen = ", ".join(option.id for option in decision.options)
    return f"{decision.guide.id} decides for {chosen}: {_why(decision)}"


def relation_between(first: str, second: str, relations: Relations) -> RelationWarning | None:
    """The relation that makes two metrics carry similar information; None if no relation is known.

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
    """Reason why a metric carries similar information as another one, in a sentence; None: it adds information.

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
