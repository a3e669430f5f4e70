"""Images in DICOM files, as a viewer would show them: rescaled, windowed, black is low.

pydicom is imported where it is needed.
"""
# pyright: reportUnknownVariableType=false
# The types of pydicom are incomplete.

import warnings
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError

MOST_FRAMES = 1_000_000

_FRAME_TAGS = ("NumberOfFrames", "Rows", "Columns", "BitsAllocated")
_ITEM_BYTES = 8
"""A compressed frame is one item or more; each has a header of this size."""
_FIELD = "image"
_MAGIC_AT = 128
_EXTREME = 1e30
"""A value outside every window, which gives the limits of a window's output."""


def is_dicom(file: BinaryIO) -> bool:
    """Whether the file begins as DICOM files do; its position is restored."""
    start = file.tell()
    preamble = file.read(_MAGIC_AT + 4)
    file.seek(start)
    return preamble[_MAGIC_AT:] == b"DICM"


def count_frames(file: BinaryIO, size: int) -> int:
    """Number of images in a DICOM file by its header; 1 if that cannot be read, as the image itself cannot then.

    Args:
        file: a DICOM file, at its beginning.
        size: of the file in bytes; if it cannot hold the frames that the header declares, the number is 1.
    """
    from pydicom import dcmread

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _expect_no_deflation(file)
            header = dcmread(file, stop_before_pixels=True, specific_tags=list(_FRAME_TAGS))
            frames = int(header.get("NumberOfFrames") or 1)
            if frames > 1:
                is_compressed = header.file_meta.TransferSyntaxUID.is_compressed
                # At least: some colours have less than one sample of each kind for a pixel.
                bits = (
                    8 * _ITEM_BYTES if is_compressed else header.Rows * header.Columns * header.BitsAllocated
                )
                frames = frames if frames * bits <= 8 * size else 1
        except Exception:  # noqa: BLE001 - pydicom raises many kinds of errors for invalid files
            return 1
    return frames if 1 <= frames <= MOST_FRAMES else 1


def decode_dicom(file: BinaryIO, frame: int, *, maximum_pixels: int) -> Image.Image:
    """Return one frame as an image of mode RGB or, with 16 bits, I;16.

    Greyscale values go through the modality LUT or rescaling, then through the first window or VOI LUT; without one the
    smallest value is black and the largest one white. MONOCHROME1 is inverted. Padding is not treated apart.

    Args:
        file: a whole DICOM file, at its beginning.
        frame: from 0.
        maximum_pixels: limit of the frame, by its header.

    Raises:
        InvalidInputError: no such file or frame, no pixels, or a compression that needs a library that is missing.
        PayloadTooLargeError: the header declares more than `maximum_pixels`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pydicom warns about values that do not follow the standard
        try:
            return _decode(file, frame, maximum_pixels)
        except (InvalidInputError, MemoryError):
            raise
        except Exception as error:  # as in count_frames
            reason = str(error).split("\n", 1)[0][:200]
            raise InvalidInputError(f"the DICOM file cannot be read: {reason}", field=_FIELD) from error


def _decode(file: BinaryIO, frame: int, maximum_pixels: int) -> Image.Image:
    from pydicom import dcmread
    from pydicom.pixels.utils import pixel_array

    _expect_no_deflation(file)
    header: Any = dcmread(file, stop_before_pixels=True)
    rows, columns = int(header.Rows), int(header.Columns)
    if rows * columns > maximum_pixels:
        raise PayloadTooLargeError(
            f"the image declares {columns} x {rows} pixels, at most {maximum_pixels} are decoded.",
            field=_FIELD,
        )
    file.seek(0)
    pixels = cast("NDArray[np.generic]", pixel_array(file, index=frame if _frames(header) > 1 else None))
    interpretation = str(header.get("PhotometricInterpretation", "MONOCHROME2"))
    if interpretation == "PALETTE COLOR":
        from pydicom.pixels.processing import apply_color_lut

        return _coloured(cast("NDArray[np.generic]", apply_color_lut(pixels, header)))
    if pixels.ndim == 3:
        return _coloured(pixels)
    grey = _windowed(pixels, header)
    if interpretation == "MONOCHROME1":
        grey = 1 - grey
    return Image.fromarray(np.round(grey * 65535).astype(np.uint16))


def _expect_no_deflation(file: BinaryIO) -> None:
    """Refuse a file that is deflated as a whole: pydicom would unpack it without a limit."""
    from pydicom.filereader import read_dataset, read_preamble
    from pydicom.uid import DeflatedExplicitVRLittleEndian

    read_preamble(file, force=False)
    meta: Any = read_dataset(
        file, is_implicit_VR=False, is_little_endian=True, stop_when=lambda tag, _vr, _length: tag >> 16 != 2
    )
    file.seek(0)
    if meta.get("TransferSyntaxUID") == DeflatedExplicitVRLittleEndian:
        raise InvalidInputError("deflated DICOM files are not read.", field=_FIELD)


def _frames(header: Any) -> int:
    return int(header.get("NumberOfFrames") or 1)


def _windowed(pixels: NDArray[np.generic], header: Any) -> NDArray[np.float64]:
    """Greyscale values in [0, 1]."""
    from pydicom.pixels.processing import apply_modality_lut, apply_voi_lut, apply_windowing

    values = cast("NDArray[np.generic]", apply_modality_lut(pixels, header))
    if "VOILUTSequence" in header:
        values = cast("NDArray[np.generic]", apply_voi_lut(values, header))
    elif "WindowCenter" in header and "WindowWidth" in header:
        values = cast("NDArray[np.float64]", apply_windowing(values, header))
        with np.errstate(over="ignore"):
            low, high = apply_windowing(np.array([-_EXTREME, _EXTREME]), header)
        return np.clip((values - low) / (high - low), 0, 1)
    numbers = values.astype(np.float64)
    low, high = float(numbers.min()), float(numbers.max())
    return (numbers - low) / (high - low) if high > low else np.zeros(numbers.shape)


def _coloured(pixels: NDArray[np.generic]) -> Image.Image:
    """RGB of 8 bits; samples of 16 bits lose their lower half."""
    if pixels.dtype.itemsize == 2:
        pixels = pixels.astype(np.uint16) >> 8
    return Image.fromarray(np.ascontiguousarray(pixels[..., :3], dtype=np.uint8))
