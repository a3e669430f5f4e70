"""Decode plain JPEGs, which most images are, by one call of libjpeg-turbo that leaves the interpreter to other threads.

Pillow takes the interpreter back after each 64 kB of a file and for each of its headers. Both give the same pixels.
"""

from typing import Final

import numpy as np
import simplejpeg  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

_START: Final = b"\xff\xd8\xff"
_ORIENTED: Final = (b"Exif", b"http://ns.adobe.com/xap")
"""Start of the metadata that may say how to turn the image."""
_CHANNELS: Final = {"YCbCr": "RGB", "RGB": "RGB", "Gray": "GRAY"}


def read_plain_size(data: bytes) -> tuple[int, int] | None:
    """Width and height of a JPEG of grey values or colours that has no orientation; None: `data` is something else."""
    if not data.startswith(_START) or any(mark in data for mark in _ORIENTED):
        return None
    try:
        height, width, colours, _ = simplejpeg.decode_jpeg_header(data)
    except (ValueError, KeyError):  # KeyError: a subsampling that simplejpeg does not name
        return None
    return (int(width), int(height)) if colours in _CHANNELS else None


def decode_plain_jpeg(data: bytes) -> NDArray[np.uint8] | None:
    """Grey levels (height, width, 1 or 3) of an image of which `read_plain_size` knows the size.

    None: libjpeg-turbo warns about it; it may be truncated.
    """
    try:
        colours = simplejpeg.decode_jpeg_header(data)[2]
        return simplejpeg.decode_jpeg(data, _CHANNELS[str(colours)])
    except (ValueError, KeyError):  # KeyError: a subsampling that simplejpeg does not name
        return None
