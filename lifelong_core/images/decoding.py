"""Decode the bytes of an image within limits."""

import contextlib
import ctypes
import warnings
import zlib
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, _imaging

from lifelong_core.images.plain_jpeg import (
    UnnamedSubsamplingError,
    decode_plain_jpeg,
    decode_strictly,
    read_plain_header,
)
from lifelong_core.images.tiff import check_tiff
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError
from lifelong_core.values.preprocessing import Preprocessing

FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP")
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"})
"""of files in these formats"""
FULL_PIXELS = 4_000_000
"""Largest number of pixels of an image that is always decoded in full and resized as a whole."""
KEPT_EDGES = 4
"""Least ratio of the decoded edges to the resized edges if a larger JPEG is decoded at a fraction of its size."""
_JPEG_CHANNELS = {"L": "GRAY", "RGB": "RGB", "CMYK": "CMYK"}
MENDS_BROKEN = "Send one complete PNG, JPEG, TIFF, BMP or WebP image."

# The check below uses the configured limit; Pillow's fixed limit would warn and raise at other sizes.
Image.MAX_IMAGE_PIXELS = None
# Pillow warns about unusual metadata, which only the client could correct, and about the transparency of palettes,
# which is ignored on purpose. Filters of single calls would not be safe with threads.
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")
# libtiff would write such warnings to the standard error of the process, once for each damaged strip of each request.
for _setter in ("TIFFSetErrorHandler", "TIFFSetWarningHandler"):
    with contextlib.suppress(OSError, AttributeError):  # a Pillow whose libtiff is linked in another way
        getattr(ctypes.CDLL(_imaging.__file__), _setter)(None)


def decode(
    data: bytes,
    *,
    maximum_pixels: int,
    declared: tuple[int, int] | None = None,
    target: Preprocessing | None = None,
) -> Image.Image:
    """Return the first image in `data`, turned upright by its EXIF orientation.

    Args:
        data: the bytes of the image.
        maximum_pixels: limit of width times height.
        declared: width and height that the image must have; None: any.
        target: later preprocessing; a large JPEG may be decoded at a fraction of its size (`reduction`). None: always
            in full.

    Raises:
        InvalidInputError: not an image of a known format, damaged as far as the format shows it, of another size than
            declared, or with samples whose meaning is not certain.
        PayloadTooLargeError: the header declares more than `maximum_pixels`; nothing was decoded.
    """
    plain = decode_plain(data, maximum_pixels=maximum_pixels, declared=declared)
    if plain is None:
        return decode_by_pillow(data, maximum_pixels=maximum_pixels, declared=declared, target=target)
    return to_image(plain)


def decode_plain(
    data: bytes, *, maximum_pixels: int, declared: tuple[int, int] | None
) -> NDArray[np.uint8] | None:
    """Grey levels (height, width, 1 or 3) of a plain JPEG that is decoded in full; None: any other image.

    Raises:
        InvalidInputError: another size than declared.
        PayloadTooLargeError: as `decode`.
    """
    header = read_plain_header(data)
    if header is None:
        return None
    _check_size(header.size, maximum_pixels, declared)
    return decode_plain_jpeg(data, header) if header.width * header.height <= FULL_PIXELS else None


def to_image(plain: NDArray[np.uint8]) -> Image.Image:
    """The grey levels of `decode_plain` as an image."""
    return Image.fromarray(plain if plain.shape[2] > 1 else plain[:, :, 0])


def decode_by_pillow(
    data: bytes, *, maximum_pixels: int, declared: tuple[int, int] | None, target: Preprocessing | None
) -> Image.Image:
    """Return the image of any format, as `decode`."""
    try:
        check_tiff(data)
        image = Image.open(BytesIO(data), formats=FORMATS)
    except (InvalidInputError, MemoryError):
        raise
    except Exception as error:  # Pillow's parsers raise many kinds of errors for invalid files
        if isinstance(error, ValueError | zlib.error):
            raise _broken(error) from error
        raise InvalidInputError(
            "this is not an image that can be read.", field="image", hint=MENDS_BROKEN
        ) from error
    _check_size(image.size, maximum_pixels, declared)
    try:
        if image.format in ("JPEG", "MPO"):
            image = _jpeg_pixels(data, image, reduction(image.size, target))
        _check_damage(data)
    except ValueError as error:
        raise _broken(error) from error
    return _loaded(image)


