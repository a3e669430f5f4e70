"""`lifelong proposals`: retrainings that monitors propose."""

import json
from typing import Any, get_args
from uuid import UUID

import click

from lifelong.commands.common import CommandGroup, as_json, environment_option, task_option
from lifelong.commands.connection import connect
from lifelong.commands.operation_command import operation_command
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.deploy.adaptation.retraining import RetrainingReason
from lifelong_core.entities.proposals import MissedFigure, ProposalAnswer, ProposalState
from lifelong_core.operations.proposals import AcceptProposal, DismissProposal, ListProposals, ShowProposal

_COLUMNS = ("id", "task", "model", "environment", "reason", "state", "proposed_at", "fine_at")


@click.group(cls=CommandGroup, short_help="Retrainings that monitors propose.")
def proposals() -> None:
    """Retrainings that monitors propose, because cycle after cycle shows that another head does not help.

    A person accepts or dismisses them. A reason is not proposed again before a cycle has found it gone.
    """


@proposals.command("list")
@task_option()
@environment_option()
@click.option("--reason", type=click.Choice(get_args(RetrainingReason)), help="Only for this reason.")
@click.option("--state", type=click.Choice(get_args(ProposalState)), help="Only in this state.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Number of proposals."
)
@as_json
def list_proposals(*, as_json: bool, **chosen: Any) -> None:
    """List the newest proposals, newest first."""
    with connect() as connection:
        listed = connection.send(ListProposals(**chosen))
    documents = [proposal.to_document() for proposal in listed.proposals]
    rows = [document if as_json else {name: document[name] for name in _COLUMNS} for document in documents]
    print_rows(rows, as_json=as_json, empty="No retraining was proposed.")


@proposals.command()
@click.argument("proposal")
@click.option("--job", type=click.UUID, help="The retraining that was started for it.")
@as_json
def accept(proposal: str, job: UUID | None, *, as_json: bool) -> None:
    """Accept PROPOSAL (an id or its beginning); without a job, the command that starts the retraining is printed."""
    with connect() as connection:
        accepted = connection.send(AcceptProposal(proposal=proposal, job=job))
    echo(json.dumps(accepted.to_document()) if as_json else _text(accepted))


def _text(proposal: ProposalAnswer, _: Any = None) -> str:
    document = proposal.to_document()
    names = [*_COLUMNS, "decided_at", "decided_by", "decision_reason", "job"]
    if proposal.state != "dismissed" and proposal.job is None:
        names.append("command")
    details = proposal.details
    shown = {
        **{name: document[name] for name in names},
        "missed": "; ".join(_figure(figure) for figure in details["missed"]),
        "since": details["since"],
        "cycles": ", ".join(details["cycles"]),
        "look_first": details["look_first"],
    }
    return "\n".join(
        wrap_text(str(value), first=f"{name.replace('_', ' '):17}", indent=" " * 17)
        for name, value in shown.items()
        if value is not None
    )


def _figure(figure: MissedFigure) -> str:
    of = "" if figure["class_index"] is None else f" of class {figure['class_index']}"
    low, high = figure["low"], figure["high"]
    interval = "" if low is None or high is None else f" ({low:.4g} to {high:.4g})"
    return f"{figure['metric']}{of} is {figure['value']:.4g}{interval}, the threshold is {figure['threshold']:.4g}"


proposals.add_command(
    operation_command(
        ShowProposal,
        "show",
        help_text="Show what the monitor saw, and what to look at first. PROPOSAL: an id or its beginning.",
        text=_text,
    )
)
proposals.add_command(
    operation_command(
        DismissProposal, "dismiss", help_text="Dismiss PROPOSAL (an id or its beginning).", text=_text
    )
)
