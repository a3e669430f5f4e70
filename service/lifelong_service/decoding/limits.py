"""Limits of images by their headers: for refusal, and for decoding in the serving process."""

from typing import Final

from lifelong_core.images import FULL_PIXELS, reduction
from lifelong_core.images.preprocessing import Preprocessing
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError
from lifelong_service.decoding.header import ImageHeader

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
