"""`lifelong dossier` and `lifelong report`: documents about a population and a period, as HTML, PDF or JSON."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import as_json, population_arguments
from lifelong.commands.connection import connect
from lifelong.commands.durations import Moment
from lifelong.printing import echo
from lifelong_core.change_control.pages import dossier_html, report_html
from lifelong_core.change_control.pdf import to_pdf
from lifelong_core.operations.administration.change_control import EARLIEST, ShowDossier, ShowReport
from lifelong_core.store.files import write_whole

FILE = click.Path(dir_okay=False, path_type=Path)


def _files(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--html` and `--pdf`."""
    pdf = click.option("--pdf", type=FILE, help="Write it as PDF; needs the extra `pdf`.")
    return click.option("--html", type=FILE, help="Write it as a page.  [default: a page in this folder]")(
        pdf(command)
    )


@click.command()
@population_arguments
@click.option(
    "--since", type=Moment(), metavar="TIME", help="Beginning of the period.  [default: everything]"
)
@click.option("--until", type=Moment(), metavar="TIME", help="End of the period, exclusive.  [default: now]")
@_files
@as_json
def dossier(
    model: str,
    environment: str,
    since: datetime | None,
    until: datetime | None,
    html: Path | None,
    pdf: Path | None,
    *,
    as_json: bool,
) -> None:
    """Write the change-control dossier of MODEL in ENVIRONMENT.

    It states what may change by itself, within which limits, how each change is verified, every change of the period
    with inputs, evidence, approver and effect, how to undo it, and the hash chain of the audit log. With a fixed
    --until, the same log gives the same document.

    \b
    Examples:
      lifelong dossier resnet clinic-a --html dossier.html
      lifelong dossier resnet clinic-a --since 2026-01-01 --until 2026-07-01 --pdf dossier.pdf
    """
    call = ShowDossier(
        model=model, environment=environment, since=since or EARLIEST, until=until or datetime.now(UTC)
    )
    with connect() as connection:
        found = connection.send(call)
    _write(found, dossier_html, (html, pdf), f"dossier-{model}-{environment}.html", as_json=as_json)


@click.command()
@population_arguments
@click.option("--month", required=True, help="A month in UTC: 2026-10.")
@_files
@as_json
def report(
    model: str, environment: str, month: str, html: Path | None, pdf: Path | None, *, as_json: bool
) -> None:
    """Write the report of MODEL in ENVIRONMENT about a month, for the quality manager.

    It shows what was served, how the prevalence moved, what changed and why, estimated and realised quality with
    intervals, and who approved what.

    \b
    Examples:
      lifelong report resnet clinic-a --month 2026-10 --html report.html
      lifelong report resnet clinic-a --month 2026-10 --pdf report.pdf
    """
    with connect() as connection:
        found = connection.send(ShowReport.read({"model": model, "environment": environment, "month": month}))
    _write(found, report_html, (html, pdf), f"report-{model}-{environment}-{month}.html", as_json=as_json)


def _write(
    document: Any,
    render: Callable[[Any], str],
    files: tuple[Path | None, Path | None],
    default: str,
    *,
    as_json: bool,
) -> None:
    html, pdf = files
    if html is None and pdf is None and not as_json:
        html = Path(default)
    page = render(document)
    for file, content in ((html, page.encode()), (pdf, None if pdf is None else to_pdf(page))):
        if file is not None and content is not None:
            write_whole(file, content)
            echo(f"Wrote {file}", err=as_json)
    if as_json:
        echo(json.dumps(document.to_document()))
