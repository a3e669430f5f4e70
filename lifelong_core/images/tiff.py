"""Refuse TIFFs whose samples Pillow would read in another way than their tags say, or not in full.

Source: TIFF 6.0 (Adobe, 1992), and the decoded values of every combination of these tags (`test_image_samples.py`).
"""

import contextlib
import zlib
from io import BytesIO
from math import ceil
from typing import Any, Final

import numpy as np
from PIL.TiffImagePlugin import COMPRESSION_INFO, ImageFileDirectory_v2

from lifelong_core.images.plain_jpeg import UnnamedSubsamplingError, decode_strictly
from lifelong_core.values.errors import InvalidInputError

MAGICS: Final = (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")
HINT: Final = (
    "Save it as PNG, or as TIFF of unsigned 8 or 16 bits, grey (BlackIsZero) or RGB, PlanarConfiguration 1."
)
_WHITE_IS_ZERO, _RGB, _PALETTE, _CMYK, _YCBCR = 0, 2, 3, 5, 6
_NAMES: Final = {
    254: "NewSubfileType",
    255: "SubfileType",
    258: "BitsPerSample",
    259: "Compression",
    262: "PhotometricInterpretation",
    277: "SamplesPerPixel",
    284: "PlanarConfiguration",
    317: "Predictor",
    320: "ColorMap",
    332: "InkSet",
    339: "SampleFormat",
    529: "YCbCrCoefficients",
    530: "YCbCrSubSampling",
    532: "ReferenceBlackWhite",
}
_PACKBITS: Final = 32773
_WEBP: Final = 50001
"""a compression that the libtiff of Pillow's wheels lacks"""
_COEFFICIENTS: Final = (0.299, 0.587, 0.114)
"""of ITU-R 601, which JPEG decoders assume"""


def check_tiff(data: bytes) -> None:
    """Check the tags of the first page, and the JPEG streams in it; other bytes than a TIFF's pass.

    Raises:
        InvalidInputError: a tag has a value, or is missing, so that its samples have no certain meaning.
        ValueError: pixels are missing or damaged.
    """
    if not data.startswith(MAGICS):
        return
    tags: Any = ImageFileDirectory_v2(data[: 16 if data[2:4] in (b"+\x00", b"\x00+") else 8])
    file = BytesIO(data)
    file.seek(tags.next)
    tags.load(file)
    wrong = _wrong_tag(tags)
    if wrong is not None:
        number, reason = wrong
        value = tags[number] if number in tags and number != 320 else "missing" if number != 320 else "low"
        raise InvalidInputError(
            f"the TIFF's tag {_NAMES[number]} ({number}) is {value}: {reason}.", field="image", hint=HINT
        )
    _check_segments(data, tags)


def _wrong_tag(tags: Any) -> tuple[int, str] | None:
    """The number of a tag that has no certain meaning, and why; None: all have."""
    meaning, count, compression = tags.get(262), tags.get(277, 1), tags.get(259, 1)
    bits, formats = tags.get(258, (1,)), tags.get(339, (1,))
    is_jpeg = compression in (6, 7)
    is_grey = meaning in (0, 1)
    plain_planes = bits[0] == 8 and tags.get(266, 1) == 1 and (meaning, count) in ((1, 1), (_RGB, 3))
    if meaning is None:
        return 262, "black may be 0 or the largest value"
    if compression not in COMPRESSION_INFO or compression == _WEBP:
        return 259, "such a compression cannot be read"
    if tags.get(317, 1) != 1 and compression in (1, _PACKBITS):
        return 317, "readers differ in whether samples are differences without a compression"
    if tags.get(254, 0) & 1 or tags.get(255, 1) == 2:
        return (254 if tags.get(254, 0) & 1 else 255), "the first page is a reduced copy of another one"
    if max(bits) >= 32:
        return 258, "32-bit samples have no known range of values"
    if any(each != 1 for each in formats):
        return 339, "only unsigned integers (1) have a known range of values"
    if any(each != bits[0] for each in bits) or (len(bits) not in (1, count) and not is_jpeg):
        return 258, "it does not agree with SamplesPerPixel, or its samples differ"
    if bits[0] not in (1, 2, 4, 8, 12, 16) or (bits[0] == 12 and not (meaning == 1 and count == 1)):
        return 258, "samples of this kind cannot be read"
    if bits[0] == 16 and is_grey and count > 1:
        return 277, "grey samples of 16 bits are read alone"
    if meaning not in (0, 1, _RGB, _PALETTE, _CMYK, _YCBCR) or (meaning == _YCBCR and compression == 1):
        return 262, "such colours cannot be read"
    if meaning == _YCBCR and count != 3 and not is_jpeg:
        return 277, "such colours have three samples"
    if tags.get(284, 1) != 1 and not plain_planes:
        return 284, "separate planes are read for RGB of 8 bits only"
    whole = (0, 2 ** bits[0] - 1) * 3
    if meaning == _RGB and tuple(tags.get(532, whole)) != whole:
        return 532, "such a range of values is not applied"
    if (
        meaning == _YCBCR
        and is_jpeg
        and not np.allclose(tags.get(529, _COEFFICIENTS), _COEFFICIENTS, atol=0.001)
    ):
        return 529, "JPEG streams are read with those of ITU-R 601"
    if meaning == _YCBCR and tags.get(530) == (4, 4) and tags[256] % 4:
        return 530, "it is read only if the width is a multiple of 4"
    if meaning == _CMYK and tags.get(332, 1) != 1:
        return 332, "the inks are other ones than CMYK"
    if meaning == _PALETTE and 0 < max(tags.get(320, (0,))) < 256:
        return 320, "colours of palettes reach 65535"
    return None


def _check_segments(data: bytes, tags: Any) -> None:
    """Check that strips or tiles hold all pixels; Pillow leaves missing ones black, and drops reports of damage."""
    width, height, count = tags[256], tags[257], tags.get(277, 1)
    offsets, sizes = tags.get(273, tags.get(324, ())), tags.get(279, tags.get(325, ()))
    across, down = tags.get(322, width), tags.get(323, min(tags.get(278, height), height))
    planes = count if tags.get(284, 1) == 2 else 1
    if len(offsets) < ceil(width / across) * ceil(height / down) * planes or 0 in sizes:
        raise ValueError("strips or tiles are missing")
    compression = tags.get(259, 1)
    if compression == 1 and sizes and sum(sizes) < ceil(width * count * tags.get(258, (1,))[0] / 8) * height:
        raise ValueError("strips or tiles are too short")
    if compression not in (7, 8, 32946) or tags.get(266, 1) != 1:
        return
    tables, most = bytes(tags.get(347, b"")), across * down * count * 2
    for offset, size in zip(offsets, sizes, strict=True):
        stream = data[offset : offset + size]
        if compression != 7:
            unpacking = zlib.decompressobj()
            unpacking.decompress(stream, most)  # an error if the checksum is wrong
            continue
        with contextlib.suppress(UnnamedSubsamplingError):
            decode_strictly(tables[:-2] + stream[2:] if tables else stream, None)
