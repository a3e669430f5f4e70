"""Decode JPEGs by one call of libjpeg-turbo that leaves the interpreter to other threads, and reports damage.

Pillow takes the interpreter back after each 64 kB of a file and for each of its headers, and drops the decoder's
reports of damage. Both give the same pixels.
"""

import re
from typing import Final, NamedTuple

import numpy as np
import simplejpeg  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

_START: Final = b"\xff\xd8\xff"
_ORIENTED: Final = (b"Exif", b"http://ns.adobe.com/xap")
"""Start of the metadata that may say how to turn the image."""
_LOSSLESS: Final = b"\xff\xc3"
"""Start of a lossless frame, which may have fewer than 8 bits; Pillow refuses these."""
_SCAN: Final = b"\xff\xda"
_CHANNELS: Final = {"YCbCr": "RGB", "RGB": "RGB", "Gray": "GRAY", "CMYK": "CMYK", "YCCK": "CMYK"}
_PADDING: Final = re.compile(r"data: (\d|1[0-6]) extraneous bytes before marker 0x([0-9a-f]{2})")
_MOST_PADDINGS: Final = 3
"""Places with harmless zeros between segments, which some encoders write."""


class UnnamedSubsamplingError(ValueError):
    """simplejpeg cannot decode the subsampling of colours, such as that of CMYK at half the resolution."""


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
    if data.find(_LOSSLESS, 0, data.find(_SCAN)) >= 0:
        return None
    try:
        height, width, colours, _ = simplejpeg.decode_jpeg_header(data)
    except (ValueError, KeyError):  # KeyError: a subsampling that simplejpeg does not name
        return None
    channels = _CHANNELS.get(str(colours))
    return None if channels in (None, "CMYK") else PlainHeader(int(width), int(height), channels)


def decode_plain_jpeg(data: bytes, header: PlainHeader) -> NDArray[np.uint8] | None:
    """Grey levels (height, width, 1 or 3) of the image of this header.

    None: libjpeg-turbo warns about it; it may be truncated.
    """
    try:
        return simplejpeg.decode_jpeg(data, header.channels)
    except ValueError:
        return None


def decode_strictly(data: bytes, channels: str | None, *, factor: int = 1) -> NDArray[np.uint8]:
    """Grey levels (height, width, 1, 3 or 4) of the first image of any JPEG.

    Args:
        data: the bytes of the file.
        channels: what to decode to, as simplejpeg names it; None: as the file says.
        factor: 1, 2, 4 or 8: the edges are divided by it.

    Raises:
        UnnamedSubsamplingError: it cannot be decoded here.
        ValueError: what libjpeg-turbo reports; pixels may be wrong. Few zeros between segments are no damage.
    """
    for _ in range(_MOST_PADDINGS):
        try:
            if channels is None:
                channels = _CHANNELS.get(str(simplejpeg.decode_jpeg_header(data, strict=False)[2]))
            return simplejpeg.decode_jpeg(data, channels or "RGB", min_factor=factor)
        except KeyError:
            channels = "RGB"
        except ValueError as error:
            if "subsampling" in str(error):
                raise UnnamedSubsamplingError(str(error)) from error
            found = _PADDING.search(str(error))
            marker = b"" if found is None else bytes.fromhex("ff" + found[2])
            shorter = data if found is None else data.replace(bytes(int(found[1])) + marker, marker)
            if len(shorter) == len(data):
                raise
            data = shorter
    raise ValueError("bytes between its segments")
