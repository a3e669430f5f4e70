"""Structural limits of a JSON text, checked on its bytes before it is parsed.

The parser itself limits the nesting of lists and objects to 200 levels.
"""

import numpy as np

from lifelong_core.values.errors import PayloadTooLargeError

MAXIMUM_NAMES = 10_000
"""Feedback on 1,000 predictions has 7,000 names."""
MAXIMUM_CONTAINERS = 50_000
"""An empty list takes 3 bytes of text and up to 300 bytes of memory."""
MAXIMUM_VALUES = 250_000
"""Up to 80 bytes of memory each while they are parsed. 10,000 rows of 20 classes are some 4 MB."""

_LIMITS = (
    ("names", b":", MAXIMUM_NAMES),
    ("lists and objects", b"[{", MAXIMUM_CONTAINERS),
    ("values", b",[{", MAXIMUM_VALUES),  # at most one value follows each of these
)
_CHUNK = 1 << 18
_QUOTE = ord('"')


def check_structure(text: bytes) -> None:
    """Check that a JSON text has few enough parts to be parsed; characters inside strings do not count.

    Args:
        text: any bytes; the parser rejects invalid JSON.

    Raises:
        PayloadTooLargeError: it has too many names, lists and objects, or values.
    """
    exact: bytes | None = None
    for what, characters, maximum in _LIMITS:
        if _count(text, characters) > maximum:  # texts included
            exact = without_texts(text) if exact is None else exact
            if (count := _count(exact, characters)) > maximum:
                raise PayloadTooLargeError(
                    f"the JSON document has {count} {what}, at most {maximum} are accepted.",
                    field="body",
                    hint="Send less; send arrays as npy or npz where the call accepts them.",
                )


def without_texts(text: bytes) -> bytes:
    """Return a JSON text without the content of its strings.

    Examples:
        >>> without_texts(b'{"a, b": ["c", 1]}')
        b'{": [", 1]}'
    """
    if b"\\" in text:
        text = text.replace(rb"\\", b"  ").replace(rb"\"", b"  ")
    parts: list[bytes] = []
    is_inside = np.uint8(0)
    for begin in range(0, len(text), _CHUNK):
        part = np.frombuffer(text, np.uint8, min(_CHUNK, len(text) - begin), begin)
        inside = (np.cumsum(part == _QUOTE, dtype=np.uint8) + is_inside) & 1
        is_inside = inside[-1]
        parts.append(part[inside == 0].tobytes())
    return b"".join(parts)


def _count(text: bytes, characters: bytes) -> int:
    return sum(text.count(character) for character in characters)
