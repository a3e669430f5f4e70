"""The digest of a preprocessing as this installation computes it: the document, and the pixels of probe images."""

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lifelong_core import images
from lifelong_core.images.probe_images import PROBES
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing

_PIXELS = 1_000_000
"""Limit of the probes and of what they become; they need a few thousand."""
_EXACT = {"mode": "exact", "height": 20, "width": 27}
_SHORTEST_EDGE = {"mode": "shortest_edge", "height": 20, "width": 20}
"""Sizes that reduce some probes and enlarge others."""
_CROP = {"height": 13, "width": 16}
"""It fits into every resized and unresized probe; odd differences make the rounding of its place matter."""
_MEAN = (0.485, 0.456, 0.406)
_STANDARD_DEVIATION = (0.229, 0.224, 0.225)


class OtherPreprocessingError(InvalidInputError):
    """The logits of a calibration set were made with another preprocessing than this installation uses."""

    code = "other_preprocessing"


def preprocessing_digest(preprocessing: Preprocessing) -> str:
    """SHA-256 (hex) over the document and the pixels that this installation makes of probe images with it.

    Equal digests: both installations decoded and preprocessed the probes to the same grey levels, by the same document.
    Different digests: the documents differ, or the image decoder, the resampling filters or this package give other
    pixels, so the model may give other logits for the same file. They do not say how much the logits differ.

    Probes are JPEG (colour 4:2:0, 4:2:2 and 4:4:4, progressive, grey) and PNG (8 bits with transparency, 16 bits), both
    at their own size and with the steps of the document. TIFF, BMP, WebP, and what is done only with images of more
    than 4 million pixels, are not covered.

    The work takes a few milliseconds for any document. The document enters with all its numbers; the pixels are made
    with its colours, interpolation, kinds of steps and layout, but with fixed small sizes, mean and standard deviation,
    so that every document accepts the probes and none needs a large image.

    The inputs of the model enter as rounded grey levels, not as floats: decoding and resampling of 8 bits are integer
    arithmetic, equal on all CPUs, while another order of the float operations of the normalisation may change the last
    bit. The probe of 16 bits, whose resampling is float arithmetic, has one value in all pixels, far from a rounding
    limit.

    Raises:
        InvalidInputError: the image decoder cannot read JPEG or PNG.
    """
    digest = hashlib.sha256(_canonical(preprocessing))
    target = _with_probe_sizes(preprocessing)
    at_own_size = target.model_copy(update={"resize": None, "centre_crop": None})
    for probe in PROBES:
        digest.update(_described(np.asarray(images.decode(probe, maximum_pixels=_PIXELS))))
        for steps in (at_own_size, target):
            inputs = images.model_input(probe, steps, maximum_pixels=_PIXELS)
            digest.update(_described(_grey_levels(inputs, steps)))
    return digest.hexdigest()


def check_preprocessing_digest(
    recorded: str | None, preprocessing: Preprocessing | None, *, field: str, hint: str
) -> None:
    """Make sure that a calibration set was made with the preprocessing of its model in this installation.

    Args:
        recorded: digest of the set; None: unknown, which is accepted.
        preprocessing: of the model; None: it runs elsewhere, and nothing is compared.
        field: field of the error.
        hint: how to calibrate the model again.

    Raises:
        OtherPreprocessingError: the digests differ.
    """
    if not differs(recorded, preprocessing):
        return
    raise OtherPreprocessingError(
        "the logits of this calibration set were made with another preprocessing document or image decoder than this"
        " installation uses for the model.",
        field=field,
        hint=hint,
    )


def differs(recorded: str | None, preprocessing: Preprocessing | None) -> bool:
    """Whether both digests are known and differ; arguments as `check_preprocessing_digest`."""
    if recorded is None or preprocessing is None:
        return False
    return recorded != preprocessing_digest(preprocessing)


def _canonical(preprocessing: Preprocessing) -> bytes:
    # Without the defaults, a field that a later version adds leaves the digests of present documents as they are.
    document = preprocessing.model_dump(mode="json", exclude_defaults=True)
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _with_probe_sizes(preprocessing: Preprocessing) -> Preprocessing:
    """The same steps with sizes that fit the probes, and mean and standard deviation of photographs."""
    document: dict[str, Any] = preprocessing.model_dump()
    if preprocessing.resize is not None:
        document["resize"] |= _EXACT if preprocessing.resize.mode == "exact" else _SHORTEST_EDGE
    if preprocessing.centre_crop is not None:
        document["centre_crop"] = _CROP
    document["mean"] = _MEAN[: preprocessing.channels]
    document["standard_deviation"] = _STANDARD_DEVIATION[: preprocessing.channels]
    return Preprocessing.model_validate(document)


def _grey_levels(inputs: NDArray[np.float32], target: Preprocessing) -> NDArray[np.int32]:
    """The input of a model on the scale 0..255, rounded; the axes stay."""
    shape = (-1, 1, 1) if target.layout == "NCHW" else (-1,)
    mean = np.asarray(target.mean).reshape(shape)
    standard_deviation = np.asarray(target.standard_deviation).reshape(shape)
    return np.rint((inputs * standard_deviation + mean) * 255).astype(np.int32)


def _described(pixels: NDArray[np.generic]) -> bytes:
    """Type, shape and values, little-endian."""
    portable = np.ascontiguousarray(pixels, dtype=pixels.dtype.newbyteorder("<"))
    return f"{portable.dtype.str} {portable.shape}\n".encode() + portable.tobytes()
