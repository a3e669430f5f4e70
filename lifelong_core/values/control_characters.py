"""Characters that are commands to a terminal, or that change the order of the text around them."""

import re

_CONTROLS = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters but for the tab, line and paragraph separators, marks of the direction of writing, and surrogates,
which no output can encode."""


def escape_controls(text: str, *, keep_lines: bool = False) -> str:
    r"""The text with its control characters written as escape sequences.

    Args:
        text: from anywhere: names of files may hold all characters, and people read them in a terminal.
        keep_lines: whether line feeds stay.

    Examples:
        >>> escape_controls("a\x1b[2J\u202e.png\n"), escape_controls("a\n", keep_lines=True)
        ('a\\x1b[2J\\u202e.png\\n', 'a\n')
    """
    if keep_lines:
        return "\n".join(map(escape_controls, text.split("\n")))
    return _CONTROLS.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    r"""Beyond ASCII as JSON writes it: JSON may hold such characters as they are, and stays the same document."""
    character = found[0]
    return character.encode("unicode_escape").decode() if character < " " else f"\\u{ord(character):04x}"
