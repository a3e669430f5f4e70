"""Comparisons of two models of a task: checked, submitted as a job, and found as reports."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.deploy.paired_set import MODELS, PairedSet
from lifelong_core.entities.develop.evaluations import StoredReport
from lifelong_core.entities.jobs import Job
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store.evaluations.validations import check_metadata, recommendation_version
from lifelong_core.store.heads.calibration_sets import check_classes
from lifelong_core.store.lifecycle.privacy import without_group_keys
from lifelong_core.store.store import Store
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from lifelong_core.values.mistaken_probabilities import expect_logits

KIND = "compare"
"""Kind of the job."""
_MOST_JOBS = 1000
"""Newest comparisons of all models that are looked through."""


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
    return Pair(new, current, task, recommendation_version(store, task))


def submit_comparison(
    store: Store,
    pair: Pair,
    data: PairedSet,
    *,
    origin: str,
    images: str | None = None,
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
        images: path of labelled images on the machines that run jobs, to compare where both models look; None: none.
        replicates: number of resampled data sets.
        level: nominal coverage of the intervals.
        actor: name for the audit log.

    Raises:
        InvalidInputError: the logits are of other models, have another number of classes than the task, or are
            probabilities; or metadata have too many different values.
        UnavailableError: database or artifacts do not answer.
    """
    labelled = data.new.labelled
    _check_models(data, pair)
    check_classes(labelled, pair.task)
    check_metadata(data.new)
    for logits in (labelled.logits, data.current_logits):
        expect_logits(logits)
    stored = PairedSet(
        LabelledSet(without_group_keys(labelled), data.new.metadata),
        data.current_logits,
        data.names,
        (pair.new.reference, pair.current.reference),
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
    if images is not None:
        payload["images"] = images
    return store.jobs.submit(KIND, payload, labelled_set=stored.to_bytes(), actor=actor)


def paired_test_set(store: Store, pair: Pair) -> PairedSet:
    """The test set of the new model's training with the logits of the current model.

    Raises:
        NotFoundError: the new model was not trained here, or not compared with the current one then.
    """
    hint = "Give labelled cases with the logits of both models."
    try:
        training = store.trainings.get(pair.new.reference)
    except NotFoundError as error:
        error.hint = hint
        raise
    report = next(_of_training(store, pair.new), None)
    if report is None:
        raise NotFoundError(
            f"the training of {pair.new.reference} was not compared with another model.",
            field="labelled_set",
            hint=hint,
        )
    if report.against != pair.current.reference:
        raise NotFoundError(
            f"the training of {pair.new.reference} kept logits of {report.against}, not of {pair.current.reference}.",
            field="against",
            hint=hint,
        )
    return PairedSet.from_bytes(store.artifacts.get(training.test_set))


def reports_of(store: Store, model: Model) -> list[StoredReport]:
    """The promotion reports of a model: of comparisons, as long as jobs are kept, and of its training; newest first.

    Raises:
        UnavailableError: the database or the artifact storage does not answer.
    """
    compared = [_of_job(job) for job in store.jobs.list(KIND, "succeeded", _MOST_JOBS)]
    own = [report for report in compared if report.model == model.reference]
    own += _of_training(store, model)
    return sorted(own, key=lambda report: report.created_at, reverse=True)


def advice_against(store: Store, model: Model, promoted: Model) -> str | None:
    """The finding of the newest promotion report against the promoted model that rejects a model; None: it does not, or
    there is none.

    Raises:
        UnavailableError: the database or the artifact storage does not answer.
    """
    newest = next(
        (report for report in reports_of(store, model) if report.against == promoted.reference), None
    )
    if newest is None or newest.advice != "reject":
        return None
    return (
        f"the promotion report of {model.reference} against {promoted.reference}, of {newest.created_at:%Y-%m-%d %H:%M}"
        f" UTC, says: {newest.headline}."
    )


def find_report(store: Store, reference: str, job_id: UUID) -> StoredReport:
    """One of the promotion reports of a model.

    Raises:
        NotFoundError: there is no such model, or none of its reports is of this job.
    """
    model = store.models.get(reference)
    report = next((found for found in reports_of(store, model) if found.job == job_id), None)
    if report is None:
        raise NotFoundError(
            f"{model.reference} has no promotion report of the job {job_id}.",
            field="job",
            hint=f"List them: GET /v1/admin/models/{model.reference}/reports.",
        )
    return report


def _of_job(job: Job) -> StoredReport:
    result = job.result or {}
    return StoredReport(
        model=result["model"],
        job=job.id,
        created_at=job.finished_at or job.created_at,
        created_by=job.created_by,
        against=result["against"],
        advice=result["advice"],
        headline=result["headline"],
        document=result["result"],
        page=result["report"],
    )


def _of_training(store: Store, model: Model) -> Iterator[StoredReport]:
    """The report that the training of the model made, if it did."""
    try:
        training = store.trainings.get(model.reference)
    except NotFoundError:
        return
    if training.report is None or training.report_page is None:
        return
    document = json.loads(store.artifacts.get(training.report))
    yield StoredReport(
        model=model.reference,
        job=training.job_id,
        created_at=training.created_at,
        created_by=training.created_by,
        against=document["current"]["reference"],
        advice=document["verdict"]["advice"],
        headline=document["verdict"]["headline"],
        document=training.report,
        page=training.report_page,
    )


def _check_models(data: PairedSet, pair: Pair) -> None:
    """Make sure that the logits are of these models, if the set names its own.

    Raises:
        InvalidInputError: they are of others; the promoted model may have changed since they were computed.
    """
    expected = pair.new.reference, pair.current.reference
    if data.models is not None and data.models != expected:
        new, current = (one[:80] for one in data.models)
        raise InvalidInputError(
            f"the logits are of {new!r} and {current!r}, not of {expected[0]} and {expected[1]}.",
            field=MODELS,
            hint="Name the current model with `against`, as name@version: the promoted one may have changed meanwhile.",
        )


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
