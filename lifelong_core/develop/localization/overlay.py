"""An image with the places that matter to a model, to look at."""

from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lifelong_core.develop.localization.stability import THRESHOLD
from lifelong_core.values.arrays import Floats, Mask

EDGE = 176
"""Longer edge of an overlay in pixels: the page shows it at about this size."""
COLOURS = 96
"""in the palette of an overlay, which is half the size without a visible difference"""

_TINTS = np.array([[255, 214, 92], [247, 140, 40], [214, 30, 60]], dtype=np.float64)
"""From weak to strong; darker and more saturated with each step, so that they differ without red and green, too."""
_STRONGEST = 0.62
"""Share of the tint where the map is 1: the image stays visible below it."""
_OUTLINE = ((255, 255, 255), (20, 20, 20))
"""Inner and outer line, so that one of them stands out from any image."""


def overlay_png(
    image: Image.Image, relative: Floats, *, threshold: float = THRESHOLD, edge: int = EDGE
) -> bytes:
    """A PNG file: the image, tinted the stronger the more a place matters, with positive places outlined.

    Args:
        image: the part of the image that the map covers.
        relative: map in [0, 1], shape (rows, columns).
        threshold: patches with at least this value are outlined.
        edge: longer edge of the result in pixels; small images are enlarged, pixel by pixel.
    """
    width, height = _fitted(image.size, edge)
    is_enlarged = width > image.width
    method = Image.Resampling.NEAREST if is_enlarged else Image.Resampling.LANCZOS
    pixels = np.asarray(_as_rgb(image).resize((width, height), method), dtype=np.float64)
    shares = _enlarged(relative, height, width)
    weights = (_STRONGEST * np.clip(shares, 0.0, 1.0))[..., np.newaxis]
    blended = (1 - weights) * pixels + weights * _tints(shares)
    painted = _outlined(np.rint(blended).astype(np.uint8), shares >= threshold)
    file = BytesIO()
    Image.fromarray(painted).quantize(COLOURS, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return file.getvalue()


def _fitted(size: tuple[int, int], edge: int) -> tuple[int, int]:
    """Width and height with the longer one at `edge`."""
    longer = max(size)
    width, height = (max(1, round(length * edge / longer)) for length in size)
    return width, height


def _as_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16"):  # Pillow would clip 16 bits at 255
        image = Image.fromarray((np.asarray(image) // 257).astype(np.uint8))
    return image.convert("RGB")


def _enlarged(relative: Floats, height: int, width: int) -> Floats:
    """The value of each pixel's patch."""
    rows = np.arange(height) * relative.shape[0] // height
    columns = np.arange(width) * relative.shape[1] // width
    return relative[np.ix_(rows, columns)]


def _tints(shares: Floats) -> Floats:
    """Colours (..., 3) of values in [0, 1]."""
    stops = np.linspace(0.0, 1.0, len(_TINTS))
    channels: list[Floats] = [np.interp(shares, stops, _TINTS[:, channel]) for channel in range(3)]
    return np.stack(channels, axis=-1)


def _outlined(pixels: NDArray[np.uint8], inside: Mask) -> NDArray[np.uint8]:
    """The pixels with two lines along the inner edge of the region."""
    for colour in reversed(_OUTLINE):
        core = _eroded(inside)
        pixels[inside & ~core] = colour
        inside = core
    return pixels


def _eroded(inside: Mask) -> Mask:
    """The region without its outermost pixels."""
    padded = np.pad(inside, 1)
    return inside & padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
