"""`lifelong proposals`: retrainings that monitors propose."""

import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from lifelong.commands.common import CommandGroup, actor, as_json, environment_option, open_store, task_option
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo

if TYPE_CHECKING:
    from lifelong_core.store import RetrainingProposal, Store

REASONS = ("estimated_performance", "realised_performance", "repeated_refusals")
STATES = ("open", "accepted", "dismissed")


@click.group(cls=CommandGroup, short_help="Retrainings that monitors propose.")
def proposals() -> None:
    """Retrainings that monitors propose, because cycle after cycle shows that another head does not help.

    A person accepts or dismisses them. A reason is not proposed again before a cycle has found it gone.
    """


@proposals.command("list")
@task_option()
@environment_option()
@click.option("--reason", type=click.Choice(REASONS), help="Only for this reason.")
@click.option("--state", type=click.Choice(STATES), help="Only in this state.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Number of proposals."
)
@as_json
def list_proposals(limit: int, *, as_json: bool, **chosen: Any) -> None:
    """List the newest proposals, newest first."""
    from lifelong_core.store.proposals.documents import proposal_documents

    with open_store() as store:
        documents = proposal_documents(store, store.proposals.list(**chosen, limit=limit))
    columns = ("id", "task", "model", "environment", "reason", "state", "proposed_at", "fine_at")
    rows = [document if as_json else {name: document[name] for name in columns} for document in documents]
    print_rows(rows, as_json=as_json, empty="No retraining was proposed.")


@proposals.command()
@click.argument("proposal")
@as_json
def show(proposal: str, *, as_json: bool) -> None:
    """Show what the monitor saw, and what to look at first. PROPOSAL: an id or its beginning."""
    with open_store() as store:
        _print(store, store.proposals.find(proposal), as_json=as_json)


@proposals.command()
@click.argument("proposal")
@click.option("--job", type=click.UUID, help="The retraining that was started for it.")
@as_json
def accept(proposal: str, job: UUID | None, *, as_json: bool) -> None:
    """Accept PROPOSAL (an id or its beginning); without a job, the command that starts the retraining is printed."""
    from lifelong_core.store.proposals.acceptance import accept_proposal

    with open_store() as store:
        accepted = accept_proposal(store, store.proposals.find(proposal).id, job_id=job, actor=actor())
        _print(store, accepted, as_json=as_json)


@proposals.command()
@click.argument("proposal")
@click.option("--reason", required=True, help="Why no model is trained, for the history.")
@as_json
def dismiss(proposal: str, reason: str, *, as_json: bool) -> None:
    """Dismiss PROPOSAL (an id or its beginning)."""
    with open_store() as store:
        dismissed = store.proposals.dismiss(store.proposals.find(proposal).id, reason=reason, actor=actor())
        _print(store, dismissed, as_json=as_json)


def _print(store: "Store", proposal: "RetrainingProposal", *, as_json: bool) -> None:
    from lifelong_core.store.proposals.documents import proposal_documents

    (document,) = proposal_documents(store, [proposal])
    if as_json:
        echo(json.dumps(document))
        return
    details = document.pop("details")
    if document["state"] == "dismissed" or document["job"] is not None:
        del document["command"]
    shown = {
        **document,
        "missed": "; ".join(_figure(figure) for figure in details["missed"]),
        "since": details["since"],
        "cycles": ", ".join(details["cycles"]),
        "look_first": details["look_first"],
    }
    for name, value in shown.items():
        if value is not None:
            echo(wrap_text(str(value), first=f"{name.replace('_', ' '):17}", indent=" " * 17))


def _figure(figure: dict[str, Any]) -> str:
    of = "" if figure["class_index"] is None else f" of class {figure['class_index']}"
    ends = [figure[name] for name in ("low", "high")]
    interval = "" if None in ends else f" ({ends[0]:.4g} to {ends[1]:.4g})"
    return f"{figure['metric']}{of} is {figure['value']:.4g}{interval}, the threshold is {figure['threshold']:.4g}"
