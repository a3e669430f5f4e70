"""From an opened file to the input of the backbone."""

from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lifelong_core.develop.features.dicom import decode_dicom
from lifelong_core.develop.features.sources.entry import Entry, Opened
from lifelong_core.develop.features.sources.limits import Limits
from lifelong_core.images import FORMATS, decode, preprocess
from lifelong_core.values.errors import LifelongError
from lifelong_core.values.preprocessing import Preprocessing


@dataclass(frozen=True)
class DecodedImage:
    """One image, ready for the backbone.

    Attributes:
        entry: where it came from.
        pixels: (C, H, W), normalised; None: the image could not be read.
        size: width times height of the stored image; 0: it could not be read.
        problem: why the image could not be read; empty: it was.
    """

    entry: Entry
    pixels: NDArray[np.float32] | None = None
    size: int = 0
    problem: str = ""


def decode_entry(opened: Opened, preprocessing: Preprocessing, limits: Limits) -> DecodedImage:
    """Decode and preprocess one image, and close its file; a problem is noted, not raised."""
    entry, file = opened
    if isinstance(file, LifelongError):
        return DecodedImage(entry, problem=file.message)
    with file:
        try:
            image, size = _decode(entry, file, preprocessing, limits)
            pixels = preprocess(image, preprocessing, maximum_pixels=limits.pixels)
        except (LifelongError, OSError) as error:
            return DecodedImage(entry, problem=getattr(error, "message", None) or str(error))
    return DecodedImage(entry, pixels, size)


def open_image(opened: Opened, limits: Limits) -> Image.Image:
    """Decode one image in full, and close its file.

    Raises:
        LifelongError: the image cannot be read.
        OSError: its file cannot be read.
    """
    entry, file = opened
    if isinstance(file, LifelongError):
        raise file
    with file:
        return _decode(entry, file, None, limits)[0]


def _decode(
    entry: Entry, file: BinaryIO, preprocessing: Preprocessing | None, limits: Limits
) -> tuple[Image.Image, int]:
    """The image, and width times height before any reduction."""
    if entry.frame is not None:
        image = decode_dicom(file, entry.frame, maximum_pixels=limits.pixels)
        return image, image.width * image.height
    data = file.read(limits.file_bytes + 1)
    limits.check_file(len(data))
    image = decode(data, maximum_pixels=limits.pixels, target=preprocessing)
    with Image.open(BytesIO(data), formats=FORMATS) as header:
        return image, header.width * header.height