def reduction(size: tuple[int, int], target: Preprocessing | None) -> int:
    """The fraction of its edges (2, 4 or 8) at which a JPEG is decoded; 1: in full.

    Only an image of more than `FULL_PIXELS` is reduced, if both edges are multiples of the fraction, so that the area
    stays the same, and stay `KEPT_EDGES` times those to which `target` resizes it by a filter that averages.
    """
    resize = None if target is None else target.resize
    if resize is None or resize.interpolation == "nearest" or size[0] * size[1] <= FULL_PIXELS:
        return 1
    # The image may be rotated later, so either edge may become the width.
    least = max(resize.height, resize.width) * KEPT_EDGES
    fits = (
        each for each in (8, 4, 2) if min(size) >= each * least and not (size[0] % each or size[1] % each)
    )
    return next(fits, 1)


def _jpeg_pixels(data: bytes, header: Image.Image, factor: int) -> Image.Image:
    """The pixels of a JPEG, with the metadata that Pillow has read from its header."""
    if header.mode == "CMYK" and "adobe" not in header.info:
        raise InvalidInputError(
            "the CMYK JPEG has no Adobe marker, which says whether 0 or 255 is white.",
            field="image",
            hint="Send it as RGB or greyscale.",
        )
    least = (header.width // factor, header.height // factor) if factor > 1 else (0, 0)
    try:
        pixels = decode_strictly(data, _JPEG_CHANNELS[header.mode], least=least)
    except UnnamedSubsamplingError:
        _check_by_pillow(data)
        return header
    if header.mode == "CMYK":  # Adobe stores it inverted
        image = Image.frombytes("CMYK", (pixels.shape[1], pixels.shape[0]), (255 - pixels).tobytes())
    else:
        image = to_image(pixels)
    image.info = header.info
    return image


def _check_by_pillow(data: bytes) -> None:
    """Check a JPEG that only Pillow decodes: without its end, pixels of lost bytes are missing instead of made up.

    Raises:
        ValueError: it is damaged.
    """
    if data.count(b"\xff\xda") > 1:  # Pillow waits for the end of an image of several scans
        return
    try:
        with Image.open(BytesIO(data[: data.rindex(b"\xff\xd9")] + bytes(64)), formats=("JPEG",)) as image:
            image.load()
    except OSError as error:
        raise ValueError("data are missing") from error


def _check_damage(data: bytes) -> None:
    """Check what Pillow does not: the checksums of a PNG, and the length of a WebP.

    Raises:
        ValueError: the pixels may be wrong.
    """
    if data.startswith(b"RIFF") and int.from_bytes(data[4:8], "little") + 8 > len(data):
        raise ValueError("bytes are missing")
    if not data.startswith(b"\x89PNG"):
        return
    content, position, kind = memoryview(data), 8, b""
    while kind != b"IEND" and position + 12 <= len(data):
        end = position + 8 + int.from_bytes(content[position : position + 4])
        kind = bytes(content[position + 4 : position + 8])
        if int.from_bytes(content[end : end + 4]) != zlib.crc32(content[position + 4 : end]):
            raise ValueError(f"wrong checksum of a chunk {kind.decode('ascii', 'replace')}")
        position = end + 4


def _check_size(size: tuple[int, int], maximum_pixels: int, declared: tuple[int, int] | None) -> None:
    if declared is not None and size != declared:
        raise _broken()
    width, height = size
    if width * height > maximum_pixels:
        raise PayloadTooLargeError(
            f"the image declares {width} x {height} pixels, at most {maximum_pixels} are decoded.",
            field="image",
            hint="Send it at a lower resolution, or raise LIFELONG_MAXIMUM_IMAGE_PIXELS.",
        )


def _loaded(image: Image.Image) -> Image.Image:
    try:
        image.load()
    except MemoryError:
        raise
    except Exception as error:  # as above; a truncated file fails only here
        raise _broken() from error
    try:
        ImageOps.exif_transpose(image, in_place=True)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - as above; metadata that cannot be read does not turn the image
        return _full_scale(image)
    return _full_scale(image)


def _full_scale(image: Image.Image) -> Image.Image:
    """Return greys of 12 or 16 bits of a TIFF as 65535 for white; Pillow returns its samples as stored."""
    tags = getattr(image, "tag_v2", None)
    if tags is None or not image.mode.startswith("I;16") or (tags[262], tags[258]) == (1, (16,)):
        return image
    samples = np.asarray(image)
    if tags[258] == (12,):
        samples = np.rint(samples * (65535 / 4095))
    return Image.fromarray((samples if tags[262] else 65535 - samples).astype(np.uint16))


def _broken(report: object = "") -> InvalidInputError:
    return InvalidInputError(
        f"the image is truncated or broken{report and f': {report}'}.", field="image", hint=MENDS_BROKEN
    )
