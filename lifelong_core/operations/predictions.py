"""Logged predictions: find them; one prediction with the way from its logits to its decision."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

import numpy as np
from pydantic import AwareDatetime, Field

from lifelong_core.deploy.head import ABSTAIN
from lifelong_core.deploy.head_wording import describe_head
from lifelong_core.deploy.numerics.newton import affine_scores
from lifelong_core.entities.access import Scope
from lifelong_core.entities.predictions import (
    DecisionPath,
    FoundPredictionAnswer,
    PredictionDetails,
    PredictionList,
)
from lifelong_core.entities.registry import Model, Task
from lifelong_core.operations.operation import LARGEST, Call, Context, ModelReference, operation
from lifelong_core.store import Store, logged_at
from lifelong_core.store.heads.rows import DamagedHeadError
from lifelong_core.store.log.finding import Filter, FoundPrediction
from lifelong_core.store.log.identifiers import is_prediction_id
from lifelong_core.values.arrays import Logits
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from lifelong_core.values.names import Name

LARGEST_PAGE = 200
"""Largest number of predictions in one answer."""


class ListPredictions(Call[PredictionList]):
    """Which predictions are wanted."""

    model: Annotated[ModelReference | None, Field(description="Only of this model.")] = None
    environment: Annotated[Name | None, Field(description="Only of this environment.")] = None
    since: Annotated[AwareDatetime | None, Field(description="Only those made at or after this time.")] = None
    until: Annotated[AwareDatetime | None, Field(description="Only those made before this time.")] = None
    decision: Annotated[
        str | None, Field(max_length=200, description="Only with this decision: its number or its name.")
    ] = None
    labelled: Annotated[bool | None, Field(description="Only with a label, or only without one.")] = None
    request_id: Annotated[
        str | None, Field(min_length=1, max_length=200, description="Only those of requests with this id.")
    ] = None
    before: Annotated[UUID | None, Field(description="`next` of the previous page.")] = None
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = 50


class ShowPrediction(Call[PredictionDetails]):
    """A prediction."""

    prediction: UUID


@operation(
    "GET",
    "/v1/admin/predictions",
    scope=Scope.READ,
    example=ListPredictions(environment="clinic-a", limit=2),
    is_strict=True,
)
def list_predictions(context: Context, call: ListPredictions) -> PredictionList:
    """The newest logged predictions, newest first, without their logits.

    A request reads at most 10,000 predictions. If a filter lets few of them pass, a page holds fewer than `limit`, even
    none; `next` then leads on. A model together with an environment is found by an index, and so are labelled ones.
    """
    store = context.store
    tasks = {task.id: task for task in store.tasks.list()}
    model = None if call.model is None else store.models.get(call.model)
    asked_tasks = list(tasks.values()) if model is None else [tasks[model.task_id]]
    wanted = Filter(
        model_id=None if model is None else model.id,
        environment=None if call.environment is None else store.environments.get(call.environment).name,
        since=call.since,
        until=call.until,
        decision=None if call.decision is None else _decision(call.decision, asked_tasks),
        is_labelled=call.labelled,
    )
    if call.since is not None and call.until is not None and call.since >= call.until:
        raise InvalidInputError("expected a time before `until`.", field="since")
    if call.before is not None and not is_prediction_id(call.before):
        raise InvalidInputError("expected the id of a prediction, as in `next`.", field="before")
    models = {model.id: model for model in store.models.list()}
    if call.request_id is None:
        page = store.finder.page(wanted, limit=call.limit, before=call.before)
    else:
        asked = list(models) if wanted.model_id is None else [wanted.model_id]
        page = store.finder.of_request(asked, call.request_id, wanted.environment, limit=LARGEST_PAGE)
    return PredictionList(
        predictions=[
            _answer(found, models[found.model_id], tasks[models[found.model_id].task_id])
            for found in page.predictions
            if found.model_id in models
        ],
        next=page.next,
    )


@operation(
    "GET",
    "/v1/admin/predictions/{prediction}",
    scope=Scope.READ,
    example=ShowPrediction(prediction=UUID("01a20676-ec35-71e3-9541-7358988905de")),
)
def show_prediction(context: Context, call: ShowPrediction) -> PredictionDetails:
    """One logged prediction: its logits, and the way to the decision under the head that decided and the active one.

    The way: logits, affine scaling (temperature and bias), softmax to probabilities, expected cost of each decision,
    decision. Beside it, the cycles that used it. The hash of its group is shown from the scope `operate` on.
    """
    store = context.store
    history = store.labels.named_history(call.prediction)
    found = store.predictions.get(call.prediction)
    if found is None:  # deleted meanwhile
        raise NotFoundError(f"there is no prediction {call.prediction}.", field="prediction")
    model = store.models.get(history.model)
    task = store.tasks.with_id(model.task_id)
    label = history.revisions[-1].label if history.revisions else None
    answer = _answer(
        FoundPrediction(
            found.id, model.id, found.environment, found.head_version, found.decision, found.group_hash, label
        ),
        model,
        task,
    )
    active = store.heads.serving(model.reference, found.environment)
    group = found.group_hash if context.may_see_groups else None
    return PredictionDetails(
        **vars(answer),
        class_names=list(task.class_names),
        decision_names=list(_decision_names(task)),
        logits=found.logits.tolist(),
        decided=_path(store, model, found.head_version, found.logits),
        active=None if active is None else _path(store, model, active, found.logits),
        group=None if group is None else bytes(group).hex(),
        revisions=history.revisions,
        cycles=store.judged.cycles_with(found),
    )


def _answer(found: FoundPrediction, model: Model, task: Task) -> FoundPredictionAnswer:
    decisions = _decision_names(task)
    known = found.decision < len(decisions)
    return FoundPredictionAnswer.of(
        found,
        prediction_id=found.id,
        logged_at=logged_at(found.id),
        model=model.reference,
        label=decisions[found.decision] if known else str(found.decision),
        true_class=found.label,
        true_label=None if found.label is None else task.class_names[found.label],
    )


def _decision(given: str, tasks: Sequence[Task]) -> int:
    """The number of a decision that is given by its number or, as in one of the tasks, by its name."""
    if given.isdecimal() and len(given) < len(str(LARGEST)):
        return int(given)
    numbers = {names.index(given) for names in (_decision_names(task) for task in tasks) if given in names}
    if len(numbers) != 1:
        raise InvalidInputError(
            f"expected a decision of one task, by its number or its name, got {given[:80]!r}.",
            field="decision",
            hint="Name the model, too.",
        )
    return numbers.pop()


def _decision_names(task: Task) -> tuple[str, ...]:
    return (*task.class_names, ABSTAIN)[: task.costs.shape[1]]


def _path(store: Store, model: Model, version: int, logits: Logits) -> DecisionPath | None:
    """The way under a head; None: it is damaged, or of other classes than the logits."""
    try:
        head = store.heads.get(model.reference, version).head
        output = head.apply(logits[np.newaxis])
    except (DamagedHeadError, NotFoundError, InvalidInputError):
        return None
    rows = logits[np.newaxis]
    decision = int(output.decisions[0])
    return DecisionPath(
        head_version=version,
        text=describe_head(head),
        temperature=np.broadcast_to(head.temperature, head.classes).tolist(),
        bias=head.bias.tolist(),
        scaled=affine_scores(rows, head.temperature, head.bias)[0].tolist(),
        probabilities=output.probabilities[0].tolist(),
        expected_costs=output.expected_costs[0].tolist(),
        decision=decision,
        label=head.decision_names[decision],
    )
