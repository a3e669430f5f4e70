"""The digest of a preprocessing as this installation computes it: the document, and the pixels of probe images."""

import hashlib
import json
from base64 import b64decode
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lifelong_core import images
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


COLOUR_JPEG: Final = b64decode(
    """
    /9j/4AAQSkZJRgABAQAAAQABAAD/4QAiRXhpZgAATU0AKgAAAAgAAQESAAMAAAABAAYAAAAAAAD/2wBDAA0JCgsKCA0LCgsODg0P
    EyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09P
    T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wAARCAAlAB0DASIAAhEBAxEB/8QAGAABAAMBAAAA
    AAAAAAAAAAAABQAEBgL/xAAlEAAABQMFAAIDAAAAAAAAAAABAgMEEQAFEgYTITFxQYEUUWH/xAAYAQADAQEAAAAAAAAAAAAAAAAC
    AwQFBv/EACgRAAAFAwMCBwEAAAAAAAAAAAECAwQRABIxBSFhQVETFCIyQmJxwf/aAAwDAQACEQMRAD8AQHVBWSGXchEdUE51X+Qt
    u/2Y8pm5abSbEkDAaeI6o1ppFNdbfkP3HlCiRmUBKJMb2zj7XdfylamswUUKgSr1u1ICpMhLjj91y71wCSu3hOPHdIG0uiZDsC4h
    7QLmxpgqJYAceJmgTUZiYVhPE/OJu4t6RjmqHi2ntUCpFDejX2pXZFZDI08R1V62Xl0JQcCAh8x5SKNjYlXzkppGI6p5OyMCIb8l
    CAmPKYss2IUEQSxvb2+13X8qfTV2qyxlzE2rJXLVDpYuISXH7olPUrsZDAw48TNah7bGLxWAEpcfurjOysCpYiUoxxM0RXjZEniz
    F3zibuLekY5pKrls9ciUE9grFWx+5RHc3BNPEdVefXZ5tboKCHzHlSpWmo1R82KFvoKFwBz37/yupbIplYCYACaESujt2vyoJcR9
    rQN7y5SSAgCI48TNSpU7w4poEcF95pkYzGNsUGiNkhE0lCv/2Q==
    """
)
"""29 x 37 pixels, chroma at half resolution (4:2:0), to be turned by its EXIF orientation"""
PLAIN_JPEG: Final = b64decode(
    """
    /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNS
    Mj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09P
    T0//wAARCAAlAB0DASIAAhEBAxEB/8QAGAABAAMBAAAAAAAAAAAAAAAABQAEBgL/xAAlEAAABQMFAAIDAAAAAAAAAAABAgMEEQAFEgYT
    ITFxQYEUUWH/xAAYAQADAQEAAAAAAAAAAAAAAAACAwQFBv/EACgRAAAFAwMCBwEAAAAAAAAAAAECAwQRABIxBSFhQVETFCIyQmJxwf/a
    AAwDAQACEQMRAD8AQHVBWSGXchEdUE51X+Qtu/2Y8pm5abSbEkDAaeI6o1ppFNdbfkP3HlCiRmUBKJMb2zj7XdfylamswUUKgSr1u1IC
    pMhLjj91y71wCSu3hOPHdIG0uiZDsC4h7QLmxpgqJYAceJmgTUZiYVhPE/OJu4t6RjmqHi2ntUCpFDejX2pXZFZDI08R1V62Xl0JQcCA
    h8x5SKNjYlXzkppGI6p5OyMCIb8lCAmPKYss2IUEQSxvb2+13X8qfTV2qyxlzE2rJXLVDpYuISXH7olPUrsZDAw48TNah7bGLxWAEpcf
    urjOysCpYiUoxxM0RXjZEnizF3zibuLekY5pKrls9ciUE9grFWx+5RHc3BNPEdVefXZ5tboKCHzHlSpWmo1R82KFvoKFwBz37/yupbIp
    lYCYACaESujt2vyoJcR9rQN7y5SSAgCI48TNSpU7w4poEcF95pkYzGNsUGiNkhE0lCv/2Q==
    """
)
"""29 x 37 pixels, the same without an orientation: Pillow decodes the first, libjpeg-turbo this one directly"""
FULL_CHROMA_JPEG: Final = b64decode(
    """
    /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNS
    Mj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09P
    T0//wAARCAAXABUDAREAAhEBAxEB/8QAFwABAQEBAAAAAAAAAAAAAAAABQQGAP/EACYQAAEDAgUDBQAAAAAAAAAAAAECAxEABAUTIUFR
    EiIxYXGB4fD/xAAZAQADAQEBAAAAAAAAAAAAAAAEBQYDAAL/xAAgEQACAwACAgMBAAAAAAAAAAABAgADBBEhIjEFEkFh/9oADAMBAAIR
    AxEAPwDRM37WUie3YifFanMK/wCz1TQRX2INiGJIS/oBIJBJIM1hcSF+v5EurKS05jESpoZawmPMqifWkV6Et5Q/JnK1g8e4NnuG3ToV
    HaTtVVr0AMQJV5q1ZOPUHvbh03KeoEkcb0Cqiz0TE+ytS0ssy5lk9xkyY6Rr80auMcdwjGtRTzE0rGGpUwNQrSTGk8fvepl9L22dTqdf
    FcgfwZJd2UoqOm0cU9+PUkc/kn920l+4lZ4Z0tEpQCCePumT2qvRhGLWSnPPE//Z
    """
)
"""21 x 23 pixels, chroma at full resolution (4:4:4)"""
WIDE_CHROMA_JPEG: Final = b64decode(
    """
    /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNS
    Mj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09P
    T0//wAARCAAXABUDASEAAhEBAxEB/8QAFwAAAwEAAAAAAAAAAAAAAAAAAAQFBv/EACYQAAEDAgUDBQAAAAAAAAAAAAECAxEABAUTIUFR
    EiIxYXGB4fD/xAAYAQADAQEAAAAAAAAAAAAAAAACAwUGBP/EACERAAICAgEEAwAAAAAAAAAAAAEDAAIEEQUSExQhMXGx/9oADAMBAAIR
    AxEAPwDRM37WUie3YifFRsQxJCX9AJBIJJBmiavtVNROTNxiU1gxiJU0MtYTHmVRPrRWbZQG56vmPSghYGpGz3Dbp0KjtJ2qPe3DpuU9
    QJI43rTZFwxpqJazF18cRyzLmWT3GTJjpGvzRTxiDXuFj0SVVNgN/U0rGGpUwNQrSTGk8fvekH8GSXdlKKjptHFRuPZZr9mSeRzNIAlK
    zwzpaJSgEE8fdFX7OqDowcfLJUPf7P/Z
    """
)
"""21 x 23 pixels, chroma at half of the width (4:2:2)"""
PROGRESSIVE_JPEG: Final = b64decode(
    """
    /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNS
    Mj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09P
    T0//wgARCAAXABUDASIAAhEBAxEB/8QAFwABAQEBAAAAAAAAAAAAAAAAAAQFA//EABcBAAMBAAAAAAAAAAAAAAAAAAECBAP/2gAMAwEA
    AhADEAAAAdGKOMtsM1g+lwFnpFw//8QAGRAAAgMBAAAAAAAAAAAAAAAAAQMCESES/9oACAEBAAEFAhMUxmhmWeZyPULoLwp2C8//xAAa
    EQACAwEBAAAAAAAAAAAAAAAAAwECEgQi/9oACAEDAQE/AXc0YgojydLLYFstmD//xAAaEQACAwEBAAAAAAAAAAAAAAAAAQIEERIh/9oA
    CAECAQE/AZ5uRHUbKr6n6Ob0/8QAFhAAAwAAAAAAAAAAAAAAAAAAECAh/9oACAEBAAY/AhH/AP/EABwQAAMAAwADAAAAAAAAAAAAAAAB
    ESFBYVGBof/aAAgBAQABPyGZoSjbJPZibIFOj4LfmK6dI4I//9oADAMBAAIAAwAAABBPCMH/xAAYEQEBAQEBAAAAAAAAAAAAAAABABEh
    Mf/aAAgBAwEBPxBDbGjGEe3or//EABYRAQEBAAAAAAAAAAAAAAAAAAEAEf/aAAgBAgEBPxABUtuyaKJi/8QAHxABAQACAgIDAQAAAAAA
    AAAAAREAIUFRMWFxgeHw/9oACAEBAAE/ENv9EvjNFCiiqNxxjHmxfeW0K4rxjZFTrnFR2rWRv7wjs0rNXr++cdxRa4nWVUUXr9z/2Q==
    """
)
"""21 x 23 pixels, chroma at half resolution, in several scans"""
GREY_JPEG: Final = b64decode(
    """
    /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAoHBwgHBgoICAgLCgoLDhgQDg0NDh0VFhEYIx8lJCIfIiEmKzcvJik0KSEiMEExNDk7
    Pj4+JS5ESUM8SDc9Pjv/wAALCAATABcBAREA/8QAGAAAAwEBAAAAAAAAAAAAAAAABAUGAgP/xAAoEAAABgIABQMFAAAAAAAAAAAB
    AgMEBQYAEQcSEyFBFDJRFSIjMUL/2gAIAQEAAD8AqoCAbO2YOXJQ5NbERwKcs9Or4ikZom4VD+QDe8TtrXJTAj9DoqKqfg6qegxx
    Z5wa/wAPm5kh0q4IAF153kvXa7Gw8ONstg9Qyn3Iom/Zh8dsYC+sVkZ+tXkE6tBAOkR9p1PjOPED8iNTQP3SPycxfA4RbkyPOJED
    FOC9RiUhRBAfbvMukEp7iwrEyhfUsGiI9FsYdEJ2+A1n/9k=
    """
)
"""23 x 19 pixels, one channel"""
TRANSPARENT_PNG: Final = b64decode(
    """
    iVBORw0KGgoAAAANSUhEUgAAAB8AAAAXCAYAAADz/ZRUAAAA7klEQVR42sWRWQ6DMAxEh25pKXQBirqIY8xpev979INQBZIQswmh
    p9gTS08OEQAQOK7BTn0BhWgVDPlmMejJO/LtZDhg1iHfieGAWRce+d6CjmwqPfLD4jjl/MuX/QKbKygcZ4f6FMpPo2HP3QB5HISC
    mZoKCvFQ+XkCbysbIU+gkID6DPP03onktOSpgDI4Y8kp2jyFwsVD0XPXZuSzN/Jrh9yRtaFRzyC/aTKjljGT/O6EnrxhBnmmRZmu
    5YyS8y/Pjc0z3UuooJBP2bzoPHsjL3r4tPqgnOJ/bsofDt5W1pJTvHkpkJcGr05f8wMQlTwyADKnXgAAAABJRU5ErkJggg==
    """
)
"""31 x 23 pixels, 8 bits per channel, with transparency"""
DEEP_PNG: Final = b64decode(
    """
    iVBORw0KGgoAAAANSUhEUgAAABsAAAAXEAAAAACP7bexAAAAHElEQVR42mNMcWAgAzAxMIxqG9U2qm1U2xDTBgCgRQDSJrzZ4QAA
    AABJRU5ErkJggg==
    """
)
"""27 x 23 pixels, 16 bits, all 25,664: exchanged bytes would give 16,484"""
PROBES: Final = (
    COLOUR_JPEG,
    PLAIN_JPEG,
    FULL_CHROMA_JPEG,
    WIDE_CHROMA_JPEG,
    PROGRESSIVE_JPEG,
    GREY_JPEG,
    TRANSPARENT_PNG,
    DEEP_PNG,
)
