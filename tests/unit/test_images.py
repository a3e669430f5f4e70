"""Decoding within limits, and preprocessing against arrays worked out by hand."""

import struct
import subprocess
import sys
import zlib
from base64 import b64decode
from importlib import import_module
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from lifelong_core.images import (
    IMAGE_SUFFIXES,
    decode,
    model_input,
    most_pixels,
    preprocess,
    steps,
    visible_box,
)
from lifelong_core.images.plain_jpeg import decode_plain_jpeg, read_plain_header
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError
from lifelong_core.values.preprocessing import CentreCrop, Preprocessing, Resize

LIMIT = 10_000
PLAIN_GREY = Preprocessing.model_validate({"colour": "grey", "mean": [0.0], "standard_deviation": [1.0]})


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def png_header(width: int, height: int) -> bytes:
    """A PNG that declares a size and holds no pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


def grey(rows: list[list[int]]) -> Image.Image:
    return Image.fromarray(np.array(rows, dtype=np.uint8))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "BMP", "WEBP"])
def test_decodes_every_format_that_is_promised(kind: str) -> None:
    assert decode(encoded(Image.new("RGB", (5, 3), (200, 10, 10)), kind), maximum_pixels=LIMIT).size == (5, 3)


@pytest.mark.parametrize("kind", ["GIF", "PPM", "ICO"])
def test_refuses_other_formats(kind: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        decode(encoded(Image.new("RGB", (16, 16)), kind), maximum_pixels=LIMIT)
    assert caught.value.field == "image"


@pytest.mark.parametrize(
    "broken",
    [
        b"hello, this is text",
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff",
        encoded(Image.effect_noise((64, 64), 90), "JPEG")[:600],
        encoded(Image.effect_noise((64, 64), 90))[:600],
        encoded(Image.effect_noise((64, 64), 90), "WEBP")[:600],
        encoded(Image.effect_noise((64, 64), 90), "TIFF")[:600],
        encoded(Image.effect_noise((64, 64), 90), "BMP")[:600],
        png_header(10, 10),
    ],
    ids=["text", "png-magic", "jpeg-magic", "jpeg", "png", "webp", "tiff", "bmp", "png-without-pixels"],
)
def test_broken_images_are_the_clients_fault(broken: bytes) -> None:
    with pytest.raises(InvalidInputError) as caught:
        decode(broken, maximum_pixels=LIMIT)
    assert caught.value.field == "image"
    assert caught.value.hint


def test_size_limit_from_the_header_alone() -> None:
    assert decode(encoded(Image.new("L", (100, 100))), maximum_pixels=LIMIT).size == (100, 100)
    with pytest.raises(PayloadTooLargeError, match="100 x 101") as caught:
        decode(encoded(Image.new("L", (100, 101))), maximum_pixels=LIMIT)
    assert caught.value.field == "image"


def test_a_decompression_bomb_is_not_decoded() -> None:
    with pytest.raises(PayloadTooLargeError, match="30000 x 30000"):
        decode(png_header(30_000, 30_000), maximum_pixels=50_000_000)


def test_turned_upright_by_exif() -> None:
    image = Image.new("RGB", (2, 4), "black")
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees
    assert decode(encoded(image, "JPEG", exif=exif), maximum_pixels=LIMIT).size == (4, 2)


def test_rgb_is_scaled_normalised_and_laid_out() -> None:
    image = Image.fromarray(np.array([[[255, 0, 51], [0, 102, 255]]], dtype=np.uint8))
    document = Preprocessing.model_validate({"mean": [0.5, 0.0, 0.2], "standard_deviation": [0.5, 2.0, 0.1]})
    expected = np.array([[[1.0, -1.0]], [[0.0, 0.2]], [[0.0, 8.0]]], dtype=np.float32)
    channels_first = preprocess(image, document)
    assert channels_first.dtype == np.float32
    np.testing.assert_allclose(channels_first, expected, atol=1e-6)
    last = preprocess(image, document.model_copy(update={"layout": "NHWC"}))
    np.testing.assert_array_equal(last, channels_first.transpose(1, 2, 0))


def test_resize_then_crop() -> None:
    rows = [[0, 10, 20, 30], [40, 50, 60, 70]]
    document = PLAIN_GREY.model_copy(
        update={
            "resize": Preprocessing.model_validate(
                {"resize": {"mode": "exact", "height": 4, "width": 8, "interpolation": "nearest"}}
            ).resize,
            "centre_crop": Preprocessing.model_validate(
                {"centre_crop": {"height": 2, "width": 4}}
            ).centre_crop,
        }
    )
    # Nearest doubles every pixel; the centre of 4 x 8 is rows 1-2, columns 2-5.
    expected = np.array([[[10, 10, 20, 20], [50, 50, 60, 60]]], dtype=np.float32) / np.float32(255)
    np.testing.assert_array_equal(preprocess(grey(rows), document), expected)


@pytest.mark.parametrize(
    ("size", "expected"), [((4, 2), (4, 8)), ((2, 4), (8, 4)), ((3, 3), (4, 4)), ((3, 2), (4, 6))]
)
def test_shortest_edge_keeps_the_aspect(size: tuple[int, int], expected: tuple[int, int]) -> None:
    document = Preprocessing.model_validate(
        {"resize": {"mode": "shortest_edge", "height": 4, "width": 4}, "colour": "rgb"}
    )
    assert preprocess(Image.new("RGB", size), document).shape == (3, *expected)


def test_an_elongated_image_must_not_grow_beyond_the_limit() -> None:
    document = Preprocessing.model_validate(
        {"resize": {"mode": "shortest_edge", "height": 100, "width": 100}}
    )
    with pytest.raises(InvalidInputError, match="would become"):
        preprocess(Image.new("RGB", (101, 1)), document, maximum_pixels=1_000_000)
    assert preprocess(Image.new("RGB", (100, 1)), document, maximum_pixels=1_000_000).shape == (
        3,
        100,
        10_000,
    )


def test_too_small_for_the_crop() -> None:
    document = Preprocessing.model_validate({"centre_crop": {"height": 5, "width": 5}})
    with pytest.raises(InvalidInputError, match="5 x 5"):
        preprocess(Image.new("RGB", (5, 4)), document)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "YCbCr"])
def test_every_mode_becomes_grey_or_rgb(mode: str) -> None:
    white = Image.new("RGB", (2, 2), "white").convert(mode)
    assert preprocess(white, PLAIN_GREY).tolist() == [[[1.0, 1.0], [1.0, 1.0]]]
    assert preprocess(white, Preprocessing.model_validate({})).min() == 1.0


_PALETTE = """
from io import BytesIO
from PIL import Image
from lifelong_core.images import IMAGE_SUFFIXES, decode, preprocess
from lifelong_core.values.preprocessing import Preprocessing

