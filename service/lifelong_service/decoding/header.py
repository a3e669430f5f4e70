"""Format, size and cost of an image, read from its header.

The readers parse the container only for the size and the amount of metadata. They read a bounded number of blocks, so
that a file of a million tiny blocks costs no more than any other. An unreadable header is `UNKNOWN`: the image counts
as costly.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from lifelong_core.images import FULL_PIXELS, reduction
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError
from lifelong_core.values.preprocessing import Preprocessing

MAXIMUM_BLOCKS: Final = 2000
"""Largest number of blocks (JPEG segments, PNG or RIFF chunks) that are read; PNG encoders write one for each 8 kB of
pixels. Pillow handles each block in Python."""
JPEG_SCAN: Final = b"\xff\xda"
MAXIMUM_ASPECT: Final = 100
"""Largest ratio of the edges. Resizing a line of pixels needs memory for each pixel of the longer edge."""
MAXIMUM_SCANS: Final = 50
"""Passes over the pixels of a JPEG; encoders write some ten, and a thumbnail may have as many. Each pass costs as much
as decoding all pixels."""
MAXIMUM_METADATA_BLOCKS: Final = 1000
"""Segments of a JPEG, or chunks of another format, that hold no pixels. Cameras write some twenty; a colour profile is
at most 255."""
CHEAP_PIXELS: Final = 2_000_000
"""Pixels times scans that are decoded in the serving process: some 10 ms as JPEG, 30 ms as PNG."""
CHEAP_BYTES: Final = 4_000_000
"""Largest file in bytes that is decoded there."""
CHEAP_METADATA_BYTES: Final = 262_144
"""EXIF directories are read in Python, entry by entry."""
CHEAP_FORMATS: Final = frozenset({"PNG", "JPEG", "BMP", "WEBP"})
"""TIFF is missing: it has too many compressions and structures to derive the cost from a header."""


@dataclass(frozen=True)
class ImageHeader:
    """The properties that the header of an image declares.

    Attributes:
        format: PNG, JPEG, BMP, WEBP, TIFF, or empty for other formats.
        width: in pixels; 0: unknown.
        height: in pixels; 0: unknown.
        scans: passes over all pixels during decoding; 1 except for JPEG.
        metadata_bytes: size of all content except pixels and structure.
        metadata_blocks: number of read blocks without pixels.
        compression: compression number in the header of a BMP; 0 for other formats.
        is_complete: whether the structure was read up to the pixels.
        is_sequential: whether it is a JPEG that is decoded row by row, so that decoding at a fraction of its size takes
            that fraction of memory; other JPEGs are held in full.
    """

    format: str
    width: int = 0
    height: int = 0
    scans: int = 1
    metadata_bytes: int = 0
    metadata_blocks: int = 0
    compression: int = 0
    is_complete: bool = False
    is_sequential: bool = False

    @property
    def pixels(self) -> int:
        """Declared width times height."""
        return self.width * self.height


UNKNOWN: Final = ImageHeader("")


def read_header(data: bytes) -> ImageHeader:
    """Read the header of an image; any bytes are accepted.

    Examples:
        >>> from io import BytesIO
        >>> from PIL import Image
        >>> file = BytesIO()
        >>> Image.new("RGB", (30, 20)).save(file, "PNG")
        >>> header = read_header(file.getvalue())
        >>> header.format, header.width, header.height, header.is_complete
        ('PNG', 30, 20, True)
    """
    for magic, name, read in _READERS:
        if data.startswith(magic):
            try:
                return read(data)
            except (struct.error, IndexError):  # it ends in the middle of its header
                return ImageHeader(name)
    return UNKNOWN


def check_header(header: ImageHeader, *, maximum_pixels: int) -> None:
    """Refuse an image whose header exceeds a limit; unknown values pass.

    Raises:
        PayloadTooLargeError: it declares more than `maximum_pixels`, or more than `MAXIMUM_SCANS` passes.
        InvalidInputError: its edges differ too much, or it is a run-length encoded BMP.
    """
    if header.pixels > maximum_pixels:
        raise PayloadTooLargeError(
            f"the image declares {header.width} x {header.height} pixels, at most {maximum_pixels} are decoded.",
            field="image",
            hint="Send it at a lower resolution, or raise LIFELONG_MAXIMUM_IMAGE_PIXELS.",
        )
    shortest, longest = sorted((header.width, header.height))
    if longest > MAXIMUM_ASPECT * shortest > 0:
        raise InvalidInputError(
            f"one edge of {header.width} x {header.height} pixels is more than {MAXIMUM_ASPECT} times the other.",
            field="image",
            hint="Crop the image.",
        )
    if header.scans > MAXIMUM_SCANS:
        raise PayloadTooLargeError(
            f"the JPEG has {header.scans} scans, at most {MAXIMUM_SCANS} are decoded.",
            field="image",
            hint="Save it as a baseline JPEG.",
        )
    if header.metadata_blocks > MAXIMUM_METADATA_BLOCKS:
        raise InvalidInputError(
            f"the image holds more than {MAXIMUM_METADATA_BLOCKS} blocks of metadata.",
            field="image",
            hint="Save it without metadata.",
        )
    if header.format == "BMP" and header.compression in (1, 2):
        raise InvalidInputError(
            "run-length encoded BMP images are not accepted.",
            field="image",
            hint="Save it without compression, or as PNG.",
        )


def is_cheap(header: ImageHeader, size: int) -> bool:
    """Whether the header proves that decoding takes little time and memory.

    Args:
        header: header of the image.
        size: size of the file in bytes.
    """
    return (
        header.is_complete
        and header.format in CHEAP_FORMATS
        and size <= CHEAP_BYTES
        and 0 < header.pixels * header.scans <= CHEAP_PIXELS
        and header.metadata_bytes <= CHEAP_METADATA_BYTES
    )


def takes_much_memory(header: ImageHeader, target: Preprocessing) -> bool:
    """Whether decoding may take tens of megabytes.

    Args:
        header: header of an accepted image.
        target: preprocessing of the model: a sequential JPEG may be decoded at a fraction of its size.
    """
    if header.is_complete and header.is_sequential and reduction((header.width, header.height), target) > 1:
        return False
    return not 0 < header.pixels <= FULL_PIXELS


def _read_png(data: bytes) -> ImageHeader:
    width, height = struct.unpack_from(">II", data, 16)
    position, metadata, blocks = 8, 0, 0
    is_complete = False
    for _ in range(MAXIMUM_BLOCKS):
        length, kind = struct.unpack_from(">I4s", data, position) if position < len(data) else (0, b"IEND")
        if kind == b"IEND":
            is_complete = data[12:16] == b"IHDR"
            break
        if kind not in (b"IHDR", b"IDAT", b"PLTE"):
            metadata += length
            blocks += 1
        position += 12 + length
    return ImageHeader(
        "PNG", width, height, metadata_bytes=metadata, metadata_blocks=blocks, is_complete=is_complete
    )


def _read_jpeg(data: bytes) -> ImageHeader:
    width = height = metadata = blocks = 0
    frame_marker = components = 0
    position, is_complete, is_sequential = 2, False, False
    # In pixel data 0xFF is always followed by 0 or a restart marker, so the count of scans is exact; a thumbnail in the
    # metadata may add some.
    scans = data.count(JPEG_SCAN)
    while blocks < MAXIMUM_BLOCKS:
        marker, length = _jpeg_segment(data, position)
        if marker == 0xDA:
            is_complete = width > 0
            # The first scan of such a file holds all colours.
            is_sequential = frame_marker in (0xC0, 0xC1) and data[position + 4] == components
            break
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            if width:  # a second frame: decoders disagree on which one counts
                break
            height, width, components = struct.unpack_from(">HHB", data, position + 5)
            frame_marker = marker
        elif 0xE0 <= marker <= 0xEF or marker == 0xFE:
            metadata += length
        position += 2 + length
        blocks += 1
    return ImageHeader(
        "JPEG", width, height, scans, metadata, blocks, is_complete=is_complete, is_sequential=is_sequential
    )


def _jpeg_segment(data: bytes, position: int) -> tuple[int, int]:
    """Return marker and length of the segment; fill bytes and segments without a length count as unreadable."""
    prefix, marker, length = struct.unpack_from(">BBH", data, position)
    if prefix != 0xFF or marker in (0x00, 0x01, 0xFF) or 0xD0 <= marker <= 0xD9:
        raise IndexError("not a plain segment")
    return marker, length


def _read_bmp(data: bytes) -> ImageHeader:
    size = struct.unpack_from("<I", data, 14)[0]
    if size == 12:
        width, height = struct.unpack_from("<HH", data, 18)
        return ImageHeader("BMP", width, height, is_complete=True)
    width, height, _, _, compression = struct.unpack_from("<iiHHI", data, 18)
    return ImageHeader("BMP", abs(width), abs(height), compression=compression, is_complete=True)


def _read_webp(data: bytes) -> ImageHeader:
    kind = data[12:16]
    if kind == b"VP8X":
        width = 1 + int.from_bytes(data[24:27], "little")
        height = 1 + int.from_bytes(data[27:30], "little")
    elif kind == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    else:
        width, height = (edge & 0x3FFF for edge in struct.unpack_from("<HH", data, 26))
    metadata, blocks, position = 0, 0, 12
    while blocks < MAXIMUM_BLOCKS:
        if position + 8 > len(data):
            break
        name, length = struct.unpack_from("<4sI", data, position)
        if name not in (b"VP8 ", b"VP8L", b"ALPH"):
            metadata += length
        position += 8 + length + length % 2
        blocks += 1
    is_known = data[8:12] == b"WEBP" and kind in (b"VP8 ", b"VP8L", b"VP8X")
    is_complete = is_known and blocks < MAXIMUM_BLOCKS
    return ImageHeader(
        "WEBP", width, height, metadata_bytes=metadata, metadata_blocks=blocks, is_complete=is_complete
    )


def _read_tiff(data: bytes) -> ImageHeader:  # noqa: ARG001 - the readers look alike
    """Return a header without a size: its directory may be anywhere in the file, with dozens of compressions."""
    return ImageHeader("TIFF")


_READERS: Final[tuple[tuple[bytes, str, Callable[[bytes], ImageHeader]], ...]] = (
    (b"\xff\xd8\xff", "JPEG", _read_jpeg),
    (b"\x89PNG\r\n\x1a\n", "PNG", _read_png),
    (b"RIFF", "WEBP", _read_webp),
    (b"BM", "BMP", _read_bmp),
    (b"II*\x00", "TIFF", _read_tiff),
    (b"MM\x00*", "TIFF", _read_tiff),
    (b"II+\x00", "TIFF", _read_tiff),
    (b"MM\x00+", "TIFF", _read_tiff),
)
