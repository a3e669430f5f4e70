"""Retrainings that monitors propose and people decide on: list, show, accept, dismiss."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, TypeAlias
from uuid import UUID

from pydantic import Field

from lifelong_core.deploy.adaptation.retraining import RetrainingReason
from lifelong_core.entities.access import Scope
from lifelong_core.entities.entity import Entity
from lifelong_core.entities.proposals import ProposalAnswer, ProposalState, RetrainingProposal
from lifelong_core.operations.develop.retrainings import NewRetraining, retraining_payload_of
from lifelong_core.operations.operation import Call, Context, operation
from lifelong_core.store import Store
from lifelong_core.store.proposals import acceptance
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.names import Name

ProposalReference: TypeAlias = Annotated[str, Field(description="Id of the proposal, or its beginning.")]
_EXAMPLE = "01a20676-ec35-71e3-9541-7358988905de"


@dataclass(frozen=True, kw_only=True)
class ProposalList(Entity):
    """Proposals, newest first."""

    proposals: list[ProposalAnswer]


class ListProposals(Call[ProposalList]):
    """Which proposals are wanted."""

    task: Name | None = None
    environment: Name | None = None
    reason: RetrainingReason | None = None
    state: ProposalState | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class ShowProposal(Call[ProposalAnswer]):
    """A proposal."""

    proposal: ProposalReference


class AcceptProposal(Call[ProposalAnswer]):
    """The retraining to start, or the job that was started for the proposal; both may be null."""

    proposal: ProposalReference
    retraining: NewRetraining | None = None
    job: Annotated[UUID | None, Field(description="Id of a retraining of the same task.")] = None


class DismissProposal(Call[ProposalAnswer]):
    """Reason why no model is trained, 1 to 200 printable characters."""

    proposal: ProposalReference
    reason: Annotated[str, Field(description="Why no model is trained, for the history.")]


@operation("GET", "/v1/admin/proposals", scope=Scope.READ, example=ListProposals())
def list_proposals(context: Context, call: ListProposals) -> ProposalList:
    """The newest proposed retrainings, newest first."""
    proposals = context.store.proposals.list(
        task=call.task, environment=call.environment, reason=call.reason, state=call.state, limit=call.limit
    )
    return ProposalList(proposals=proposal_answers(context.store, proposals))


@operation("GET", "/v1/admin/proposals/{proposal}", scope=Scope.READ, example=ShowProposal(proposal=_EXAMPLE))
def show_proposal(context: Context, call: ShowProposal) -> ProposalAnswer:
    """One proposed retraining, with what the monitor saw and what to look at first."""
    return _answer(context, context.store.proposals.find(call.proposal))


@operation(
    "POST",
    "/v1/admin/proposals/{proposal}/accept",
    scope=Scope.OPERATE,
    example=AcceptProposal(proposal=_EXAMPLE),
)
def accept_proposal(context: Context, call: AcceptProposal) -> ProposalAnswer:
    """Start the retraining and close the proposal; the answer names the job. Status 409 if it is closed already.

    `retraining` is the JSON body of `POST /v1/admin/tasks/{task}/retrainings`. To train on an archive, send it there
    first and name its `job` here. `{}` only closes the proposal.
    """
    if call.retraining is not None and call.job is not None:
        raise InvalidInputError("expected a retraining to start or a job, not both.", field="job")
    store, actor = context.store, context.actor
    proposal = store.proposals.find(call.proposal)
    if call.retraining is None:
        return _answer(context, acceptance.accept_proposal(store, proposal.id, job_id=call.job, actor=actor))
    task = acceptance.task_of(store, proposal).name
    payload = retraining_payload_of(store, context.settings, task, call.retraining)
    _, closed = acceptance.start_retraining(store, proposal.id, payload, actor=actor)
    return _answer(context, closed)


@operation(
    "POST",
    "/v1/admin/proposals/{proposal}/dismiss",
    scope=Scope.OPERATE,
    example=DismissProposal(proposal=_EXAMPLE, reason="the scanner was broken"),
)
def dismiss_proposal(context: Context, call: DismissProposal) -> ProposalAnswer:
    """Close a proposal without a retraining; its reason is not proposed again before a cycle has found it gone."""
    proposals = context.store.proposals
    proposal = proposals.find(call.proposal)
    return _answer(context, proposals.dismiss(proposal.id, reason=call.reason, actor=context.actor))


def proposal_answers(store: Store, proposals: Iterable[RetrainingProposal]) -> list[ProposalAnswer]:
    """Proposals with the names of task and model."""
    models = {model.id: model for model in store.models.list()}
    tasks = {task.id: task.name for task in store.tasks.list()}
    return [
        ProposalAnswer.of(
            proposal,
            task=(task := tasks[models[proposal.model_id].task_id]),
            model=models[proposal.model_id].reference,
            job=proposal.job_id,
            command=acceptance.retraining_command(task, proposal.id),
        )
        for proposal in proposals
    ]


def _answer(context: Context, proposal: RetrainingProposal) -> ProposalAnswer:
    (answer,) = proposal_answers(context.store, [proposal])
    return answer
