"""`lifelong doctor`: check the whole installation."""

import json
import sys
from typing import Any

import click

from lifelong.commands.common import as_json
from lifelong.commands.tables import wrap_text
from lifelong.doctor.examination import examine
from lifelong.doctor.findings import Level, Result
from lifelong.printing import echo

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
    failures.
    """
    worst = Level.OK
    documents: list[dict[str, Any]] = []
    for result in examine(quick=quick):
        worst = max(worst, result.level)
        if as_json:
            documents.append(_document(result))
        else:
            _show(result)
    if as_json:
        echo(json.dumps({"status": worst.word, "checks": documents}, indent=1))
    sys.exit(int(worst))


def _document(result: Result) -> dict[str, Any]:
    findings = [
        {"status": finding.level.word, "message": finding.message, "hint": finding.hint or None}
        for finding in result.findings
    ]
    return {"check": result.name, "status": result.level.word, "findings": findings}


def _show(result: Result) -> None:
    for finding in result.findings:
        word = finding.level.word
        text = wrap_text(f"{result.name}: {finding.message}", indent=_INDENT)
        echo(f"{word:{len(_INDENT)}}", fg=_COLOURS[word], nl=False)
        echo(text.removeprefix(_INDENT))
        if finding.hint:
            echo(wrap_text(finding.hint, indent=_INDENT))
