"""The digest of a preprocessing: what changes it, and what does not."""

import hashlib
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from lifelong_core import images
from lifelong_core.images import decoding, steps
from lifelong_core.images import preprocessing_digest as probe_images
from lifelong_core.images.plain_jpeg import PlainHeader
from lifelong_core.images.preprocessing_digest import check_preprocessing_digest, preprocessing_digest
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing

FULL: dict[str, Any] = {
    "colour": "rgb",
    "resize": {"mode": "shortest_edge", "height": 256, "width": 256, "interpolation": "bicubic"},
    "centre_crop": {"height": 224, "width": 224},
    "mean": [0.485, 0.456, 0.406],
    "standard_deviation": [0.229, 0.224, 0.225],
    "layout": "NCHW",
}
CHANGES: dict[str, dict[str, Any]] = {
    "colour": {"colour": "grey", "mean": [0.485], "standard_deviation": [0.229]},
    "no resize": {"resize": None},
    "mode": {"resize": {**FULL["resize"], "mode": "exact"}},
    "size": {"resize": {**FULL["resize"], "height": 257, "width": 257}},
    "nearest": {"resize": {**FULL["resize"], "interpolation": "nearest"}},
    "bilinear": {"resize": {**FULL["resize"], "interpolation": "bilinear"}},
    "lanczos": {"resize": {**FULL["resize"], "interpolation": "lanczos"}},
    "no crop": {"centre_crop": None},
    "height of the crop": {"centre_crop": {"height": 223, "width": 224}},
    "width of the crop": {"centre_crop": {"height": 224, "width": 223}},
    "mean": {"mean": [0.485, 0.456, 0.4060000001]},
    "standard deviation": {"standard_deviation": [0.229, 0.225, 0.224]},
    "layout": {"layout": "NHWC"},
}


def digest(**changed: Any) -> str:
    return preprocessing_digest(Preprocessing.model_validate({**FULL, **changed}))


def test_every_field_of_the_document_changes_the_digest() -> None:
    digests = [digest(), *(digest(**changed) for changed in CHANGES.values())]
    assert len(set(digests)) == len(digests)
    assert all(len(one) == 64 for one in digests)


