"""`lifelong dossier` and `lifelong report`: documents about a population and a period, as HTML, PDF or JSON."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import Name, as_json
from lifelong.commands.connection import connect
from lifelong.commands.durations import Moment
from lifelong.printing import echo
from lifelong_core.change_control.pages import dossier_html, report_html
from lifelong_core.change_control.pdf import to_pdf
from lifelong_core.operations.administration.change_control import EARLIEST, ShowDossier, ShowReport
from lifelong_core.store.files import write_whole

OUTPUT = click.Path(dir_okay=False, path_type=Path)


def _output(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--output", type=OUTPUT, help="Where to write it: FILE.html, or FILE.pdf (extra pdf)."
    )(command)


@click.command()
@click.argument("model")
@click.argument("environment", type=Name())
@click.option(
    "--since", type=Moment(), metavar="TIME", help="Beginning of the period.  [default: everything]"
)
@click.option("--until", type=Moment(), metavar="TIME", help="End of the period, exclusive.  [default: now]")
@_output
@as_json
def dossier(
    model: str,
    environment: str,
    since: datetime | None,
    until: datetime | None,
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    """Write the change-control dossier of MODEL in ENVIRONMENT.

    It states what may change by itself, within which limits, how each change is verified, every change of the period
    with inputs, evidence, approver and effect, how to undo it, and the hash chain of the audit log. With a fixed
    --until, the same log gives the same document.

    \b
    Examples:
      lifelong dossier resnet clinic-a --output dossier.html
      lifelong dossier resnet clinic-a --since 2026-01-01 --until 2026-07-01 --output dossier.pdf
    """
    call = ShowDossier(
        model=model, environment=environment, since=since or EARLIEST, until=until or datetime.now(UTC)
    )
    with connect() as connection:
        found = connection.send(call)
    _write(found, dossier_html, output or Path(f"dossier-{model}-{environment}.html"), as_json=as_json)


@click.command()
@click.argument("model")
@click.argument("environment", type=Name())
@click.option("--month", required=True, help="A month in UTC: 2026-10.")
@_output
@as_json
def report(model: str, environment: str, month: str, output: Path | None, *, as_json: bool) -> None:
    """Write the report of MODEL in ENVIRONMENT about a month, for the quality manager.

    It shows what was served, how the prevalence moved, what changed and why, estimated and realised quality with
    intervals, and who approved what.

    \b
    Examples:
      lifelong report resnet clinic-a --month 2026-10 --output report.html
      lifelong report resnet clinic-a --month 2026-10 --output report.pdf
    """
    with connect() as connection:
        found = connection.send(ShowReport.read({"model": model, "environment": environment, "month": month}))
    _write(
        found,
        report_html,
        output or Path(f"report-{model}-{environment}-{month}.html"),
        as_json=as_json,
    )


def _write(document: Any, html: Callable[[Any], str], output: Path, *, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(document.to_document()))
        return
    page = html(document)
    write_whole(output, to_pdf(page) if output.suffix.lower() == ".pdf" else page.encode())
    echo(f"Wrote {output}")
