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
_MOST_TRIES: Final = 4
"""Decodings of one image: as it is, without metadata, and without zeros between segments, which some encoders write."""
_MARKER: Final = re.compile(rb"\xff+([^\x00\xff])")
_METADATA: Final = frozenset({*range(0xE1, 0xF0), 0xFE} - {0xEE})
"""Segments for applications and comments; but JFIF (0xE0) and Adobe (0xEE) say what the colours are."""
_COLOURS: Final = re.compile(rb"\xff(\xe0|\xee..Adobe.{7})", re.DOTALL)
"""JFIF, and a complete segment of Adobe."""
_WITHOUT_LENGTH: Final = frozenset({1, *range(0xD0, 0xD8)})


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


def decode_strictly(
    data: bytes, channels: str | None, *, least: tuple[int, int] = (0, 0)
) -> NDArray[np.uint8]:
    """Grey levels (height, width, 1, 3 or 4) of the first image of any JPEG.

    Args:
        data: the bytes of the file.
        channels: what to decode to, as simplejpeg names it; None: as the file says.
        least: width and height to which the decoder may reduce it; 0: in full.

    Raises:
        UnnamedSubsamplingError: it cannot be decoded here.
        ValueError: what libjpeg-turbo reports; pixels may be wrong. Faults of metadata, bytes after it, and few zeros
            between other segments are no damage.
    """
    for _ in range(_MOST_TRIES):
        try:
            if channels is None:
                channels = _CHANNELS.get(str(simplejpeg.decode_jpeg_header(data, strict=False)[2]))
            return simplejpeg.decode_jpeg(data, channels or "RGB", min_width=least[0], min_height=least[1])
        except KeyError:
            channels = "RGB"
        except ValueError as error:
            if "subsampling" in str(error):
                raise UnnamedSubsamplingError(str(error)) from error
            found, changed = _PADDING.search(str(error)), _without_metadata(data)
            if changed == data and found is not None:
                marker = bytes.fromhex("ff" + found[2])
                changed = data.replace(bytes(int(found[1])) + marker, marker)
            if changed == data:
                raise
            data = changed
    raise ValueError("bytes between its segments")


def _without_metadata(data: bytes) -> bytes:
    """The JPEG without what libjpeg-turbo reports of its header although no pixel depends on it.

    These are metadata such as a broken ICC profile, bytes after metadata, the revision of JFIF, and the parameters of a
    sequential scan. Bytes after other segments stay: they may be the rest of a damaged one.
    """
    parts, position, is_needed, is_sequential = [data[:2]], 2, False, False
    while (found := _MARKER.search(data, position)) is not None:
        if is_needed:
            parts.append(data[position : found.start()])
        marker, position = found[1][0], found.end()
        if marker in _WITHOUT_LENGTH:
            continue
        start, position = position - 2, position + int.from_bytes(data[position : position + 2])
        segment = data[start:position]
        if segment[4:9] == b"JFIF\0":
            segment = segment[:9] + b"\1\1" + segment[11:]
        is_needed = marker not in _METADATA and not _COLOURS.match(segment)
        is_sequential |= marker in (0xC0, 0xC1)
        if marker not in _METADATA:
            parts.append(segment)
        if marker == _SCAN[1]:
            end = b"\0\x3f\0" if is_sequential else segment[-3:]
            return b"".join([*parts[:-1], segment[:-3], end, data[position:]])
    return data
