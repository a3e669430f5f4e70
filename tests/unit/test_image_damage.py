"""Damaged files are refused where the format shows the damage, and large JPEGs keep their geometry."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from lifelong_core.images import FULL_PIXELS, decode, model_input, reduction
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing

SMALL = Preprocessing.model_validate({"resize": {"height": 16, "width": 16}})


def photograph(width: int, height: int, mode: str = "RGB") -> Image.Image:
    coarse = np.random.default_rng(0).integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC).convert(mode)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def turned() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


FILES = {
    "plain": ("JPEG", "RGB", {}),
    "grey": ("JPEG", "L", {}),
    "oriented": ("JPEG", "RGB", {"exif": turned()}),
    "progressive": ("JPEG", "RGB", {"progressive": True}),
    "cmyk": ("JPEG", "CMYK", {"subsampling": 0}),
    "mpo": ("MPO", "RGB", {"save_all": True, "append_images": [Image.new("RGB", (8, 8))]}),
    "jpeg in tiff": ("TIFF", "RGB", {"compression": "jpeg"}),
    "png": ("PNG", "RGB", {}),
    "deflate in tiff": ("TIFF", "RGB", {"compression": "tiff_adobe_deflate"}),
    "webp": ("WEBP", "RGB", {"quality": 90}),
}


@pytest.mark.parametrize("name", FILES)
def test_lost_bytes_are_refused(name: str) -> None:
    kind, mode, options = FILES[name]
    data = encoded(photograph(256, 256, mode), kind, **options)
    model_input(data, SMALL, maximum_pixels=100_000)
    rng = np.random.default_rng(0)
    for _ in range(20):
        start = int(rng.integers(700, len(data) - 3500))
        with pytest.raises(InvalidInputError):
            model_input(data[:start] + data[start + 1000 :], SMALL, maximum_pixels=100_000)


def test_a_wrong_checksum_is_refused() -> None:
    data = bytearray(encoded(photograph(64, 64), "PNG"))
    data[len(data) // 2] ^= 1
    with pytest.raises(InvalidInputError, match="checksum"):
        model_input(bytes(data), SMALL, maximum_pixels=100_000)


def test_cmyk_without_a_polarity_is_refused() -> None:
    data = encoded(photograph(64, 64, "CMYK"), "JPEG")
    start = data.index(b"\xff\xee")
    with pytest.raises(InvalidInputError, match="Adobe"):
        model_input(data[:start] + data[start + 16 :], SMALL, maximum_pixels=100_000)


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize(("width", "height", "factor"), [(2001, 2003, 1), (2016, 2008, 8), (2004, 2000, 4)])
def test_a_large_jpeg_keeps_its_geometry(interpolation: str, width: int, height: int, factor: int) -> None:
    target = Preprocessing.model_validate(
        {"resize": {"height": 60, "width": 60, "interpolation": interpolation}}
    )
    factor = 1 if interpolation == "nearest" else factor
    assert reduction((width, height), target) == factor
    data = encoded(photograph(width, height), "JPEG", quality=92, exif=turned())
    decoded = decode(data, maximum_pixels=10 * FULL_PIXELS, target=target)
    assert decoded.size == (height // factor, width // factor)
    with Image.open(BytesIO(data)) as image:
        full = image.rotate(-90, expand=True).resize((60, 60), Image.Resampling[interpolation.upper()])
    found = model_input(data, target, maximum_pixels=10 * FULL_PIXELS)
    difference = 255 * abs(found - np.asarray(full).transpose(2, 0, 1) / 255).max()
    assert difference < (0.01 if factor == 1 else 4)
