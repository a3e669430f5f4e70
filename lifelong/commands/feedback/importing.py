"""`lifelong feedback import`: labels from a CSV file."""

import json
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

import click

from lifelong.client import Client
from lifelong.commands.common import as_json as json_option
from lifelong.commands.common import format_count, service_url, url_option
from lifelong.commands.durations import Duration
from lifelong.label_import.rows import LONGEST_SOURCE, read_rows
from lifelong.label_import.sending import ImportOutcome, LabelImport, rejection_file
from lifelong.printing import echo
from lifelong.rich_console import Console
from lifelong_core.values.errors import ConfigurationError, InvalidInputError, LifelongError, RetryableError

NOT_STORED = 3
"""Exit status where rows were not stored."""


@click.command("import", short_help="Send the labels of a CSV file.")
@click.argument("file", type=click.File("rb"))
@click.option("--source", default="", help="Source of labels without one in the file, e.g. pathology.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="CSV file for the rows that were not stored, with line and reason; an existing one is replaced.",
)
@click.option("--dry-run", is_flag=True, help="Store nothing; report what would be stored.")
@click.option(
    "--patience",
    type=Duration(),
    default="5m",
    show_default=True,
    help="Longest wait for a service that is temporarily unavailable.",
)
@url_option
@click.option("--token", envvar="LIFELONG_TOKEN", show_envvar=True, help="Token with the scope feedback.")
@json_option
def import_labels(
    file: BinaryIO,
    source: str,
    report: Path | None,
    patience: timedelta,
    url: str | None,
    token: str | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Send the labels of a CSV file of any length to the running service; - is standard input.

    The header names the columns: label (class name or index), prediction_id or request_id, and perhaps row, model,
    environment, source, propensity. The separator is a comma, a semicolon or a tab. Rows without a label are left out.

    A wrong row does not stop the others. Sending a file again is harmless: labels that are stored already are
    unchanged, and another label of the same prediction corrects the first one.

    Exit status: 0 all labels are stored, 1 the import stopped, 3 some rows were not stored.

    \b
    Examples:
      lifelong feedback import labels.csv --report not-stored.csv
      ris-export | lifelong feedback import - --source pathology
    """
    _check_options(file, report, source)
    try:
        with rejection_file(report) as reject, Client(service_url(url), token) as api:
            task = LabelImport(
                api,
                reject,
                dry_run=dry_run,
                patience_seconds=patience.total_seconds(),
                on_wait=_tell_wait,
            )
            try:
                _run(task, file, source)
            except LifelongError:
                if task.outcome.last_line:
                    _print_stop(task.outcome)
                raise
    except OSError as error:
        raise ConfigurationError(
            f"a file cannot be read or written: {error.strerror or error}.",
            field=str(error.filename or "FILE"),
        ) from error
    if as_json:
        echo(json.dumps({**task.outcome.to_document(), "dry_run": dry_run}))
    else:
        _print(task.outcome, report, dry_run=dry_run)
    if task.outcome.not_stored:
        raise click.exceptions.Exit(NOT_STORED)


def _check_options(file: BinaryIO, report: Path | None, source: str) -> None:
    """Refuse options that would spoil the import.

    Raises:
        InvalidInputError: the report would replace the imported file, or the source is too long.
    """
    if len(source) > LONGEST_SOURCE:
        raise InvalidInputError(f"expected at most {LONGEST_SOURCE} characters.", field="--source")
    imported = Path(str(getattr(file, "name", "-")))
    if report is not None and report.exists() and imported.exists() and report.samefile(imported):
        raise InvalidInputError("this is the file of the labels.", field="--report")


def _run(task: LabelImport, file: BinaryIO, source: str) -> None:
    """Send all labels, with a count of the rows where standard error is a terminal."""
    from rich.progress import Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.completed:,.0f} rows"),)
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        bar = progress.add_task("rows", total=None)
        task.run(read_rows(file, source=source), lambda rows: progress.advance(bar, rows))


def _tell_wait(error: RetryableError) -> None:
    echo(
        f"The service asks to try again in {error.retry_after_seconds} s: {error.message}",
        err=True,
    )


def _print(outcome: ImportOutcome, report: Path | None, *, dry_run: bool) -> None:
    would = "Dry run, nothing was stored. It would be: " if dry_run else ""
    echo(
        f"{would}{outcome.stored:,} stored, {outcome.unchanged:,} unchanged, {outcome.corrected:,} corrected,"
        f" {outcome.unknown:,} unknown, {outcome.refused:,} refused."
    )
    if outcome.unlabelled:
        echo(f"{format_count(outcome.unlabelled, 'row')} without a label.")
    for row in outcome.examples:
        echo(f"  line {row.line}: {row.reason}: {row.message}", err=True)
    if outcome.not_stored > len(outcome.examples) and report is None:
        echo("  ... list all of them with --report FILE.", err=True)
    if outcome.not_stored and report is not None:
        echo(f"The rows that were not stored are in {report}.")


def _print_stop(outcome: ImportOutcome) -> None:
    echo(
        f"Stopped after line {outcome.last_line:,}: {outcome.stored:,} stored, {outcome.unchanged:,} unchanged,"
        f" {outcome.corrected:,} corrected, {outcome.unknown:,} unknown, {outcome.refused:,} refused. Send the whole"
        " file again: what is stored stays as it is.",
        err=True,
    )
