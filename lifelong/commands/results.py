"""Where results of commands go: files, standard output and the terminal."""

import io
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lifelong.printing import echo
from lifelong_core.values.errors import InvalidInputError

if TYPE_CHECKING:
    from lifelong.rich_console import Console

WIDEST = 100
"""Longest line, in characters."""


def write_text(path: Path, text: str, *, field: str) -> None:
    """Replace the content of a file atomically.

    The umask sets the modes of new files and folders: they hold no patient data, and people share them.

    Raises:
        InvalidInputError: the file cannot be written; `field` names its option.
    """
    from lifelong_core.store.files import write_whole

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f"{text}\n".encode(), mode=0o666)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written ({error.strerror}).", field=field) from error


def write_texts(files: Iterable[tuple[Path | None, str, str]]) -> InvalidInputError | None:
    """Replace the content of files, and return the first failure, so that what was computed can still be printed.

    Args:
        files: path or None, text and option of each.
    """
    failures: list[InvalidInputError] = []
    for path, text, field in files:
        try:
            if path is not None:
                write_text(path, text, field=field)
        except InvalidInputError as error:
            failures.append(error)
    return failures[0] if failures else None


def deliver(
    document: str, page: str, options: Mapping[str, Any], show: Callable[[], None] | None = None
) -> None:
    """Write a result and its report to the files of --output and --html, and print it.

    Files come first: printing fails where the reader of the output has gone.

    Args:
        document: the result as JSON, printed with --json.
        page: the report as HTML; empty without --html.
        options: those of the command: `output`, `html` and `as_json`.
        show: prints the result as text, without --json.

    Raises:
        InvalidInputError: a file cannot be written; the result is printed all the same.
    """
    failure = write_texts([(options["output"], document, "--output"), (options["html"], page, "--html")])
    if options["as_json"]:
        echo(document)
    elif show is not None:
        show()
    if failure is not None:
        raise failure
    if options["output"] is not None:
        echo(f"The result is in {options['output']}.", err=options["as_json"])
    if options["html"] is not None:
        echo(f"The report is in {options['html']}.", err=options["as_json"])


def terminal(*, err: bool = False) -> "Console":
    """Standard output or standard error, with a limited line length."""
    from lifelong.rich_console import Console

    stream = sys.stderr if err else sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")  # a terminal that lacks a character shows ? in its place
    console = Console(stderr=err, highlight=False)
    console.width = min(console.width, WIDEST)
    return console
