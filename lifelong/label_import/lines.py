"""Lines of a file, read one at a time with bounded memory."""

from collections.abc import Iterator
from typing import BinaryIO

LONGEST_LINE = 4000
"""Largest number of bytes of a line; the fields of a label together are far shorter."""


def read_lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yield the number of each line, from 1, and its bytes without its end; None: it is longer than LONGEST_LINE."""
    number = 0
    while line := file.readline(LONGEST_LINE + 2):
        number += 1
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        is_too_long = len(content) > LONGEST_LINE
        while is_too_long and line and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE)
        yield number, None if is_too_long else content