image, file = Image.new("P", (2, 2), 0), BytesIO()
image.putpalette([255, 255, 255, 0, 0, 0])
image.save(file, "PNG", transparency=b"\\x80\\xff")
print(preprocess(decode(file.getvalue(), maximum_pixels=4), Preprocessing()).min())
"""


def test_a_palette_with_transparency_gives_no_warning() -> None:
    # In a process of its own: pytest ignores the warnings, too.
    done = subprocess.run([sys.executable, "-W", "error", "-c", _PALETTE], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1.0\n", "")


_DAMAGED_TIFF = """
from io import BytesIO
from PIL import Image
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.images import decode

file = BytesIO()
Image.effect_noise((64, 64), 90).save(file, "TIFF", compression="tiff_lzw")
data = bytearray(file.getvalue())
data[1000:1050] = bytes(50)
try:
    decode(bytes(data), maximum_pixels=4096)
except InvalidInputError as error:
    print(error.message)
"""


def test_libtiff_does_not_write_to_the_standard_error() -> None:
    done = subprocess.run([sys.executable, "-c", _DAMAGED_TIFF], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("the image is truncated or broken.\n", "")


def test_sixteen_bits_keep_their_precision() -> None:
    samples = np.array([[0, 65535], [257, 300]], dtype=np.uint16)
    decoded = decode(encoded(Image.fromarray(samples)), maximum_pixels=LIMIT)
    np.testing.assert_allclose(preprocess(decoded, PLAIN_GREY)[0], samples / 65535, rtol=1e-6)
    assert preprocess(decoded, Preprocessing.model_validate({})).shape == (3, 2, 2)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos"])
def test_a_large_image_is_resized_as_a_small_one(
    mode: str, interpolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    if mode == "I;16":
        image = Image.fromarray(rng.integers(0, 2**16, (61, 83), dtype=np.uint16))
    else:
        image = (
            Image.fromarray(rng.integers(0, 2**8, (61, 83, 4), dtype=np.uint8)).convert("RGB").convert(mode)
        )
    preprocessing = Preprocessing.model_validate(
        {"resize": {"height": 20, "width": 30, "interpolation": interpolation}}
    )
    as_a_whole = preprocess(image, preprocessing)
    monkeypatch.setattr(steps, "FULL_PIXELS", 1000)
    monkeypatch.setattr(steps, "STRIP_PIXELS", 500)
    np.testing.assert_array_equal(preprocess(image, preprocessing), as_a_whole)


def test_samples_without_a_known_range_are_refused() -> None:
    image = Image.fromarray(np.ones((2, 2), dtype=np.float32))
    with pytest.raises(InvalidInputError, match="32-bit"):
        decode(encoded(image, "TIFF"), maximum_pixels=LIMIT)


@pytest.mark.parametrize("size", [(200, 100), (90, 130), (64, 64)])
@pytest.mark.parametrize(
    "resize",
    [
        None,
        Resize(height=40, width=60),
        Resize(mode="shortest_edge", height=48, width=48),
    ],
)
@pytest.mark.parametrize("is_cropped", [True, False])
def test_the_visible_box_is_what_preprocessing_leaves(size, resize, is_cropped):
    """A ramp shows where each pixel of the input comes from."""
    crop = CentreCrop(height=32, width=36) if is_cropped else None
    width, height = size
    ramps = np.zeros((height, width, 3))
    ramps[..., 0] = np.linspace(0, 255, width)
    ramps[..., 1] = np.linspace(0, 255, height)[:, np.newaxis]
    preprocessing = Preprocessing(resize=resize, centre_crop=crop)
    seen = preprocess(Image.fromarray(np.rint(ramps).astype(np.uint8)), preprocessing)
    left, top, right, bottom = visible_box(preprocessing, width, height)
    assert (seen[0].min(), seen[1].min()) == pytest.approx((left, top), abs=0.03)
    assert (seen[0].max(), seen[1].max()) == pytest.approx((right, bottom), abs=0.03)


PREPROCESSINGS = {
    "its own size": {"mean": [0.485, 0.456, 0.406], "standard_deviation": [0.229, 0.224, 0.225]},
    "the same size": {"resize": {"height": 60, "width": 75}},
    "crop": {"centre_crop": {"height": 40, "width": 40}, "layout": "NHWC"},
    "resized": {
        "resize": {"mode": "shortest_edge", "height": 40, "width": 40, "interpolation": "bicubic"},
        "centre_crop": {"height": 32, "width": 32},
    },
    "grey": {"colour": "grey", "resize": {"height": 60, "width": 75}},
}


def photograph(mode: str) -> Image.Image:
    """Coarse and fine structures in all channels; 75 x 60 pixels, which no block of a JPEG divides."""
    coarse = np.random.default_rng(0).integers(0, 256, (12, 15, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((75, 60), Image.Resampling.BICUBIC).convert(mode)


def by_pillow(data: bytes, preprocessing: Preprocessing) -> np.ndarray:
    """The model's input by another way: Pillow decodes, torchvision's formula normalises."""
    with Image.open(BytesIO(data)) as image:
        assert image.format == "JPEG"
        image.load()
        count = preprocessing.channels
        unchanged = {"mean": (0.0,) * count, "standard_deviation": (1.0,) * count}
        pixels = preprocess(image, preprocessing.model_copy(update=unchanged))
    shape = (-1, 1, 1) if preprocessing.layout == "NCHW" else (1, 1, -1)
    mean = np.array(preprocessing.mean, np.float32).reshape(shape)
    return (pixels - mean) / np.array(preprocessing.standard_deviation, np.float32).reshape(shape)


@pytest.mark.parametrize("document", PREPROCESSINGS.values(), ids=PREPROCESSINGS)
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize(
    "options",
    [{"subsampling": 0}, {"subsampling": 1}, {"subsampling": 2}, {"progressive": True}, {"quality": 30}],
    ids=str,
)
def test_jpegs_give_the_pixels_of_pillow(document: dict, mode: str, options: dict) -> None:
    preprocessing = Preprocessing.model_validate(document)
    data = encoded(photograph(mode), "JPEG", **options)
    expected = by_pillow(data, preprocessing)
    found = model_input(data, preprocessing, maximum_pixels=LIMIT)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, expected)
    image = decode(data, maximum_pixels=LIMIT)
    np.testing.assert_array_equal(preprocess(image, preprocessing), expected)


def test_an_input_is_limited_as_its_image() -> None:
    data, plain = encoded(photograph("RGB"), "JPEG"), Preprocessing.model_validate({})
    with pytest.raises(PayloadTooLargeError, match="75 x 60 pixels, at most 4499"):
        model_input(data, plain, maximum_pixels=75 * 60 - 1)
    with pytest.raises(InvalidInputError, match="truncated or broken"):
        model_input(data, plain, maximum_pixels=LIMIT, declared=(60, 75))
    assert model_input(data, plain, maximum_pixels=75 * 60, declared=(75, 60)).shape == (3, 60, 75)


@pytest.mark.parametrize("package", ["sklearn", "matplotlib", "coverage"])
def test_images_that_packages_ship_are_read_as_by_pillow(package: str) -> None:
    folder = Path(import_module(package).__file__).parent
    paths = [path for path in folder.rglob("*") if path.suffix in IMAGE_SUFFIXES]
    assert paths
    for path in paths:
        with Image.open(path) as image:
            expected = (
                ImageOps.exif_transpose(image).convert("RGB").resize((64, 64), Image.Resampling.BILINEAR)
            )
        found = model_input(
            path.read_bytes(), Preprocessing(resize=Resize(height=64, width=64)), maximum_pixels=10**7
        )
        np.testing.assert_array_equal(
            found, np.asarray(expected, np.float32).transpose(2, 0, 1) / np.float32(255)
        )


@pytest.mark.parametrize("kept", [0.3, 0.9, 0.999])
def test_a_truncated_jpeg_is_not_filled_with_grey(kept: float) -> None:
    data = encoded(photograph("RGB"), "JPEG")
    with pytest.raises(InvalidInputError):
        model_input(data[: int(len(data) * kept)], Preprocessing.model_validate({}), maximum_pixels=LIMIT)


@pytest.mark.parametrize("marker", [b"\xff\xda", b"\xff\xd9"], ids=["header", "pixels"])
def test_a_jpeg_with_a_harmless_fault_is_decoded_as_pillow_does(marker: bytes) -> None:
    data = encoded(photograph("RGB"), "JPEG")
    # libjpeg-turbo warns about bytes between segments.
    start, end = data.rsplit(marker, 1)
    odd = start + b"\x00\x00" + marker + end
    header = read_plain_header(odd)
    assert header is None or decode_plain_jpeg(odd, header) is None
    assert (header is None) == (marker == b"\xff\xda")
    plain = Preprocessing.model_validate({})
    np.testing.assert_array_equal(model_input(odd, plain, maximum_pixels=LIMIT), by_pillow(odd, plain))


def segment(marker: int, content: bytes) -> bytes:
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(content) + 2) + content


ODD_HEADERS = {
    "ICC profile out of order": (b"\xff\xdb", segment(0xE2, b"ICC_PROFILE\0\2\2" + bytes(50)) + b"\xff\xdb"),
    "bytes after metadata": (b"\xff\xdb", segment(0xFE, b"comment") + b"hello\xff\0" + b"\xff\xdb"),
    "revision of JFIF": (b"JFIF\0\1\1", b"JFIF\0\x09\x09"),
    "bytes after Adobe": (b"\xff\xdb", segment(0xEE, b"Adobe\0\x64\0\0\0\0\1") + b"\1\1\xff\xdb"),
    "no parameters of the scan": (b"\0\x3f\0", b"\0\0\0"),
    "EXIF without its header": (b"\xff\xdb", segment(0xE1, b"Exif\0\0hello there") + b"\xff\xdb"),
    "cut EXIF": (b"\xff\xdb", segment(0xE1, b"Exif\0\0II") + b"\xff\xdb"),
}


@pytest.mark.parametrize(("old", "new"), ODD_HEADERS.values(), ids=ODD_HEADERS)
def test_faults_of_metadata_are_no_damage_and_hide_none(old: bytes, new: bytes) -> None:
    plain = Preprocessing.model_validate({})
    odd = encoded(photograph("RGB"), "JPEG").replace(old, new, 1)
    np.testing.assert_array_equal(model_input(odd, plain, maximum_pixels=LIMIT), by_pillow(odd, plain))
    with pytest.raises(InvalidInputError, match="premature end"):
        model_input(odd[:-900] + odd[-400:], plain, maximum_pixels=LIMIT)


def test_the_rest_of_a_damaged_table_is_damage() -> None:
    odd = encoded(photograph("RGB"), "JPEG").replace(b"\xff\xc0", b"abc\xff\xc0", 1)
    with pytest.raises(InvalidInputError, match="3 extraneous bytes"):
        model_input(odd, Preprocessing.model_validate({}), maximum_pixels=LIMIT)


@pytest.mark.parametrize(
    ("resize", "size", "pixels"),
    [
        (None, (300, 200), 300 * 200),
        (Resize(height=64, width=32), (300, 200), 300 * 200),
        (Resize(height=64, width=32), (3, 2), 64 * 32),
        (Resize(mode="shortest_edge", height=256, width=256), (100, 1), 256 * 25_600),
        (Resize(mode="shortest_edge", height=256, width=256), (3, 4), 256 * 341),
        (Resize(mode="shortest_edge", height=16, width=16), (1, 2), 16 * 32),
    ],
)
def test_the_most_pixels_are_those_of_the_largest_step(
    resize: Resize | None, size: tuple[int, int], pixels: int
) -> None:
    crop = CentreCrop(height=2, width=2)
    assert most_pixels(Preprocessing(resize=resize, centre_crop=crop), *size) == pixels


@pytest.mark.parametrize("orientation", range(1, 9))
def test_inputs_are_turned_upright(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(photograph("RGB"), "JPEG", exif=exif)
    assert read_plain_header(data) is None
    with Image.open(BytesIO(data)) as image:
        upright = ImageOps.exif_transpose(image)
    plain = Preprocessing.model_validate({})
    np.testing.assert_array_equal(model_input(data, plain, maximum_pixels=LIMIT), preprocess(upright, plain))


UNNAMED_SUBSAMPLING = b64decode(
    """
    /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4RDgsLEBYQERMU
    FRUVDA8XGBYUGBIUFRT/2wBDAQMEBAUEBQkFBQkUDQsNFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU
    FBQUFBQUFBT/wAARCABAACADARQAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUF
    BAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVW
    V1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi
    4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAEC
    AxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVm
    Z2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq
    8vP09fb3+Pn6/9oADAMBAAIRAxEAPwDgqKKK/o0/AgooooAKKKKACiiigAooooAKKKKACiiigAooooA//9k=
    """
)
"""32 x 64 pixels, chroma at a quarter of the height (4:4:1), which simplejpeg has no name for"""


def test_a_subsampling_without_a_name_is_decoded_by_pillow() -> None:
    plain = Preprocessing.model_validate({})
    assert read_plain_header(UNNAMED_SUBSAMPLING) is None
    found = model_input(UNNAMED_SUBSAMPLING, plain, maximum_pixels=LIMIT)
    np.testing.assert_array_equal(found, by_pillow(UNNAMED_SUBSAMPLING, plain))


@pytest.mark.parametrize("options", [{}, {"progressive": True}], ids=str)
def test_a_subsampling_without_a_name_is_checked_for_lost_bytes(options: dict) -> None:
    data, plain = encoded(photograph("CMYK"), "JPEG", subsampling=2, **options), Preprocessing()
    np.testing.assert_array_equal(model_input(data, plain, maximum_pixels=LIMIT), by_pillow(data, plain))
    if not options:
        with pytest.raises(InvalidInputError, match="data are missing"):
            model_input(data[:-500] + data[-400:], plain, maximum_pixels=LIMIT)
