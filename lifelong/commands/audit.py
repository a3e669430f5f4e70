"""`lifelong audit`: who changed what, when."""

import json
from collections.abc import Mapping
from typing import Any

import click

from lifelong.commands.common import as_json, open_store
from lifelong.commands.tables import print_rows


@click.command(short_help="Who changed what, when.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Most entries.")
@click.option(
    "--before", type=click.IntRange(1, 2**31 - 1), help="Only entries below this number: the next page."
)
@click.option("--action", help="Only this action, as heads.rollback, or all of one kind, as heads.")
@click.option("--subject", help="Only entries whose subject contains this, as resnet@1/clinic-a.")
@as_json
def audit(limit: int, before: int | None, action: str | None, subject: str | None, *, as_json: bool) -> None:
    """List the changes that people, tokens and monitors made, newest first.

    \b
    Examples:
      lifelong audit --action heads --subject resnet@1/clinic-a
      lifelong audit --before 240 --limit 100
    """
    from lifelong_core.store.history_documents import audit_document

    with open_store() as store:
        entries = store.audit.list(limit, before, action=action, subject=subject)
    if as_json:
        click.echo(json.dumps([audit_document(entry) for entry in entries]))
        return
    rows = [
        {
            "id": entry.id,
            "at": entry.at,
            "actor": entry.actor,
            "action": entry.action,
            "subject": entry.subject,
            "details": _shortened(entry.details),
        }
        for entry in entries
    ]
    print_rows(rows, as_json=False, empty="No such entry.", below="details")


def _shortened(details: Mapping[str, Any]) -> dict[str, Any]:
    """The details without nested documents, such as a calibration report; `--json` prints those."""
    return {
        name: f"({len(value)} fields)" if isinstance(value, Mapping) else value
        for name, value in details.items()
    }
