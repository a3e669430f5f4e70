"""Decode plain JPEGs, which most images are, by one call of libjpeg-turbo that leaves the interpreter to other threads.

Pillow takes the interpreter back after each 64 kB of a file and for each of its headers. Both give the same pixels.
"""

from typing import Final, NamedTuple

import numpy as np
import simplejpeg  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

_START: Final = b"\xff\xd8\xff"
_ORIENTED: Final = (b"Exif", b"http://ns.adobe.com/xap")
"""Start of the metadata that may say how to turn the image."""
_CHANNELS: Final = {"YCbCr": "RGB", "RGB": "RGB", "Gray": "GRAY"}


class PlainHeader(NamedTuple):
    """Header of a JPEG of grey values or colours that has no orientation."""

    width: int
    height: int
    channels: str
    """as simplejpeg names what it decodes to"""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.width, self.height


def read_plain_header(data: bytes) -> PlainHeader | None:
    """Return the header; None: `data` is no plain JPEG."""
    if not data.startswith(_START) or any(mark in data for mark in _ORIENTED):
        return None
    try:
        height, width, colours, _ = simplejpeg.decode_jpeg_header(data)
    except (ValueError, KeyError):  # KeyError: a subsampling that simplejpeg does not name
        return None
    channels = _CHANNELS.get(str(colours))
    return None if channels is None else PlainHeader(int(width), int(height), channels)


def decode_plain_jpeg(data: bytes, header: PlainHeader) -> NDArray[np.uint8] | None:
    """Grey levels (height, width, 1 or 3) of the image of this header.

    None: libjpeg-turbo warns about it; it may be truncated.
    """
    try:
        return simplejpeg.decode_jpeg(data, header.channels)
    except ValueError:
        return None
