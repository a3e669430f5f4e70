"""Comparisons of two models of a task: checked, and submitted as a job."""

import json
from dataclasses import dataclass
from typing import Any

from lifelong_core.arrays import expect_logits
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.deploy.paired_set import PairedSet
from lifelong_core.errors import ConflictError, InvalidInputError, NotFoundError
from lifelong_core.store.heads.calibration_sets import check_classes
from lifelong_core.store.jobs.records import Job
from lifelong_core.store.lifecycle.privacy import without_group_keys
from lifelong_core.store.registry.records import Model, Task
from lifelong_core.store.store import Store

KIND = "compare"
"""Kind of the job."""


@dataclass(frozen=True)
class Pair:
    """Two models of a task that can be compared."""

    new: Model
    current: Model
    task: Task
    recommendation_version: int


def find_pair(store: Store, reference: str, against: str | None = None) -> Pair:
    """Two models that both have a default head, of a task with a recommendation.

    Args:
        store: of both models.
        reference: the new model.
        against: the current model; None: the promoted one of the task.

    Raises:
        NotFoundError: there is no such model.
        InvalidInputError: they are of different tasks, or the same.
        ConflictError: the task has no promoted model or no recommendation, or a model has no head.
    """
    registry = store.registry()
    if registry is None:
        raise TypeError("without a known revision the store returns a registry")
    new = store.models.get(reference)
    task = registry.tasks[new.task_id]
    current = _current(store, registry.models.get(task.promoted_model_id or 0), task, against)
    if current.task_id != task.id:
        raise InvalidInputError(
            f"{current.reference} is not a model of {task.name}.",
            field="against",
            hint="Compare models of one task.",
        )
    if current.id == new.id:
        raise InvalidInputError(
            f"{new.reference} would be compared with itself.",
            field="against",
            hint="It is the promoted model; name another one." if against is None else "Name another model.",
        )
    for model in (new, current):
        registry.head_for(model, "")
    attached = store.recommendations.current(task.name)
    if attached is None:
        raise ConflictError(
            f"the task {task.name} has no recommendation, so there are no metrics to compare its models by.",
            field="task",
            hint=f"Attach one: `lifelong recommend --attach {task.name}`,"
            f" or POST /v1/admin/tasks/{task.name}/recommendations.",
        )
    return Pair(new, current, task, attached.version)


def submit_comparison(
    store: Store,
    pair: Pair,
    data: PairedSet,
    *,
    origin: str,
    replicates: int,
    level: float,
    actor: str,
) -> Job:
    """Submit the job that makes the promotion report.

    Args:
        store: of both models.
        pair: the models.
        data: labelled cases; their group keys are replaced by numbers.
        origin: where the cases come from, in words.
        replicates: number of resampled data sets.
        level: nominal coverage of the intervals.
        actor: name for the audit log.

    Raises:
        InvalidInputError: the logits have another number of classes than the task, or are probabilities.
        UnavailableError: database or artifacts do not answer.
    """
    labelled = data.new.labelled
    check_classes(labelled, pair.task)
    for logits in (labelled.logits, data.current_logits):
        expect_logits(logits)
    stored = PairedSet(
        LabelledSet(without_group_keys(labelled), data.new.metadata), data.current_logits, data.names
    )
    payload: dict[str, Any] = {
        "task": pair.task.name,
        "model": pair.new.reference,
        "against": pair.current.reference,
        "recommendation_version": pair.recommendation_version,
        "origin": origin,
        "replicates": replicates,
        "level": level,
    }
    return store.jobs.submit(KIND, payload, labelled_set=stored.to_bytes(), actor=actor)


def comparisons_of(store: Store, model: Model, *, most: int = 1000) -> list[Job]:
    """The newest comparisons of a model with another one, newest first, as long as jobs are kept."""
    return [job for job in store.jobs.list(KIND, None, most) if job.payload.get("model") == model.reference]


def paired_test_set(store: Store, pair: Pair) -> PairedSet:
    """The test set of the new model's training with the logits of the current model.

    Raises:
        NotFoundError: the new model was not trained here, or not compared with the current one.
    """
    hint = "Send labelled cases with the logits of both models."
    training = store.trainings.get(pair.new.reference)
    try:
        data = PairedSet.from_bytes(store.artifacts.get(training.test_set))
    except InvalidInputError as error:
        raise NotFoundError(
            f"the training of {pair.new.reference} was not compared with a promoted model.",
            field="labelled_set",
            hint=hint,
        ) from error
    against = None if training.report is None else _compared_with(store.artifacts.get(training.report))
    if against != pair.current.reference:
        raise NotFoundError(
            f"the training of {pair.new.reference} holds logits of {against}, not of {pair.current.reference}.",
            field="against",
            hint=hint,
        )
    return data


def _current(store: Store, promoted: Model | None, task: Task, against: str | None) -> Model:
    if against is not None:
        try:
            return store.models.get(against)
        except NotFoundError as error:
            error.field = "against"
            raise
    if promoted is None:
        raise ConflictError(
            f"the task {task.name} has no promoted model to compare with.",
            field="against",
            hint="Name the model to compare with.",
        )
    return promoted


def _compared_with(report: bytes) -> str | None:
    """Reference of the current model of a promotion report; None: it cannot be read."""
    try:
        return json.loads(report)["current"]["reference"]
    except (ValueError, LookupError, TypeError):
        return None
