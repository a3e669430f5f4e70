"""The steps of `Preprocessing`, from an image to the input of its model."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lifelong_core.images.decoding import FULL_PIXELS, decode_by_pillow, decode_plain, to_image
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import CentreCrop, Preprocessing, Resize

STRIP_PIXELS = 1_000_000
"""Pixels of a larger image that are converted and resized in width at once."""

_INTERPOLATIONS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


def model_input(
    data: bytes,
    preprocessing: Preprocessing,
    *,
    maximum_pixels: int,
    declared: tuple[int, int] | None = None,
) -> NDArray[np.float32]:
    """Return the model's input for the bytes of one image: `preprocess` after `decode`, with fewer copies.

    Args:
        data: the bytes of the image.
        preprocessing: of the model.
        maximum_pixels: limit of width times height, of the decoded and of the resized image.
        declared: width and height that the image must have; None: any.

    Raises:
        InvalidInputError: as `decode` and `preprocess`.
        PayloadTooLargeError: as `decode`.
    """
    plain = decode_plain(data, maximum_pixels=maximum_pixels, declared=declared)
    if plain is None:
        image = decode_by_pillow(data, maximum_pixels=maximum_pixels, declared=declared, target=preprocessing)
    elif _has_its_size(plain, preprocessing):
        return _normalised(plain.transpose(2, 0, 1), preprocessing)
    else:
        image = to_image(plain)
    return preprocess(image, preprocessing, maximum_pixels=maximum_pixels)


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
    return _normalised(_planes(image, preprocessing.channels), preprocessing)


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


def _resized_size(resize: Resize, width: int, height: int) -> tuple[int, int]:
    """Width and height of an image after the step."""
    if resize.mode == "exact":
        return resize.width, resize.height
    if width <= height:
        return resize.height, int(resize.height * height / width)
    return int(resize.height * width / height), resize.height


def most_pixels(preprocessing: Preprocessing, width: int, height: int) -> int:
    """The largest number of pixels that an image has from its file to the input of its model.

    Args:
        preprocessing: of the model.
        width: in the file, in pixels.
        height: likewise.
    """
    if preprocessing.resize is None:
        return width * height
    resized_width, resized_height = _resized_size(preprocessing.resize, width, height)
    return max(width * height, resized_width * resized_height)


def input_pixels(preprocessing: Preprocessing, width: int, height: int) -> int:
    """Number of pixels of the input of its model.

    Args:
        preprocessing: of the model.
        width: of the image in its file, in pixels.
        height: likewise.
    """
    if preprocessing.centre_crop is not None:
        return preprocessing.centre_crop.width * preprocessing.centre_crop.height
    if preprocessing.resize is not None:
        width, height = _resized_size(preprocessing.resize, width, height)
    return width * height


def _has_its_size(plain: NDArray[np.uint8], preprocessing: Preprocessing) -> bool:
    """Whether neither colours nor size of a decoded image change before it is scaled to 0..1."""
    height, width, channels = plain.shape
    resize, crop = preprocessing.resize, preprocessing.centre_crop
    return (
        channels == preprocessing.channels
        and (resize is None or _resized_size(resize, width, height) == (width, height))
        and (crop is None or (crop.width, crop.height) == (width, height))
    )


def _coloured(image: Image.Image, preprocessing: Preprocessing) -> Image.Image:
    """Return the image in the colours of the model; 16-bit greys become floats in 0..255."""
    if image.mode.startswith("I;16"):
        samples = np.asarray(image).astype(np.float32)
        samples /= np.float32(257)
        return Image.fromarray(samples)
    mode = "RGB" if preprocessing.colour == "rgb" else "L"
    if image.mode == mode:
        return image
    try:
        return (image.convert("LA") if image.mode == "La" else image).convert(mode)
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


def _planes(image: Image.Image, channels: int) -> Iterable[NDArray[np.uint8] | NDArray[np.float32]]:
    """The values of each channel (height, width), in 0..255."""
    if image.mode == "F":
        return [np.asarray(image)] * channels
    shape = (image.height, image.width)
    return (
        np.frombuffer(image.tobytes("raw", band), dtype=np.uint8).reshape(shape) for band in image.getbands()
    )


def _normalised(
    planes: Iterable[NDArray[np.uint8] | NDArray[np.float32]], preprocessing: Preprocessing
) -> NDArray[np.float32]:
    """The model's input from the values of its channels: one copy to floats, then arithmetic in place."""
    pixels = np.array([*planes], dtype=np.float32)
    pixels /= np.float32(255)
    pixels -= np.asarray(preprocessing.mean, dtype=np.float32)[:, None, None]
    pixels /= np.asarray(preprocessing.standard_deviation, dtype=np.float32)[:, None, None]
    return pixels if preprocessing.layout == "NCHW" else np.ascontiguousarray(pixels.transpose(1, 2, 0))
