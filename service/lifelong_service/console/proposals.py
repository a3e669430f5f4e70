"""The pages of proposals: retrainings that monitors propose; a person accepts or dismisses them."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.entities.proposals import REASONS, ProposalAnswer
from lifelong_core.operations.operation import Call
from lifelong_core.operations.proposals import AcceptProposal, DismissProposal, ListProposals, ShowProposal
from lifelong_core.values.errors import LifelongError
from lifelong_service.console.confirmation import decide
from lifelong_service.console.pages import page
from lifelong_service.console.route import FORM, ConsoleRoute, Form
from lifelong_service.guard.access import access, carry_out

MOST = 100
"""Newest proposals that are listed."""

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get("/console/proposals")
@access(ListProposals.operation.scope)
def list_proposals(request: Request) -> Response:
    """Show the newest proposals, the open ones first."""
    newest = carry_out(request, ListProposals(limit=MOST)).proposals
    ordered = sorted(newest, key=lambda proposal: proposal.state != "open")
    return page(request, "proposals", lines=[_shown(proposal) for proposal in ordered])


@router.get("/console/proposals/{identifier}")
@access(ShowProposal.operation.scope)
def show_proposal(request: Request, identifier: UUID) -> Response:
    """Show what the monitor saw, what to look at first, and the two forms."""
    return _proposal_page(request, identifier)


@router.post("/console/proposals/{identifier}/accept")
@access(AcceptProposal.operation.scope, media_types=FORM)
def accept(request: Request, identifier: UUID, form: Form) -> Response:
    """Start a retraining on images at a path and close the proposal; without a path only close it."""
    typed = {name: str(form.get(name, "")).strip() for name in ("path", "suggestion", "job")}
    retraining = {name: typed[name] for name in ("path", "suggestion") if typed[name]}
    given = {"retraining": retraining if typed["path"] else None, "job": typed["job"] or None}
    return _decide(request, identifier, form, AcceptProposal, given, typed)


@router.post("/console/proposals/{identifier}/dismiss")
@access(DismissProposal.operation.scope, media_types=FORM)
def dismiss(request: Request, identifier: UUID, form: Form) -> Response:
    """Close a proposal without a retraining."""
    typed = {"reason": str(form.get("reason", "")).strip()}
    return _decide(request, identifier, form, DismissProposal, typed, typed)


def _decide(
    request: Request,
    identifier: UUID,
    form: FormData,
    kind: type[Call[ProposalAnswer]],
    given: dict[str, Any],
    typed: dict[str, str],
) -> Response:
    """Close the proposal; a refused form is shown again with the error and what was typed."""

    def refused(error: LifelongError, status: int) -> Response:
        return _proposal_page(request, identifier, status=status, error=error, **typed)

    return decide(
        request,
        form,
        lambda: kind.read({"proposal": str(identifier), **given}, is_request=True),
        back=f"/console/proposals/{identifier}",
        refused=refused,
    )


def _proposal_page(
    request: Request, identifier: UUID, *, status: int = 200, error: LifelongError | None = None, **typed: str
) -> Response:
    proposal = carry_out(request, ShowProposal(proposal=str(identifier)))
    shown = dict.fromkeys(("path", "suggestion", "job", "reason"), "") | typed
    return page(request, "proposal", status=status, one=_shown(proposal), error=error, given=shown)


def _shown(proposal: ProposalAnswer) -> dict[str, Any]:
    """A proposal with its reason in words."""
    return {
        **vars(proposal),
        "title": REASONS[proposal.reason],
        "path": f"/console/proposals/{proposal.id}",
    }
