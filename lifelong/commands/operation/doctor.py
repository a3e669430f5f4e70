"""`lifelong doctor`: check the whole installation."""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import click

from lifelong.commands.common import as_json
from lifelong.commands.connection import connect
from lifelong.commands.tables import wrap_text
from lifelong.printing import echo
from lifelong_core.doctor.examination import examine
from lifelong_core.doctor.findings import Level
from lifelong_core.operations.administration.doctor import CheckAnswer, Examine, check_answer

_INDENT = " " * 9
_COLOURS = {"ok": "green", "warning": "yellow", "failure": "red"}


@click.command(short_help="Check the whole installation.")
@as_json
@click.option(
    "--quick",
    is_flag=True,
    help="Skip the slow checks: the whole database file, and the summaries against the log.",
)
def doctor(*, as_json: bool, quick: bool) -> None:
    """Check settings, database, artifacts, keys, spool, disks, workers, monitor, jobs and summaries; change nothing.

    Run it on each machine that serves, as the user of the service. Exit status: 0 all in order, 1 with warnings, 2 with
    failures. With LIFELONG_URL, the service checks what it can within seconds.
    """
    worst = Level.OK
    documents: list[dict[str, Any]] = []
    for check in _checks(quick=quick):
        worst = max(worst, Level[check.status.upper()])
        if as_json:
            documents.append(check.to_document())
        else:
            _show(check)
    if as_json:
        echo(json.dumps({"status": worst.word, "checks": documents}, indent=1))
    sys.exit(int(worst))


def _checks(*, quick: bool) -> Iterator[CheckAnswer]:
    if "LIFELONG_URL" not in os.environ:
        yield from map(check_answer, examine(quick=quick))
        return
    with connect() as connection:
        yield from connection.send(Examine()).checks


def _show(check: CheckAnswer) -> None:
    for finding in check.findings:
        text = wrap_text(f"{check.check}: {finding.message}", indent=_INDENT)
        echo(f"{finding.status:{len(_INDENT)}}", fg=_COLOURS[finding.status], nl=False)
        echo(text.removeprefix(_INDENT))
        if finding.hint:
            echo(wrap_text(finding.hint, indent=_INDENT))
