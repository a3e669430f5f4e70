"""Validations of a model: checked, and submitted as a job."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.entities.jobs import Job
from lifelong_core.entities.registry import Model, Task
from lifelong_core.store.heads.calibration_sets import check_classes
from lifelong_core.store.lifecycle.privacy import without_group_keys
from lifelong_core.store.store import Store
from lifelong_core.values.arrays import softmax
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from lifelong_core.values.mistaken_probabilities import expect_logits

if TYPE_CHECKING:
    from lifelong_core.design import UncertaintySettings

KIND = "validate"
"""Kind of the job."""


def submit_validation(
    store: Store,
    reference: str,
    data: LabelledSet,
    *,
    environment: str | None,
    replicates: int,
    level: float,
    actor: str,
    uncertainty: "UncertaintySettings | None" = None,
    by_group: bool = False,
) -> Job:
    """Submit the job that validates a model with the metrics that are recommended for its task.

    Args:
        store: of the model.
        reference: the model.
        data: labelled logits; their group keys are replaced by numbers.
        environment: whose head decides; None: the default head of the model.
        replicates: number of resampled data sets.
        level: nominal coverage of the intervals.
        actor: name for the audit log.
        uncertainty: settings of the uncertainty-aware scores of a set with uncertainties or members; None: the
            defaults.
        by_group: whether metrics are those of each group, and then their mean; the set needs groups.

    Raises:
        NotFoundError: there is no such model or environment.
        ConflictError: the task has no recommendation, or the model has no head.
        InvalidInputError: the logits have another number of classes than the task, or are probabilities; metadata have
            too many different values; or uncertainties do not fit.
        TooManyRequestsError: the actor has too many queued jobs.
        UnavailableError: database or artifacts do not answer.
    """
    model, task = _served(store, reference, environment)
    payload: dict[str, Any] = {
        "task": task.name,
        "model": model.reference,
        "recommendation_version": recommendation_version(store, task),
        "metadata": list(data.metadata),
        "environment": environment,
        "replicates": replicates,
        "level": level,
    }
    if by_group:
        if data.labelled.groups is None:
            raise InvalidInputError(
                "metrics of each group need groups.",
                field="aggregate",
                hint="Add the array groups: the group of each sample, such as its patient.",
            )
        payload["aggregation"] = "by_group"
    check_classes(data.labelled, task)
    expect_logits(data.labelled.logits)
    check_metadata(data)
    if data.uncertainties is not None or data.members is not None or uncertainty is not None:
        payload["uncertainty"] = _checked_uncertainty(data, uncertainty).to_document()
    stored = replace(data, labelled=without_group_keys(data.labelled))
    return store.jobs.submit(KIND, payload, labelled_set=stored.to_bytes(), actor=actor)


def check_metadata(data: LabelledSet) -> None:
    """Refuse metadata with too many subgroups before the job, as its validation would.

    Raises:
        InvalidInputError: a key has more different values than subgroups are allowed.
    """
    from lifelong_core.design.validation.validation_settings import check_subgroups

    check_subgroups(data.metadata, samples=data.labelled.samples)


def _checked_uncertainty(data: LabelledSet, asked: "UncertaintySettings | None") -> "UncertaintySettings":
    """The settings, after the checks of a validation, so that the client learns of an error at once.

    Raises:
        InvalidInputError: there is nothing to score, more than two classes, or the uncertainties do not fit.
    """
    from lifelong_core.design import ModelOutputs, UncertaintySettings
    from lifelong_core.design.validation.uncertainty.document import check_binary, predicted_uncertainties

    settings = asked or UncertaintySettings()
    if data.uncertainties is None and data.members is None:
        raise InvalidInputError(
            "settings of uncertainty-aware scores were given, but no uncertainties.",
            field="uncertainties",
            hint="Add the array uncertainties, or the logits of members: logits_1, logits_2, ...",
        )
    field = "uncertainties" if data.members is None else "members"
    check_binary(data.labelled.classes, field=field)
    members = None if data.members is None else [softmax(one.astype(np.float64)) for one in data.members]
    outputs = ModelOutputs(uncertainties=data.uncertainties, members=members)
    predicted_uncertainties(outputs, np.ones(data.labelled.samples, np.bool_), kind=settings.kind, positive=1)
    return settings


def recommendation_version(store: Store, task: Task) -> int:
    """Version of the present recommendation of a task.

    Raises:
        ConflictError: it has none.
    """
    attached = store.recommendations.current(task.name)
    if attached is None:
        raise ConflictError(
            f"the task {task.name} has no recommendation, so there are no metrics to judge its models by.",
            field="task",
            hint=f"Attach one: `lifelong recommend --attach {task.name}`,"
            f" or POST /v1/admin/tasks/{task.name}/recommendations.",
        )
    return attached.version


def _served(store: Store, reference: str, environment: str | None) -> tuple[Model, Task]:
    """The model and its task; the model needs an active head, whose decisions are validated."""
    model = store.models.get(reference)
    registry = store.registry()
    if environment is not None and environment not in store.environments.list():
        raise NotFoundError(
            f"there is no environment {environment[:80]!r}.",
            field="environment",
            hint="List them: GET /v1/admin/environments.",
        )
    registry.head_for(model, environment or "")
    return model, registry.tasks[model.task_id]
