"""`python -m tests.behaviour record DIR [--database postgresql]` and `... compare DIR_A DIR_B`."""

import difflib
import signal
import sys
from pathlib import Path

import click

from tests.behaviour.record import record


@click.group()
def main() -> None:
    """Record what the product shows to its users, and compare two recordings."""


@main.command("record")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--database", type=click.Choice(["sqlite", "postgresql"]), default="sqlite")
@click.option("--port", default=21000, help="The service listens here, the monitor on the next port.")
def record_command(folder: Path, database: str, port: int) -> None:
    """Fill a store and write all observations into an empty FOLDER."""
    if folder.exists() and any(folder.iterdir()):
        raise click.UsageError(f"{folder} is not empty.")
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(1)
    )  # so that the processes that it has started end, too
    record(folder, database, port)


@main.command()
@click.argument("before", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("after", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--lines", default=40, help="Lines of each difference; 0: all.")
def compare(before: Path, after: Path, lines: int) -> None:
    """Print the differences of two recordings by item; exit with 1 if there is one."""
    names = sorted({str(file.relative_to(root)) for root in (before, after) for file in root.rglob("*.txt")})
    differing = 0
    for name in names:
        texts = [
            (root / name).read_text().splitlines() if (root / name).exists() else []
            for root in (before, after)
        ]
        found = list(difflib.unified_diff(*texts, "before", "after", lineterm="", n=2))
        if found:
            differing += 1
            click.echo(f"==== {name}")
            click.echo("\n".join(found[: lines or None]))
            if lines and len(found) > lines:
                click.echo(f"... {len(found) - lines} lines more")
    click.echo(f"{differing} of {len(names)} items differ.")
    sys.exit(differing > 0)


main()
