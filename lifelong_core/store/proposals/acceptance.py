"""Accepts proposals of retrainings, with the job of the retraining."""

from typing import TYPE_CHECKING
from uuid import UUID

from lifelong_core.errors import InvalidInputError
from lifelong_core.store.proposals.records import RetrainingProposal
from lifelong_core.store.registry.records import Task
from lifelong_core.store.trainings.asking import KIND

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


def task_of(store: "Store", proposal: RetrainingProposal) -> Task:
    """The task of the model that a proposal is about."""
    models = {model.id: model.task_id for model in store.models.list()}
    return next(task for task in store.tasks.list() if task.id == models[proposal.model_id])


def retraining_command(task: str) -> str:
    """The command that starts a retraining of a task.

    Examples:
        >>> retraining_command("lesions")
        'lifelong retrain lesions --data FOLDER'
    """
    return f"lifelong retrain {task} --data FOLDER"
