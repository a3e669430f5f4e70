"""From the bytes of an image to the model's input: decoding within limits, then the steps of `Preprocessing`."""

import warnings
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from lifelong_core.errors import InvalidInputError, PayloadTooLargeError
from lifelong_core.preprocessing import CentreCrop, Preprocessing, Resize

FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP")
FULL_PIXELS = 4_000_000
"""Up to here an image is always decoded in full, and resized as a whole."""
STRIP_PIXELS = 1_000_000
"""Pixels of a larger image that are converted and narrowed at once."""
KEPT_EDGES = 2
"""How many times the edges of the resized image are left at least when a larger JPEG is decoded at a fraction of its
size."""
MENDS_BROKEN = "Send one complete PNG, JPEG, TIFF, BMP or WebP image."

# Our own check below knows the configured limit; Pillow's would warn below it and raise above it.
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
    """The first image in `data`, turned upright by its EXIF orientation.

    Args:
        data: the bytes of the image.
        maximum_pixels: that are decoded.
        declared: width and height on which the caller relies; None: any.
        target: what the image is decoded for. A JPEG of more than `FULL_PIXELS` is then decoded at 1/2, 1/4 or 1/8 of
            its size if that leaves twice the edges that `target` resizes it to. None: always in full.

    Raises:
        InvalidInputError: not an image of a known format, broken, of another size than declared, or of 32-bit samples,
            which have no known range.
        PayloadTooLargeError: the header declares more than `maximum_pixels`; nothing was decoded.
    """
    with warnings.catch_warnings():
        # Pillow warns about odd metadata; whoever sent the image cannot see it.
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
    """The model's input for one image, without the batch axis: (C, H, W) or (H, W, C), as the layout says.

    Transparency is ignored, as training pipelines do. Samples of 16 bits keep their precision: full scale is 1.

    Raises:
        InvalidInputError: smaller than the crop, or so elongated that resizing makes more than `maximum_pixels`.
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


def _opened(data: bytes) -> Image.Image:
    try:
        return Image.open(BytesIO(data), formats=FORMATS)
    except Exception as error:  # Pillow's parsers raise a dozen kinds of errors on garbage
        raise InvalidInputError(
            "this is not an image that can be read.", field="image", hint=MENDS_BROKEN
        ) from error


def _loaded(image: Image.Image) -> Image.Image:
    try:
        image.load()
        ImageOps.exif_transpose(image, in_place=True)
    except MemoryError:
        raise
    except Exception as error:  # as above; a truncated file shows only here
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
    """Let a JPEG be decoded at a fraction of its size: 16 times fewer pixels at a quarter of the edges.

    The result differs from a full decode by a few of 255 grey levels before it is resized.
    """
    resize = target.resize
    if resize is None or image.format != "JPEG":
        return
    # The image may be turned later, so either edge may become the width.
    edge = max(resize.height, resize.width) * KEPT_EDGES
    mode = "L" if target.colour == "grey" and image.mode == "L" else None
    image.draft(mode, (edge, edge))


def _coloured(image: Image.Image, preprocessing: Preprocessing) -> Image.Image:
    """Of the colours that the model takes; 16-bit greys become floats in 0..255."""
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
    """Of the model's colours and the size that is asked for."""
    if resize.mode == "exact":
        width, height = resize.width, resize.height
    elif image.width <= image.height:
        width, height = resize.height, int(resize.height * image.height / image.width)
    else:
        width, height = int(resize.height * image.width / image.height), resize.height
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


def _narrowed(
    image: Image.Image, preprocessing: Preprocessing, width: int, interpolation: Image.Resampling
) -> Image.Image:
    """The image in the model's colours, of another width and its own height.

    Pillow resizes across, then down. To do the first strip by strip gives the same pixels, and takes no second image of
    the full size, which the colours would need.
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
