"""Text of files and users that is safe to print: without commands to the terminal."""

from typing import TYPE_CHECKING

from lifelong_core.control_characters import escape_controls

if TYPE_CHECKING:
    from rich.text import Text


def safe_text(text: str, style: str = "") -> "Text":
    """A text whose control characters are written as escape sequences, and whose brackets are no markup."""
    from rich.text import Text

    return Text(escape_controls(text), style=style)
