"""What the samples of a TIFF mean: every combination of tags gives the right values, or is refused."""

from itertools import product

import numpy as np
import pytest

from lifelong_core.images import model_input
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing
from tests.unit.tiff_files import tiff

COLOURS = {0: 1, 1: 1, 2: 3, 5: 4}
"""samples of each PhotometricInterpretation"""
PLAIN = Preprocessing.model_validate({})


def values(data: bytes) -> np.ndarray:
    """The model's input (height, width, 3)."""
    return model_input(data, PLAIN, maximum_pixels=1000).transpose(1, 2, 0)


def meant(samples: np.ndarray, bits: int, meaning: int) -> np.ndarray:
    """As TIFF 6.0 says: the values (height, width, 3) in 0..1."""
    shares = samples / (2**bits - 1)
    if meaning == 5:
        return (1 - shares[..., :3]) * (1 - shares[..., 3:4])
    if meaning == 2:
        return shares[..., :3]
    return np.repeat(1 - shares[..., :1] if meaning == 0 else shares[..., :1], 3, axis=2)


@pytest.mark.parametrize("meaning", COLOURS)
@pytest.mark.parametrize("bits", [1, 2, 4, 6, 8, 10, 12, 14, 16, 32])
def test_samples_are_read_as_their_tags_say_or_refused(meaning: int, bits: int) -> None:
    rng = np.random.default_rng(0)
    answered = 0
    for added, kind, planes, fill, compression, order in product(
        (None, 0, 2), (None, 1, 2, 3, 4), (1, 2), (1, 2), (1, 8), "<>"
    ):
        count = COLOURS[meaning] + (added is not None)
        samples = rng.integers(0, 2 ** min(bits, 31), (6, 10, count))
        tags = {258: [bits] * count, 262: meaning, 284: planes, 266: fill, 259: compression}
        tags |= {} if kind is None else {339: [kind] * count}
        tags |= {} if added is None else {338: added}
        try:
            found = values(tiff(samples, tags, order=order))
        except InvalidInputError:
            continue
        answered += 1
        assert kind in (None, 1), tags
        # Colours of 16 bits lose their lower half; CMYK is rounded once more.
        tolerance = 2.1 if meaning == 5 else 1.01 if bits == 16 else 0.01
        assert 255 * abs(found - meant(samples, bits, meaning)).max() < (0.51 if bits == 4 else tolerance), (
            tags
        )
    assert (answered > 0) == (bits in {0: (1, 2, 4, 8, 16), 1: (1, 2, 4, 8, 12, 16)}.get(meaning, (8, 16)))


@pytest.mark.parametrize(
    ("tags", "named"),
    [
        ({262: None}, "PhotometricInterpretation"),
        ({339: 2}, "SampleFormat"),
        ({258: 10}, "BitsPerSample"),
        ({258: 16, 262: 1, 277: 2}, "SamplesPerPixel"),
        ({258: 16, 284: 2}, "PlanarConfiguration"),
        ({254: 1}, "NewSubfileType"),
        ({262: 6}, "PhotometricInterpretation"),
        ({262: 3, 320: [5] * 768}, "ColorMap"),
        ({317: 2}, "Predictor"),
        ({259: 34712}, "Compression"),
        ({259: 50001}, "Compression"),
        ({262: 2, 277: 3, 532: [16, 235] * 3}, "ReferenceBlackWhite"),
        ({262: 6, 277: 3, 259: 7, 529: [1, 0, 0]}, "YCbCrCoefficients"),
        ({262: 6, 277: 3, 259: 8, 256: 5, 530: [4, 4]}, "YCbCrSubSampling"),
    ],
)
def test_a_refusal_names_the_tag(tags: dict, named: str) -> None:
    samples = np.ones((4, 4, 1), dtype=int)
    with pytest.raises(InvalidInputError, match=named) as caught:
        values(tiff(samples, {258: 8} | tags))
    assert "Save it as PNG" in (caught.value.hint or "")


@pytest.mark.parametrize("count", [2, 4])
def test_premultiplied_colours_are_divided_by_alpha(count: int) -> None:
    samples = np.full((4, 4, count), 50)
    samples[..., -1] = 100
    found = values(tiff(samples, {258: [8] * count, 262: 1 if count == 2 else 2, 338: 1}))
    assert 255 * found == pytest.approx(127.5, abs=0.6)


def test_missing_strips_are_not_answered_as_black() -> None:
    samples = np.full((8, 4, 1), 200)
    assert values(tiff(samples, {258: 8})).min() == pytest.approx(200 / 255)
    with pytest.raises(InvalidInputError, match="strips"):
        values(tiff(samples, {258: 8, 278: 4}))