def test_equal_documents_have_equal_digests_however_they_are_written() -> None:
    short = {"resize": {"height": 32, "width": 32}}
    full = Preprocessing.model_validate(short).model_dump(mode="json")
    reordered = dict(reversed(full.items()))
    assert (
        len({preprocessing_digest(Preprocessing.model_validate(one)) for one in (short, full, reordered)})
        == 1
    )


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"centre_crop": {"height": 8192, "width": 1}},
        {"centre_crop": {"height": 1, "width": 1}},
        {"resize": {"height": 8192, "width": 8192, "interpolation": "lanczos"}},
        {"resize": {"height": 1, "width": 1}, "centre_crop": {"height": 1, "width": 1}},
        {
            "resize": {"mode": "shortest_edge", "height": 100, "width": 100},
            "centre_crop": {"height": 100, "width": 8192},
        },
        {"mean": [1e30, -1e30, 0.0], "standard_deviation": [1e-40, 1e30, 1.0]},
    ],
)
@pytest.mark.parametrize("colour", ["rgb", "grey"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_every_document_has_a_digest_of_few_pixels(
    document: dict[str, Any], colour: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if colour == "grey":
        document = {key: value[:1] if isinstance(value, list) else value for key, value in document.items()}
    seen: list[int] = []
    original = images.model_input

    def counted(*given: Any, **options: Any) -> NDArray[np.float32]:
        seen.append((found := original(*given, **options)).size)
        return found

    monkeypatch.setattr(images, "model_input", counted)
    preprocessing = Preprocessing.model_validate({**document, "colour": colour, "layout": layout})
    assert preprocessing_digest(preprocessing) == preprocessing_digest(preprocessing)
    assert len(seen) == 2 * 2 * len(probe_images.PROBES)
    assert max(seen) < 5_000


def one_level_brighter(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    changed = pixels.copy()
    changed.flat[0] += 1
    return changed


@pytest.mark.parametrize("probe", probe_images.PROBES)
@pytest.mark.parametrize("document", [{}, FULL])
def test_a_decoder_that_is_off_by_one_grey_level_in_one_pixel_changes_the_digest(
    probe: bytes, document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    preprocessing = Preprocessing.model_validate(document)
    before, by_pillow, by_turbo = (
        preprocessing_digest(preprocessing),
        decoding.decode_by_pillow,
        decoding.decode_plain_jpeg,
    )

    def decode_by_pillow(data: bytes, **options: Any) -> Image.Image:
        image = by_pillow(data, **options)
        return Image.fromarray(one_level_brighter(np.asarray(image))) if data == probe else image

    def decode_plain_jpeg(data: bytes, header: PlainHeader) -> NDArray[np.uint8] | None:
        pixels = by_turbo(data, header)
        return pixels if pixels is None or data != probe else one_level_brighter(pixels)

    for module in (decoding, steps):
        monkeypatch.setattr(module, "decode_by_pillow", decode_by_pillow)
    monkeypatch.setattr(decoding, "decode_plain_jpeg", decode_plain_jpeg)
    assert preprocessing_digest(preprocessing) != before


def fast_chroma(data: bytes) -> Image.Image:
    """As a decoder that repeats the samples of chroma instead of interpolating them."""
    ycc = Image.open(BytesIO(data))
    ycc.draft("YCbCr", None)
    y, *chroma = ycc.split()
    half = [one.resize((15, 19)).resize(y.size, Image.Resampling.NEAREST) for one in chroma]
    return Image.merge("YCbCr", (y, *half)).convert("RGB").transpose(Image.Transpose.ROTATE_270)


def without_turn(data: bytes) -> Image.Image:
    image = Image.open(BytesIO(data))
    image.load()
    return image


@pytest.mark.parametrize("decoder", [fast_chroma, without_turn])
def test_another_decoder_of_jpeg_changes_the_digest(
    decoder: Callable[[bytes], Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, original = digest(), decoding.decode_by_pillow

    def decode(data: bytes, **options: Any) -> Image.Image:
        return decoder(data) if data == probe_images.COLOUR_JPEG else original(data, **options)

    for module in (decoding, steps):
        monkeypatch.setattr(module, "decode_by_pillow", decode)
    assert digest() != before


@pytest.mark.parametrize("document", [{}, FULL])
def test_inputs_of_images_of_the_size_of_the_model_count(
    document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are made on a way of their own, which leaves Pillow out."""
    preprocessing = Preprocessing.model_validate(document)
    before, original = preprocessing_digest(preprocessing), steps._normalised

    def exchanged(planes: Any, preprocessing: Preprocessing) -> NDArray[np.float32]:
        return original(planes[::-1] if isinstance(planes, np.ndarray) else planes, preprocessing)

    monkeypatch.setattr(steps, "_normalised", exchanged)
    assert preprocessing_digest(preprocessing) != before


def test_another_resampling_filter_changes_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before, original = digest(), Image.Image.resize

    def without_antialiasing(image: Image.Image, size: tuple[int, int], resample: int) -> Image.Image:
        box = (0.0, 0.0, *map(float, image.size))
        del resample
        return original(image, size, Image.Resampling.BILINEAR, box)

    monkeypatch.setattr(Image.Image, "resize", without_antialiasing)
    assert digest() != before


@pytest.mark.parametrize(("error", "changes"), [(1e-6, False), (0.02, True)])
def test_only_whole_grey_levels_count(error: float, changes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    before, original = digest(), images.model_input

    def model_input(*given: Any, **options: Any) -> NDArray[np.float32]:
        return original(*given, **options) + np.float32(error)

    monkeypatch.setattr(images, "model_input", model_input)
    assert (digest() != before) == changes


def test_the_probes_are_those_of_all_recorded_digests() -> None:
    content = hashlib.sha256(b"".join(probe_images.PROBES)).hexdigest()
    assert content == "859f94e27c29e250a04aa5a9e2113d4b1ea8fa890df8f6f74038801063cc8cd5"
    described = [(image.mode, image.size) for image in map(Image.open, map(BytesIO, probe_images.PROBES))]
    assert described == [
        ("RGB", (29, 37)),
        ("RGB", (29, 37)),
        ("RGB", (21, 23)),
        ("RGB", (21, 23)),
        ("RGB", (21, 23)),
        ("L", (23, 19)),
        ("RGBA", (31, 23)),
        ("I;16", (27, 23)),
    ]


def test_only_known_and_different_digests_are_refused() -> None:
    preprocessing = Preprocessing.model_validate(FULL)
    for recorded, own in ((None, preprocessing), (digest(), preprocessing), ("0" * 64, None), (None, None)):
        check_preprocessing_digest(recorded, own, field="calibration", hint="Again.")
    with pytest.raises(InvalidInputError, match="another preprocessing document or image decoder") as caught:
        check_preprocessing_digest(digest(mean=[0, 0, 0]), preprocessing, field="calibration", hint="Again.")
    assert (caught.value.field, caught.value.hint) == ("calibration", "Again.")
