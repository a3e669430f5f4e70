"""`lifelong audit`: list who changed what, when and from where; verify that the log is unchanged."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from lifelong.commands.common import CommandGroup, as_json, format_count, open_store
from lifelong.commands.connection import connect
from lifelong.commands.durations import Moment
from lifelong.commands.tables import print_rows
from lifelong.printing import echo
from lifelong_core.configuration.settings import Settings
from lifelong_core.operations.administration.audit import ListAudit
from lifelong_core.store.access.audit_chain import Anchor, AnchorFile
from lifelong_core.store.access.audit_log import AuditVerification


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    short_help="List who changed what and when; verify the log.",
)
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Largest number of entries."
)
@click.option(
    "--before", type=click.IntRange(1, 2**31 - 1), help="Only entries below this number: the next page."
)
@click.option("--action", help="Only this action (heads.rollback), or all actions of one kind (heads).")
@click.option(
    "--subject", help="Only entries whose subject contains this text, for example resnet@1/clinic-a."
)
@click.option("--actor", help="Only entries of this token, person or process.")
@click.option("--since", type=Moment(), metavar="TIME", help="Only entries from this time on: 2026-03-01.")
@click.option("--until", type=Moment(), metavar="TIME", help="Only entries before this time.")
@click.option(
    "--kind",
    type=click.Choice(["changes", "refusals"]),
    help="Only changes, or only refused requests.",
)
@as_json
@click.pass_context
def audit(
    context: click.Context,
    limit: int,
    before: int | None,
    action: str | None,
    subject: str | None,
    actor: str | None,
    since: datetime | None,
    until: datetime | None,
    kind: Any,
    *,
    as_json: bool,
) -> None:
    """List the changes that people, tokens and monitors made, and refused requests, newest first.

    The source is the address of the client, or "local" for the command line and the monitor. Refused requests are
    counted by address, reason and minute.

    \b
    Examples:
      lifelong audit --action heads --subject resnet@1/clinic-a
      lifelong audit --actor ann --since 2026-03-01
      lifelong audit --kind changes --before 240 --limit 100
      lifelong audit verify
    """
    if context.invoked_subcommand is not None:
        return
    wanted = ListAudit(
        limit=limit,
        before=before,
        action=action,
        subject=subject,
        actor=actor,
        since=since,
        until=until,
        kind=kind,
    )
    with connect() as connection:
        entries = connection.send(wanted).audit
    if as_json:
        echo(json.dumps([entry.to_document() for entry in entries]))
        return
    rows = [
        {
            "id": entry.id,
            "at": entry.at,
            "actor": entry.actor,
            "source": entry.source or "",
            "action": entry.action,
            "subject": entry.subject,
            "details": _shortened(entry.details),
        }
        for entry in entries
    ]
    print_rows(rows, as_json=False, empty="No such entry.", below="details")


@audit.command()
@click.option(
    "--anchor",
    "anchors",
    multiple=True,
    metavar="SEQUENCE:DIGEST",
    help="From the log of a service or monitor, beside that in the file of this host; may be repeated.",
)
@as_json
def verify(anchors: tuple[str, ...], *, as_json: bool) -> None:
    """Verify that no entry of the audit log was changed, moved, forged or removed.

    Each entry holds the digest of the one before it. Entries that were removed at the end, and a log that was written
    anew, are found by an anchor: number and digest of an entry, kept outside the database. Service and monitor write
    the newest one to their log ("anchor"), and to the file audit.anchor in the data directory.

    Exit status: 0 as it was written, 1 a fault was found.
    """
    known = [Anchor.parse(text) for text in anchors]
    if (kept := AnchorFile(Settings.load().audit_anchor_file).read()) is not None:
        known.append(kept)
    with open_store() as store:
        verification = store.audit.verify(*known)
    if as_json:
        document = {
            "entries": verification.entries,
            "newest": None if verification.newest is None else str(verification.newest),
            "anchors": [str(anchor) for anchor in known],
            "faults": [asdict(fault) for fault in verification.faults],
        }
        echo(json.dumps(document))
    else:
        _print_verification(verification, len(known))
    if verification.faults:
        sys.exit(1)


def _print_verification(verification: AuditVerification, anchors: int) -> None:
    for fault in verification.faults:
        echo(f"{fault.text[:1].upper()}{fault.text[1:]}", fg="red")
    if not verification.faults:
        compared = f", and the log holds {format_count(anchors, 'anchor')}" if anchors else ""
        entries = "1 entry" if verification.entries == 1 else f"{verification.entries} entries"
        echo(f"The audit log is as it was written: {entries}{compared}.")
    if verification.newest is not None:
        echo(f"Newest entry: {verification.newest}")
    if not anchors:
        echo("There is no anchor: entries that were removed at the end cannot be seen.")


def _shortened(details: Mapping[str, Any]) -> dict[str, Any]:
    """The details without nested documents, such as a calibration report; `--json` prints those."""
    return {
        name: f"({len(value)} fields)" if isinstance(value, Mapping) else value
        for name, value in details.items()
    }
