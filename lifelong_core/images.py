"""Decode the bytes of an image within limits, and apply the steps of `Preprocessing`.

Predictions and task fingerprints share it.
"""

import warnings
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from lifelong_core.errors import InvalidInputError, PayloadTooLargeError
from lifelong_core.preprocessing import CentreCrop, Preprocessing, Resize

FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP")
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"})
"""of files in these formats"""
FULL_PIXELS = 4_000_000
"""Largest number of pixels of an image that is always decoded in full and resized as a whole."""
STRIP_PIXELS = 1_000_000
"""Pixels of a larger image that are converted and resized in width at once."""
KEPT_EDGES = 2
"""Least ratio of the decoded edges to the resized edges if a larger JPEG is decoded at a fraction of its size."""
MENDS_BROKEN = "Send one complete PNG, JPEG, TIFF, BMP or WebP image."

# The check below uses the configured limit; Pillow's fixed limit would warn and raise at other sizes.
Image.MAX_IMAGE_PIXELS = None

_INTERPOLATIONS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


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
    with warnings.catch_warnings():
        # Pillow warns about unusual metadata, which only the client could correct.
        warnings.simplefilter("ignore")
        image = _opened(data)
        width, height = image.size
        if declared is not None and image.size != declared:
            raise _broken()
        if width * height > maximum_pixels:
            raise PayloadTooLargeError(
                f"the image declares {width} x {height} pixels, at most {maximum_pixels} are decoded.",
                field="image",
                hint="Send it at a lower resolution, or raise LIFELONG_MAXIMUM_IMAGE_PIXELS.",
            )
        if target is not None and width * height > FULL_PIXELS:
            _reduce(image, target)
        return _loaded(image)


def preprocess(
    image: Image.Image, preprocessing: Preprocessing, *, maximum_pixels: int = 50_000_000
) -> NDArray[np.float32]:
    """Return the model's input for one image, without the batch axis: (C, H, W) or (H, W, C), as in the layout.

    Transparency is ignored, as in training pipelines. Samples of 16 bits keep their precision: full scale is 1.

    Raises:
        InvalidInputError: smaller than the crop, or so elongated that the resized image exceeds `maximum_pixels`.
    """
    if preprocessing.resize is None:
        image = _coloured(image, preprocessing)
    else:
        image = _resized(image, preprocessing, preprocessing.resize, maximum_pixels)
    if preprocessing.centre_crop is not None:
        image = _cropped(image, preprocessing.centre_crop)
    pixels = np.array(image, dtype=np.float32)
    if image.mode == "F":
        pixels = np.repeat(pixels[:, :, None], preprocessing.channels, axis=2)
    pixels = pixels.reshape(image.height, image.width, preprocessing.channels)
    pixels /= np.float32(255)
    pixels -= np.asarray(preprocessing.mean, dtype=np.float32)
    pixels /= np.asarray(preprocessing.standard_deviation, dtype=np.float32)
    if preprocessing.layout == "NCHW":
        pixels = pixels.transpose(2, 0, 1)
    return np.ascontiguousarray(pixels)


def visible_box(preprocessing: Preprocessing, width: int, height: int) -> tuple[float, float, float, float]:
    """The part of an image that its model sees: left, top, right and bottom, as shares of width and height.

    Args:
        preprocessing: of the model.
        width: of the decoded image, in pixels.
        height: likewise.
    """
    crop, resize = preprocessing.centre_crop, preprocessing.resize
    if resize is not None:
        width, height = _resized_size(resize, width, height)
    if crop is None:
        return 0.0, 0.0, 1.0, 1.0
    left, top = round((width - crop.width) / 2), round((height - crop.height) / 2)
    return left / width, top / height, (left + crop.width) / width, (top + crop.height) / height


def _opened(data: bytes) -> Image.Image:
    try:
        return Image.open(BytesIO(data), formats=FORMATS)
    except Exception as error:  # Pillow's parsers raise many kinds of errors for invalid files
        raise InvalidInputError(
            "this is not an image that can be read.", field="image", hint=MENDS_BROKEN
        ) from error


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


def _coloured(image: Image.Image, preprocessing: Preprocessing) -> Image.Image:
    """Return the image in the colours of the model; 16-bit greys become floats in 0..255."""
    if image.mode.startswith("I;16"):
        samples = np.asarray(image).astype(np.float32)
        samples /= np.float32(257)
        return Image.fromarray(samples)
    mode = "RGB" if preprocessing.colour == "rgb" else "L"
    if image.mode == mode:
        return image
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the transparency of palettes, which is ignored on purpose
        try:
            return image.convert(mode)
        except ValueError as error:
            raise InvalidInputError(
                f"images of mode {image.mode} cannot be converted.",
                field="image",
                hint="Send it as RGB or greyscale.",
            ) from error


def _resized(
    image: Image.Image, preprocessing: Preprocessing, resize: Resize, maximum_pixels: int
) -> Image.Image:
    """Return the image in the model's colours and the requested size."""
    width, height = _resized_size(resize, image.width, image.height)
    if width * height > maximum_pixels:
        raise InvalidInputError(
            f"{image.width} x {image.height} pixels would become {width} x {height}.",
            field="image",
            hint="Crop the image: its sides differ too much.",
        )
    interpolation = _INTERPOLATIONS[resize.interpolation]
    if image.width * image.height > FULL_PIXELS and resize.interpolation != "nearest":
        image = _narrowed(image, preprocessing, width, interpolation)
    else:
        image = _coloured(image, preprocessing)
    return image.resize((width, height), interpolation)


def _resized_size(resize: Resize, width: int, height: int) -> tuple[int, int]:
    """Width and height after the step."""
    if resize.mode == "exact":
        return resize.width, resize.height
    if width <= height:
        return resize.height, int(resize.height * height / width)
    return int(resize.height * width / height), resize.height


def _narrowed(
    image: Image.Image, preprocessing: Preprocessing, width: int, interpolation: Image.Resampling
) -> Image.Image:
    """Return the image in the model's colours, with a new width and its present height.

    Pillow resizes the width, then the height. Resizing the width strip by strip gives the same pixels, without a second
    image of the full size for the conversion of colours.
    """
    rows = max(1, STRIP_PIXELS // image.width)
    found: Image.Image | None = None
    for top in range(0, image.height, rows):
        bottom = min(top + rows, image.height)
        strip = _coloured(image.crop((0, top, image.width, bottom)), preprocessing)
        strip = strip.resize((width, bottom - top), interpolation)
        found = Image.new(strip.mode, (width, image.height)) if found is None else found
        found.paste(strip, (0, top))
    return image if found is None else found


def _cropped(image: Image.Image, crop: CentreCrop) -> Image.Image:
    if image.width < crop.width or image.height < crop.height:
        raise InvalidInputError(
            f"{image.width} x {image.height} pixels are left, the model needs {crop.width} x {crop.height}.",
            field="image",
            hint="Send the image at a higher resolution.",
        )
    left, top = round((image.width - crop.width) / 2), round((image.height - crop.height) / 2)
    return image.crop((left, top, left + crop.width, top + crop.height))
