"""Decode the bytes of an image within limits."""

import warnings
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from lifelong_core.errors import InvalidInputError, PayloadTooLargeError
from lifelong_core.images.plain_jpeg import decode_plain_jpeg, read_plain_header
from lifelong_core.preprocessing import Preprocessing

FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP")
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"})
"""of files in these formats"""
FULL_PIXELS = 4_000_000
"""Largest number of pixels of an image that is always decoded in full and resized as a whole."""
KEPT_EDGES = 2
"""Least ratio of the decoded edges to the resized edges if a larger JPEG is decoded at a fraction of its size."""
MENDS_BROKEN = "Send one complete PNG, JPEG, TIFF, BMP or WebP image."

# The check below uses the configured limit; Pillow's fixed limit would warn and raise at other sizes.
Image.MAX_IMAGE_PIXELS = None
# Pillow warns about unusual metadata, which only the client could correct, and about the transparency of palettes,
# which is ignored on purpose. Filters of single calls would not be safe with threads.
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")


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
        target: later preprocessing. A JPEG of more than `FULL_PIXELS` is decoded at 1/2, 1/4 or 1/8 of its size if its
            edges stay at least twice those that `target` resizes it to. None: always in full.

    Raises:
        InvalidInputError: not an image of a known format, broken, of another size than declared, or of 32-bit samples,
            which have no known range.
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
        image = Image.open(BytesIO(data), formats=FORMATS)
    except Exception as error:  # Pillow's parsers raise many kinds of errors for invalid files
        raise InvalidInputError(
            "this is not an image that can be read.", field="image", hint=MENDS_BROKEN
        ) from error
    _check_size(image.size, maximum_pixels, declared)
    if target is not None and image.width * image.height > FULL_PIXELS:
        _reduce(image, target)
    return _loaded(image)


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
        ImageOps.exif_transpose(image, in_place=True)
    except MemoryError:
        raise
    except Exception as error:  # as above; a truncated file fails only here
        raise _broken() from error
    if image.mode in ("I", "F"):
        raise InvalidInputError(
            "images with 32-bit samples have no known range of values.",
            field="image",
            hint="Convert it to 8 or 16 bits per channel.",
        )
    return image


def _broken() -> InvalidInputError:
    return InvalidInputError("the image is truncated or broken.", field="image", hint=MENDS_BROKEN)


def _reduce(image: Image.Image, target: Preprocessing) -> None:
    """Decode a JPEG at a fraction of its size: a quarter of the edges has 16 times fewer pixels.

    The result differs from a full decode by a few of 255 grey levels before resizing.
    """
    resize = target.resize
    if resize is None or image.format != "JPEG":
        return
    # The image may be rotated later, so either edge may become the width.
    edge = max(resize.height, resize.width) * KEPT_EDGES
    mode = "L" if target.colour == "grey" and image.mode == "L" else None
    image.draft(mode, (edge, edge))
