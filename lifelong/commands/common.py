"""What several commands share: the store they open, who acts, and how tables are printed."""

import getpass
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from lifelong_core.store import Store

as_json: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON instead of a table."
)


@contextmanager
def open_store() -> Iterator["Store"]:
    """The store that the settings name, closed at the end."""
    from lifelong_core.settings import Settings
    from lifelong_core.store import Store

    settings = Settings.load()
    with Store.open(
        settings.resolved_database_url, settings.resolved_artifacts_url, durability=settings.log_durability
    ) as store:
        yield store


def actor() -> str:
    """Who stands in the audit log for changes made on the command line."""
    return f"cli:{getpass.getuser()}"


def counted(count: int, noun: str) -> str:
    """A number with its noun: `1 key`, `2 keys`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def print_rows(
    rows: Sequence[dict[str, Any]], *, as_json: bool, empty: str, whole: str | None = None
) -> None:
    """Print rows with equal keys as a table, or as JSON; the column `whole` is never broken over lines."""
    if as_json:
        click.echo(json.dumps(rows, default=str))
        return
    if not rows:
        click.echo(empty)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, header_style="bold")
    for key in rows[0]:
        width = max(len(str(row[key])) for row in rows) if key == whole else None
        table.add_column(key.replace("_", " "), overflow="fold", no_wrap=key == whole, min_width=width)
    for row in rows:
        table.add_row(*("" if value is None else escape(str(value)) for value in row.values()))
    Console().print(table)
