"""Characters that are commands to a terminal, or that change the order of the text around them."""

import re

_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters but for the tab, line and paragraph separators, and marks of the direction of writing."""


def escape_controls(text: str) -> str:
    r"""The text with its control characters written as escape sequences; so are line breaks.

    Texts of jobs hold names of files, which may be anything; people read them in a terminal.

    Examples:
        >>> escape_controls("a\x1b[2J\u202e.png")
        'a\\x1b[2J\\u202e.png'
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
