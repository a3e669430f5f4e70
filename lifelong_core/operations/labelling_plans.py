"""Labelling plans: which predictions to label next."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from lifelong_core.entities.access import Scope
from lifelong_core.entities.entity import Entity
from lifelong_core.entities.jobs import JobAnswer
from lifelong_core.entities.labelling import (
    LabellingPayload,
    LabellingPlan,
    PlanAnswer,
    PlanLine,
    PlannedPrediction,
    PlanWindow,
    SampledPrediction,
)
from lifelong_core.operations.operation import (
    JOB_LOCATION,
    Call,
    Context,
    CsvFile,
    ModelReference,
    operation,
)
from lifelong_core.store import Store, logged_at
from lifelong_core.values.class_labels import are_numbers
from lifelong_core.values.csv_files import csv_writer
from lifelong_core.values.errors import ConflictError, NotFoundError
from lifelong_core.values.names import Name

KIND = "labelling_plan"
"""Kind of the job."""
COLUMNS = ("prediction_id", "label", "propensity", "decision", "expected_cost", "group", "logged_at")
"""Of the CSV file. `label` is empty or the class; filled in, the file is one for `lifelong feedback import`."""
_EXAMPLE = UUID("01a20676-ec35-71e3-9541-7358988905de")


@dataclass(frozen=True, kw_only=True)
class PlanList(Entity):
    """Plans, newest first."""

    plans: list[PlanLine]


class WantedPlan(Call[JobAnswer], LabellingPayload):
    """Number of labels wanted; and the window, where it is not to be that of the cycles."""


class ShowNewestPlan(Call[PlanAnswer]):
    """A population."""

    model: ModelReference
    environment: str


class ListPlans(Call[PlanList]):
    """Which plans are wanted."""

    model: str | None = None
    environment: Name | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    newest_only: Annotated[bool, Field(description="Only the newest plan of each population.")] = False


class ShowPlan(Call[PlanAnswer]):
    """A plan."""

    plan: UUID


def labels_to_get(context: Context, plan: PlanAnswer) -> CsvFile:
    """The predictions of a plan as a CSV file, to be filled in."""
    class_names = context.store.tasks.get(plan.task).class_names
    return CsvFile(f"labels-to-get-{plan.id}.csv", plan_csv(plan.predictions, class_names))


@operation(
    "POST",
    "/v1/admin/populations/{model}/{environment}/labelling-plan",
    scope=Scope.OPERATE,
    example=WantedPlan(model="resnet@2", environment="clinic-a", size=100),
    status=202,
    location=JOB_LOCATION,
)
def plan_labels(context: Context, call: WantedPlan) -> JobAnswer:
    """Choose which recent predictions to label next, so that `size` labels tell most; the answer is a job.

    A monitor draws them from the newest window: predictions whose cost is uncertain with higher probability, each with
    a known one (`propensity`). Predictions with a label are not drawn. The id of the plan is that of the job.
    """
    model = context.store.models.get(call.model)
    environment = context.store.environments.get(call.environment).name
    if model.calibration_set_id is None:
        raise ConflictError(
            f"{model.reference} has no calibration set, so nothing is known of its errors.",
            field="model",
            hint=f"Calibrate it: `{model.calibration_command}`.",
        )
    payload = LabellingPayload(
        size=call.size,
        window_samples=call.window_samples,
        window_seconds=call.window_seconds,
        model=model.reference,
        environment=environment,
    )
    return JobAnswer.of(context.store.jobs.submit(KIND, payload.to_document(), actor=context.actor))


@operation(
    "GET",
    "/v1/admin/populations/{model}/{environment}/labelling-plan",
    scope=Scope.READ,
    example=ShowNewestPlan(model="resnet@2", environment="clinic-a"),
    csv=labels_to_get,
)
def show_newest_plan(context: Context, call: ShowNewestPlan) -> PlanAnswer:
    """The newest labelling plan of a population, with the predictions to label in the order in which to label them.

    As CSV (`Accept: text/csv`), it can be sent back by `lifelong feedback import`, with the column `label` filled in.
    """
    store = context.store
    model, environment = store.models.get(call.model), store.environments.get(call.environment).name
    newest = store.labelling_plans.newest(model.id, environment)
    if newest is None:
        raise NotFoundError(
            f"there is no labelling plan for {model.reference} in {environment}.",
            field="environment",
            hint="Make one: send POST to the same address, or `lifelong feedback advise`.",
        )
    return _answer(store, newest)


@operation("GET", "/v1/admin/labelling-plans", scope=Scope.READ, example=ListPlans())
def list_plans(context: Context, call: ListPlans) -> PlanList:
    """The newest labelling plans, newest first, without their predictions."""
    store = context.store
    model_id = None if call.model is None else store.models.get(call.model).id
    plans = store.labelling_plans.list(
        model_id, call.environment, limit=call.limit, newest_only=call.newest_only
    )
    return PlanList(plans=plan_lines(store, plans))


@operation(
    "GET",
    "/v1/admin/labelling-plans/{plan}",
    scope=Scope.READ,
    example=ShowPlan(plan=_EXAMPLE),
    csv=labels_to_get,
)
def show_plan(context: Context, call: ShowPlan) -> PlanAnswer:
    """One labelling plan with its predictions, as JSON or CSV."""
    return _answer(context.store, context.store.labelling_plans.get(call.plan))


def plan_lines(store: Store, plans: Sequence[LabellingPlan]) -> list[PlanLine]:
    """Plans without their predictions, with the names of model and task and their progress."""
    models = {model.id: model for model in store.models.list()}
    tasks = {task.id: task.name for task in store.tasks.list()}
    progress = store.labelling_plans.progress([plan.id for plan in plans])
    return [
        PlanLine.of(
            plan,
            task=tasks[models[plan.model_id].task_id],
            model=models[plan.model_id].reference,
            window=PlanWindow(samples=plan.window_samples, since=plan.since, until=plan.until),
            progress=progress[plan.id],
        )
        for plan in plans
    ]


def plan_csv(predictions: Sequence[PlannedPrediction], class_names: Sequence[str]) -> str:
    """The chosen predictions of a plan as CSV: ids and numbers only.

    Label and decision are indices. Where classes have numbers as names, an index would be read as one of them: they
    are names there, and a decision to abstain is empty.
    """
    rows = [vars(prediction) for prediction in predictions]
    if are_numbers(class_names):
        names: dict[Any, str] = dict(enumerate(class_names))
        rows = [row | {name: names.get(row[name]) for name in ("label", "decision")} for row in rows]
    file = StringIO()
    write = csv_writer(file, COLUMNS)
    for row in rows:
        write(row[name] for name in COLUMNS)
    return file.getvalue()


def _answer(store: Store, plan: LabellingPlan) -> PlanAnswer:
    (line,) = plan_lines(store, [plan])
    return PlanAnswer.of(line, predictions=_predictions(store.labelling_plans.chosen(plan.id)))


def _predictions(chosen: Sequence[SampledPrediction]) -> list[PlannedPrediction]:
    """The predictions with a number for each group, from 0 in their order: neither group nor hash is shown."""
    hashes = dict.fromkeys(sample.group_hash for sample in chosen if sample.group_hash is not None)
    numbers: dict[bytes | None, int] = {group_hash: number for number, group_hash in enumerate(hashes)}
    return [
        PlannedPrediction.of(
            sample,
            group=numbers.get(sample.group_hash),
            logged_at=logged_at(sample.prediction_id).isoformat(timespec="milliseconds"),
        )
        for sample in chosen
    ]
