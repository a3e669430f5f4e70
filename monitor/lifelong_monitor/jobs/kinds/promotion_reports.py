"""Makes the promotion report of two models of the registry on held-out cases."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lifelong_core.deploy import LabeledLogits, PostProcessingHead, fit_head
from lifelong_core.design import Recommendation
from lifelong_core.entities.registry import Model, Registry, Task
from lifelong_core.promotion import (
    ComparedModel,
    HeldOutCases,
    Population,
    PromotionReport,
    SeenCases,
    promotion_report,
)
from lifelong_core.promotion.document import LocalizationComparison, RuntimeCost
from lifelong_core.promotion.page import promotion_html
from lifelong_core.store import Store
from lifelong_core.store.rollouts.candidate_heads import known_prevalences
from lifelong_core.values.arrays import Logits
from lifelong_core.values.errors import InvalidInputError, LifelongError, NotFoundError
from lifelong_monitor.jobs.kinds.model_facts import data_distance
from lifelong_monitor.jobs.kinds.validate import rule_cautions


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelCases:
    """The outputs of one registered model for the held-out cases, and facts of the model that the registry does not
    hold."""

    model: Model
    logits: Logits
    """shape (N, C)"""
    cost: RuntimeCost | None = None
    trained_on: str | None = None
    seen: SeenCases | None = None


def compare_registered(
    store: Store,
    new: ModelCases,
    current: ModelCases,
    cases: HeldOutCases,
    *,
    recommendation_version: int | None = None,
    localization: LocalizationComparison | None = None,
    replicates: int = 1000,
    level: float = 0.95,
) -> PromotionReport:
    """Compare two models of a task by its recommendation, with their default heads.

    Args:
        store: of both models, which have a default head each.
        new: the model that may be promoted.
        current: the model that serves now.
        cases: labelled cases that neither was trained or calibrated on.
        recommendation_version: of the task's recommendations; None: the present one.
        localization: whether both look at the same places.
        replicates: number of resampled data sets.
        level: nominal coverage of the intervals.

    Raises:
        InvalidInputError: the models have different tasks, or the cases do not fit.
        NotFoundError: the task has no such recommendation, or a model has no head.
    """
    registry = store.registry()
    task = registry.tasks[new.model.task_id]
    if current.model.task_id != task.id:
        raise InvalidInputError(
            f"{current.model.reference} is not a model of {task.name}.",
            field="against",
            hint="Compare models of one task.",
        )
    attached = (
        store.recommendations.current(task.name)
        if recommendation_version is None
        else store.recommendations.get(task.name, recommendation_version)
    )
    if attached is None:
        raise NotFoundError(
            f"the task {task.name} has no recommendation, so there are no metrics to compare its models by.",
            field="task",
            hint=f"Attach one: `lifelong recommend --attach {task.name}`.",
        )
    compared = [_compared(store, registry, one) for one in (new, current)]
    report = promotion_report(
        task.name,
        compared[0],
        compared[1],
        cases,
        recommendation=attached.recommendation,
        class_names=task.class_names,
        costs=task.costs,
        thresholds=attached.thresholds,
        populations=list(_populations(store, registry, task, (new.model, compared[0]), current.model)),
        fingerprints=data_distance(store, new.model, current.model),
        localization=localization,
        replicates=replicates,
        level=level,
    )
    return _with_cautions(report, attached.recommendation, *compared)


def _with_cautions(
    report: PromotionReport, recommendation: Recommendation, new: ComparedModel, current: ComparedModel
) -> PromotionReport:
    """The report with a caution for each model whose head decides by another rule than the recommendation asks for."""
    names = report.new_result.class_names
    of_new, of_current = (tuple(rule_cautions(recommendation, one.head, names)) for one in (new, current))
    cautions = [
        f"{model.reference}: {text}"
        for model, found in ((new, of_new), (current, of_current))
        for text in found
    ]
    result = report.new_result.model_copy(update={"warnings": (*of_new, *report.new_result.warnings)})
    return report.model_copy(update={"new_result": result, "warnings": (*cautions, *report.warnings)})


def store_report(store: Store, report: PromotionReport) -> dict[str, Any]:
    """Keep a report and its page as artifacts; return their digests as `result` and `report`, and its summary."""
    return {
        "result": store.artifacts.put(report.to_json().encode()),
        "report": store.artifacts.put(promotion_html(report).encode()),
        **report_summary(report),
    }


def report_summary(report: PromotionReport) -> dict[str, Any]:
    """The summary of a report in the result of a job: advice, headline, acceptance and number of samples."""
    return {
        "advice": report.verdict.advice,
        "headline": report.verdict.headline,
        "accepted": report.new_result.accepted,
        "samples": report.new_result.samples,
    }


def _compared(store: Store, registry: Registry, given: ModelCases) -> ComparedModel:
    """A model with its default head and its calibration set."""
    return ComparedModel(
        reference=given.model.reference,
        logits=given.logits,
        head=registry.head_for(given.model, None).head,
        calibration=_calibration(store, given.model),
        cost=given.cost,
        trained_on=given.trained_on,
        seen=given.seen,
    )


def _calibration(store: Store, model: Model) -> LabeledLogits | None:
    """The active calibration set; None: there is none, or it cannot be read."""
    if model.calibration_set_id is None:
        return None
    try:
        return store.calibration_sets.load(model.calibration_set_id)
    except LifelongError:  # cut-offs are chosen on half of the cases then
        return None


def _populations(
    store: Store, registry: Registry, task: Task, new: tuple[Model, ComparedModel], current: Model
) -> Iterator[Population]:
    """The environments with an estimated prevalence, and the heads that decide or would decide there."""
    model, compared = new
    for environment, known in sorted(known_prevalences(store, registry, current).items()):
        own = registry.heads.get((model.id, environment))
        head: PostProcessingHead = compared.head if own is None else own.head
        if own is None and compared.calibration is not None:
            head = fit_head(
                compared.calibration,
                task.costs,
                target_prevalence=known.values,
                class_names=task.class_names,
                decision_rule=task.decision_rule,
            )
        yield Population(
            environment=environment,
            prevalence=known.values,
            new_head=head,
            current_head=registry.head_for(current, environment).head,
        )
