"""Accepts proposals of retrainings, and starts them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.entities.jobs import Job
from lifelong_core.entities.proposals import RetrainingProposal
from lifelong_core.entities.registry import Task
from lifelong_core.store.proposals.proposals import accept_within, check_open
from lifelong_core.store.trainings.asking import KIND
from lifelong_core.values.errors import InvalidInputError

if TYPE_CHECKING:
    from lifelong_core.store.store import Store


def accept_proposal(
    store: "Store", proposal_id: UUID, *, job_id: UUID | None, actor: str
) -> RetrainingProposal:
    """Close an open proposal as accepted, with the retraining that was started for it.

    Args:
        store: of the proposal.
        proposal_id: the proposal.
        job_id: a retraining of its task; None: the retraining is started another way.
        actor: name for the audit log.

    Raises:
        NotFoundError: there is no such proposal or job.
        ConflictError: the proposal is closed already.
        InvalidInputError: the job is no retraining of the task.
    """
    proposal = store.proposals.get(proposal_id)
    if job_id is not None:
        task, job = task_of(store, proposal), store.jobs.get(job_id)
        if job.kind != KIND or job.payload.get("task") != task.name:
            raise InvalidInputError(
                f"the job {job_id} is no retraining of {task.name}.",
                field="job",
                hint="List them: `lifelong jobs list --kind retrain`.",
            )
    return store.proposals.accept(proposal_id, job_id=job_id, actor=actor)


def start_retraining(
    store: "Store",
    proposal_id: UUID,
    payload: Mapping[str, Any],
    *,
    upload: BinaryIO | None = None,
    actor: str,
) -> tuple[Job, RetrainingProposal]:
    """Submit the retraining that an open proposal asks for, and close the proposal as accepted, in one transaction.

    Args:
        store: of the proposal.
        proposal_id: the proposal.
        payload: of the job, as `retraining_payload` makes it.
        upload: the images; None: they are at a path.
        actor: name for the audit log.

    Raises:
        NotFoundError: there is no such proposal.
        ConflictError: it is closed already; there is no new job.
        InvalidInputError: the retraining is of another task.
        UnavailableError: database or artifacts do not answer. If only the artifacts do not, the job has failed and the
            proposal is closed.
    """
    proposal = store.proposals.get(proposal_id)
    check_open(proposal)
    task = task_of(store, proposal)
    if payload["task"] != task.name:
        raise InvalidInputError(f"the proposal is about {task.name}, not {payload['task']}.", field="task")
    job = store.jobs.submit(
        KIND,
        payload,
        upload=upload,
        actor=actor,
        within=lambda connection, job_id: _accept(connection, proposal_id, job_id, actor),
    )
    return job, store.proposals.get(proposal_id)


def _accept(connection: sa.Connection, proposal_id: UUID, job_id: UUID, actor: str) -> None:
    accept_within(connection, proposal_id, job_id=job_id, actor=actor)


def task_of(store: "Store", proposal: RetrainingProposal) -> Task:
    """The task of the model that a proposal is about."""
    models = {model.id: model.task_id for model in store.models.list()}
    return next(task for task in store.tasks.list() if task.id == models[proposal.model_id])


def retraining_command(task: str, proposal_id: UUID) -> str:
    """The command that starts the retraining of a task and accepts its proposal.

    Examples:
        >>> retraining_command("lesions", UUID(int=1))
        'lifelong retrain lesions --data FOLDER --proposal 00000000-0000-0000-0000-000000000001'
    """
    return f"lifelong retrain {task} --data FOLDER --proposal {proposal_id}"
