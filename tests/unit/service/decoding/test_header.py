"""Declared sizes in headers, against Pillow, and on bytes that are not images."""

from collections.abc import Callable
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lifelong_core.images import FULL_PIXELS
from lifelong_core.values.errors import InvalidInputError, LifelongError, PayloadTooLargeError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.decoding.header import (
    CHEAP_BYTES,
    CHEAP_METADATA_BYTES,
    CHEAP_PIXELS,
    MAXIMUM_ASPECT,
    MAXIMUM_BLOCKS,
    MAXIMUM_METADATA_BLOCKS,
    MAXIMUM_SCANS,
    UNKNOWN,
    ImageHeader,
    check_header,
    is_cheap,
    read_header,
    takes_much_memory,
)
from tests.attacks.images import jpeg_of_tiny_segments, png_of_tiny_chunks, progressive_jpeg, two_frames

ENCODINGS = [
    ("PNG", {}),
    ("PNG", {"bits": 1}),
    ("JPEG", {}),
    ("JPEG", {"progressive": True}),
    ("JPEG", {"comment": b"made by hand", "dpi": (300, 300)}),
    ("BMP", {}),
    ("WEBP", {}),
    ("WEBP", {"lossless": True}),
    ("WEBP", {"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0"}),
]


def encoded(mode: str, size: tuple[int, int], kind: str, **options: object) -> bytes:
    file = BytesIO()
    Image.new(mode, size, 77).save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize(("kind", "options"), ENCODINGS)
@given(width=st.integers(1, 300), height=st.integers(1, 300), mode=st.sampled_from(["L", "RGB"]))
def test_declares_what_pillow_reads(
    kind: str, options: dict[str, object], width: int, height: int, mode: str
) -> None:
    data = encoded(mode, (width, height), kind, **options)
    header = read_header(data)
    assert (header.format, header.width, header.height) == (kind, *Image.open(BytesIO(data)).size)
    assert header.is_complete


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "WEBP", "TIFF"])
@given(st.data())
def test_reads_whatever_is_left_of_an_image(kind: str, data: st.DataObject) -> None:
    whole = bytearray(encoded("RGB", (9, 7), kind))
    del whole[data.draw(st.integers(0, len(whole))) :]
    for _ in range(data.draw(st.integers(0, 4)) if whole else 0):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    header = read_header(bytes(whole))
    assert header.pixels >= 0


@given(st.binary(max_size=64))
def test_other_bytes_are_unknown_or_incomplete(data: bytes) -> None:
    assert not read_header(data).is_complete or data[:2] == b"BM"


def one_scan_for_each_colour() -> bytes:
    """The head of a sequential JPEG whose first scan holds one of its three colours."""
    image = bytearray(encoded("RGB", (64, 64), "JPEG"))
    image[image.index(b"\xff\xda") + 4] = 1
    return bytes(image)


def test_counts_the_scans_of_a_jpeg() -> None:
    assert read_header(encoded("RGB", (64, 64), "JPEG")).scans == 1
    usual = read_header(progressive_jpeg(64, 0)).scans
    assert 1 < usual < 20
    assert read_header(progressive_jpeg(64, 500)).scans == usual + 500


def test_sequential_jpegs() -> None:
    assert read_header(encoded("RGB", (64, 64), "JPEG")).is_sequential
    assert read_header(encoded("L", (64, 64), "JPEG")).is_sequential
    assert not read_header(encoded("RGB", (64, 64), "JPEG", progressive=True)).is_sequential
    assert not read_header(one_scan_for_each_colour()).is_sequential
    assert not read_header(encoded("RGB", (64, 64), "PNG")).is_sequential


@pytest.mark.parametrize("make", [png_of_tiny_chunks, jpeg_of_tiny_segments])
def test_reads_no_more_than_so_many_blocks(make: Callable[[int], bytes]) -> None:
    assert read_header(make(MAXIMUM_BLOCKS - 50)).is_complete
    assert not read_header(make(MAXIMUM_BLOCKS + 50)).is_complete


def test_counts_metadata() -> None:
    plain = read_header(encoded("L", (8, 8), "JPEG")).metadata_bytes
    assert read_header(encoded("L", (8, 8), "JPEG", comment=b"x" * 1000)).metadata_bytes == plain + 1002
    assert read_header(png_of_tiny_chunks(10)).metadata_bytes == 20


