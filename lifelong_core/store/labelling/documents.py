"""Labelling plans as JSON values and as CSV, for the HTTP API, the command line and the console."""

from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from lifelong_core.store.labelling.records import LabellingPlan, PlannedPrediction, PlanProgress
from lifelong_core.store.log.identifiers import logged_at
from lifelong_core.values.class_labels import are_numbers
from lifelong_core.values.csv_files import csv_writer

if TYPE_CHECKING:
    from lifelong_core.store.store import Store

COLUMNS = ("prediction_id", "label", "propensity", "decision", "expected_cost", "group", "logged_at")
"""Of the CSV file. `label` is empty or the class; filled in, the file is one for `lifelong feedback import`."""


def plan_documents(store: "Store", plans: Sequence[LabellingPlan]) -> list[dict[str, Any]]:
    """Plans without their predictions as JSON values, with the names of model and task and their progress."""
    models = {model.id: model for model in store.models.list()}
    tasks = {task.id: task.name for task in store.tasks.list()}
    progress = store.labelling_plans.progress([plan.id for plan in plans])
    return [
        {
            "id": str(plan.id),
            "task": tasks[models[plan.model_id].task_id],
            "model": models[plan.model_id].reference,
            **_document(plan, progress[plan.id]),
        }
        for plan in plans
    ]


def plan_document(store: "Store", plan: LabellingPlan) -> dict[str, Any]:
    """A plan with its chosen predictions as JSON values, in the random order in which they are labelled."""
    (document,) = plan_documents(store, [plan])
    chosen = store.labelling_plans.chosen(plan.id)
    return {**document, "predictions": prediction_documents(chosen)}


def prediction_documents(chosen: Sequence[PlannedPrediction]) -> list[dict[str, Any]]:
    """The chosen predictions of a plan as JSON values; a group is a number that only this plan uses."""
    numbers = _group_numbers(chosen)
    return [
        {
            "prediction_id": str(one.prediction_id),
            "label": one.label,
            "propensity": one.propensity,
            "decision": one.decision,
            "expected_cost": one.expected_cost,
            "group": numbers.get(one.group_hash),
            "logged_at": logged_at(one.prediction_id).isoformat(timespec="milliseconds"),
        }
        for one in chosen
    ]


def plan_csv(chosen: Sequence[PlannedPrediction], class_names: Sequence[str]) -> str:
    """The chosen predictions of a plan as CSV: ids and numbers only.

    Label and decision are indices. Where classes have numbers as names, an index would be read as one of them: they
    are names there, and a decision to abstain is empty.
    """
    rows = prediction_documents(chosen)
    if are_numbers(class_names):
        names = dict(enumerate(class_names))
        rows = [row | {name: names.get(row[name]) for name in ("label", "decision")} for row in rows]
    file = StringIO()
    write = csv_writer(file, COLUMNS)
    for row in rows:
        write(row[name] for name in COLUMNS)
    return file.getvalue()


def class_names_of(store: "Store", plan: LabellingPlan) -> Sequence[str]:
    """Names of the classes of the plan's model."""
    task_id = next(model.task_id for model in store.models.list() if model.id == plan.model_id)
    return next(task.class_names for task in store.tasks.list() if task.id == task_id)


def _document(plan: LabellingPlan, progress: PlanProgress) -> dict[str, Any]:
    return {
        "environment": plan.environment,
        "head_version": plan.head_version,
        "window": {
            "samples": plan.window_samples,
            "since": plan.since.isoformat(),
            "until": plan.until.isoformat(),
        },
        "size": plan.size,
        "labelled_before": plan.labelled_before,
        "progress": vars(progress),
        "expected_widths": dict(plan.expected_widths),
        "created_at": plan.created_at.isoformat(),
        "created_by": plan.created_by,
        "estimate": None if plan.estimate is None else dict(plan.estimate),
        "estimated_at": None if plan.estimated_at is None else plan.estimated_at.isoformat(),
    }


def _group_numbers(chosen: Sequence[PlannedPrediction]) -> dict[bytes | None, int]:
    """A number for each group, from 0 in the order of the predictions: neither the group nor its hash is shown."""
    hashes = dict.fromkeys(one.group_hash for one in chosen if one.group_hash is not None)
    return {group_hash: number for number, group_hash in enumerate(hashes)}
