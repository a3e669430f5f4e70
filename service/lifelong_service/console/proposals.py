"""The pages of proposed retrainings: the list, and one proposal with the forms to accept and to dismiss it."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.access import Scope
from lifelong_core.entities.proposals import ProposalAnswer
from lifelong_core.operations.proposals import proposal_answers
from lifelong_core.operations.retrainings import NewRetraining, retraining_payload_of
from lifelong_core.store.proposals.acceptance import accept_proposal, start_retraining, task_of
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from lifelong_core.values.validation_errors import as_input_error
from lifelong_service.console.pages import page, see_other
from lifelong_service.console.route import FORM, ConsoleRoute, Form
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.worker.worker import Worker

MOST = 100
"""Newest proposals that are listed."""

REASONS = {
    "estimated_performance": "Estimated performance below acceptance",
    "realised_performance": "Realised performance below acceptance",
    "repeated_refusals": "More than the prevalence has changed",
}

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get("/console/proposals")
@access(Scope.READ)
def list_proposals(request: Request) -> Response:
    """Show the newest proposals, the open ones first."""
    store = worker_of(request).store
    newest = proposal_answers(store, store.proposals.list(limit=MOST))
    ordered = sorted(newest, key=lambda proposal: proposal.state != "open")
    return page(request, "proposals", lines=[_shown(proposal) for proposal in ordered])


@router.get("/console/proposals/{identifier}")
@access(Scope.READ)
def show_proposal(request: Request, identifier: UUID) -> Response:
    """Show what the monitor saw, what to look at first, and the two forms."""
    return _proposal_page(request, identifier)


@router.post("/console/proposals/{identifier}/accept")
@access(Scope.OPERATE, media_types=FORM)
def accept(request: Request, identifier: UUID, form: Form) -> Response:
    """Start a retraining on images at a path and close the proposal; without a path only close it."""
    worker, actor = worker_of(request), actor_of(request)
    given = {name: str(form.get(name, "")).strip() for name in ("path", "suggestion", "job")}
    try:
        if given["path"]:
            payload = _payload(worker, identifier, given)
            start_retraining(worker.store, identifier, payload, actor=actor)
        else:
            accept_proposal(worker.store, identifier, job_id=_job(given["job"]), actor=actor)
    except (InvalidInputError, NotFoundError, ConflictError) as error:
        return _refused(request, identifier, error, **given)
    return see_other(f"/console/proposals/{identifier}")


@router.post("/console/proposals/{identifier}/dismiss")
@access(Scope.OPERATE, media_types=FORM)
def dismiss(request: Request, identifier: UUID, form: Form) -> Response:
    """Close a proposal without a retraining."""
    given = str(form.get("reason", "")).strip()
    try:
        worker_of(request).store.proposals.dismiss(identifier, reason=given, actor=actor_of(request))
    except (InvalidInputError, ConflictError) as error:
        return _refused(request, identifier, error, reason=given)
    return see_other(f"/console/proposals/{identifier}")


def _payload(worker: Worker, identifier: UUID, given: Mapping[str, str]) -> dict[str, Any]:
    """The payload of the retraining in the form."""
    if given["job"]:
        raise InvalidInputError("expected images or a job, not both.", field="job")
    task = task_of(worker.store, worker.store.proposals.get(identifier))
    asked = {name: value for name, value in given.items() if value and name != "job"}
    try:
        retraining = NewRetraining.model_validate(asked)
    except ValidationError as error:
        raise as_input_error(error, NewRetraining) from error
    return retraining_payload_of(worker.store, worker.settings, task.name, retraining)


def _job(given: str) -> UUID | None:
    try:
        return UUID(given) if given else None
    except ValueError as error:
        raise InvalidInputError("this is no id of a job.", field="job") from error


def _refused(
    request: Request,
    identifier: UUID,
    error: InvalidInputError | NotFoundError | ConflictError,
    **given: str,
) -> Response:
    """Show the page again with the error and what was typed."""
    status = 409 if isinstance(error, ConflictError) else 422
    return _proposal_page(request, identifier, status=status, error=error, **given)


def _proposal_page(
    request: Request, identifier: UUID, *, status: int = 200, error: Exception | None = None, **given: str
) -> Response:
    store = worker_of(request).store
    (proposal,) = proposal_answers(store, [store.proposals.get(identifier)])
    typed = dict.fromkeys(("path", "suggestion", "job", "reason"), "") | given
    return page(request, "proposal", status=status, one=_shown(proposal), error=error, given=typed)


def _shown(proposal: ProposalAnswer) -> dict[str, Any]:
    """A proposal with its reason in words."""
    return {
        **vars(proposal),
        "title": REASONS[proposal.reason],
        "path": f"/console/proposals/{proposal.id}",
    }
