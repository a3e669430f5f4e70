"""Output of the command line. Names, notes and logs come from others, so that all text is made harmless here:

control characters, marks of the direction of writing and surrogates become visible escape sequences. Line feeds and
tabs, which our own layout has, stay. Rich is imported by those who print with it: `lifelong.rich_console`.
"""

from typing import Any

import click

from lifelong_core.values.control_characters import escape_controls


def echo(text: object = "", *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print a text.

    Args:
        text: without styles of its own.
        err: to standard error.
        nl: whether the line ends.
        style: of the whole text, as of `click.style`.
    """
    safe = harmless(str(text))
    click.echo(click.style(safe, **style) if style else safe, err=err, nl=nl)


def harmless(text: str) -> str:
    """A text that is no command to a terminal; its lines stay lines."""
    return escape_controls(text, keep_lines=True)