def test_a_second_frame_header_proves_nothing() -> None:
    assert not read_header(two_frames()).is_complete


def test_what_is_no_image_is_unknown() -> None:
    assert read_header(b"GIF89a") == UNKNOWN
    assert read_header(b"") == UNKNOWN


LIMIT = 1_000_000


def test_passes_what_is_just_within_the_limits() -> None:
    for header in (
        ImageHeader("PNG", 1000, 1000),
        ImageHeader("PNG", MAXIMUM_ASPECT, 1),
        ImageHeader("PNG", 1, MAXIMUM_ASPECT),
        ImageHeader("JPEG", 10, 10, scans=MAXIMUM_SCANS),
        ImageHeader("JPEG", 10, 10, metadata_blocks=MAXIMUM_METADATA_BLOCKS),
        ImageHeader("BMP", 10, 10, compression=3),
        ImageHeader("TIFF"),
    ):
        check_header(header, maximum_pixels=LIMIT)


@pytest.mark.parametrize(
    ("header", "kind", "message"),
    [
        (ImageHeader("PNG", 1000, 1001), PayloadTooLargeError, "1000 x 1001"),
        (ImageHeader("PNG", MAXIMUM_ASPECT + 1, 1), InvalidInputError, "one edge"),
        (ImageHeader("PNG", 1, MAXIMUM_ASPECT + 1), InvalidInputError, "one edge"),
        (ImageHeader("JPEG", 10, 10, scans=MAXIMUM_SCANS + 1), PayloadTooLargeError, "scans"),
        (
            ImageHeader("JPEG", 10, 10, metadata_blocks=MAXIMUM_METADATA_BLOCKS + 1),
            InvalidInputError,
            "blocks of metadata",
        ),
        (ImageHeader("BMP", 10, 10, compression=1), InvalidInputError, "run-length"),
        (ImageHeader("BMP", 10, 10, compression=2), InvalidInputError, "run-length"),
    ],
)
def test_refuses_what_is_just_beyond(header: ImageHeader, kind: type[LifelongError], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        check_header(header, maximum_pixels=LIMIT)
    assert caught.value.field == "image"
    assert caught.value.hint


CHEAP = {"width": 2000, "height": CHEAP_PIXELS // 2000, "is_complete": True}


def test_cheap_at_every_limit() -> None:
    header = ImageHeader("PNG", **CHEAP, metadata_bytes=CHEAP_METADATA_BYTES)
    assert is_cheap(header, CHEAP_BYTES)


def test_costly_beyond_any_of_them() -> None:
    for change, size in (
        ({"height": CHEAP_PIXELS // 2000 + 1}, 1),
        ({"scans": 2}, 1),
        ({"metadata_bytes": CHEAP_METADATA_BYTES + 1}, 1),
        ({"is_complete": False}, 1),
        ({"height": 0}, 1),
        ({"format": "TIFF"}, 1),
        ({"format": ""}, 1),
        ({}, CHEAP_BYTES + 1),
    ):
        assert not is_cheap(ImageHeader(**({"format": "PNG"} | CHEAP | change)), size)


RESIZED = Preprocessing.model_validate({"resize": {"height": 224, "width": 224}})
LARGE = {"width": 2000, "height": FULL_PIXELS // 2000 + 1, "is_complete": True}


@pytest.mark.parametrize(
    ("header", "target", "expected"),
    [
        (ImageHeader("PNG", 2000, FULL_PIXELS // 2000), RESIZED, False),
        (ImageHeader("PNG", **LARGE), RESIZED, True),
        (ImageHeader("TIFF"), RESIZED, True),
        (ImageHeader("JPEG", **LARGE), RESIZED, True),
        (ImageHeader("JPEG", **(LARGE | {"height": 2008}), is_sequential=True), RESIZED, False),
        (ImageHeader("JPEG", **LARGE, is_sequential=True), RESIZED, True),  # 2001 rows: decoded in full
        (ImageHeader("JPEG", **LARGE, is_sequential=True), Preprocessing(), True),
        (ImageHeader("JPEG", **(LARGE | {"is_complete": False}), is_sequential=True), RESIZED, True),
    ],
)
def test_much_memory_is_taken_by_what_is_held_as_a_whole(
    header: ImageHeader, target: Preprocessing, expected: bool
) -> None:
    assert takes_much_memory(header, target) is expected
