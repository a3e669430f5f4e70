"""`/v1/admin/proposals`: retrainings that monitors propose and people decide on."""

from collections.abc import Sequence
from typing import Annotated, cast
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.requests import Request

from lifelong_core.deploy.adaptation.retraining import RetrainingReason
from lifelong_core.entities.access import Scope
from lifelong_core.store import RetrainingProposal, Store
from lifelong_core.store.proposals.acceptance import accept_proposal, start_retraining, task_of
from lifelong_core.store.proposals.documents import proposal_documents
from lifelong_core.store.proposals.records import ProposalState
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.names import Name
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.admin.retrainings import NewRetraining, retraining_payload_of
from lifelong_service.schemas.proposals import ProposalAnswer, ProposalList

router = APIRouter(route_class=GuardedRoute, tags=["proposals"])


class Accepted(RequestDocument):
    """The retraining to start, or the job that was started for the proposal; both may be null."""

    retraining: NewRetraining | None = None
    job: UUID | None = Field(None, description="Id of a retraining of the same task.")


class Dismissed(RequestDocument):
    """Reason why no model is trained, 1 to 200 printable characters."""

    reason: str


@router.get("/v1/admin/proposals")
@access(Scope.READ)
def list_proposals(
    request: Request,
    task: Name | None = None,
    environment: Name | None = None,
    reason: RetrainingReason | None = None,
    state: ProposalState | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> ProposalList:
    """The newest proposed retrainings, newest first."""
    store = worker_of(request).store
    found = store.proposals.list(task=task, environment=environment, reason=reason, state=state, limit=limit)
    return {"proposals": _answers(store, found)}


@router.get("/v1/admin/proposals/{proposal}")
@access(Scope.READ)
def show_proposal(request: Request, proposal: UUID) -> ProposalAnswer:
    """One proposed retraining, with what the monitor saw and what to look at first."""
    store = worker_of(request).store
    return _answers(store, [store.proposals.get(proposal)])[0]


@router.post("/v1/admin/proposals/{proposal}/accept")
@access(Scope.OPERATE)
def accept(request: Request, proposal: UUID, accepted: Accepted) -> ProposalAnswer:
    """Start the retraining and close the proposal; the answer names the job. Status 409 if it is closed already.

    `retraining` is the JSON body of `POST /v1/admin/tasks/{task}/retrainings`. To train on an archive, send it there
    first and name its `job` here. `{}` only closes the proposal.
    """
    worker, actor = worker_of(request), actor_of(request)
    if accepted.retraining is None:
        closed = accept_proposal(worker.store, proposal, job_id=accepted.job, actor=actor)
    elif accepted.job is None:
        task = task_of(worker.store, worker.store.proposals.get(proposal))
        payload = retraining_payload_of(worker, task.name, accepted.retraining)
        _, closed = start_retraining(worker.store, proposal, payload, actor=actor)
    else:
        raise InvalidInputError("expected a retraining to start or a job, not both.", field="job")
    return _answers(worker.store, [closed])[0]


@router.post("/v1/admin/proposals/{proposal}/dismiss")
@access(Scope.OPERATE)
def dismiss(request: Request, proposal: UUID, dismissed: Dismissed) -> ProposalAnswer:
    """Close a proposal without a retraining; its reason is not proposed again before a cycle has found it gone."""
    store = worker_of(request).store
    closed = store.proposals.dismiss(proposal, reason=dismissed.reason, actor=actor_of(request))
    return _answers(store, [closed])[0]


def _answers(store: Store, proposals: Sequence[RetrainingProposal]) -> list[ProposalAnswer]:
    return [cast("ProposalAnswer", document) for document in proposal_documents(store, proposals)]
