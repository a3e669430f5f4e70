"""Refused images, and images that the serving process decodes."""

import pytest

from lifelong_core.images import FULL_PIXELS
from lifelong_core.images.preprocessing import Preprocessing
from lifelong_core.values.errors import InvalidInputError, LifelongError, PayloadTooLargeError
from lifelong_service.decoding.header import (
    CHEAP_BYTES,
    CHEAP_METADATA_BYTES,
    CHEAP_PIXELS,
    MAXIMUM_ASPECT,
    MAXIMUM_METADATA_BLOCKS,
    MAXIMUM_SCANS,
    ImageHeader,
    check_header,
    is_cheap,
    takes_much_memory,
)

LIMIT = 1_000_000


@pytest.mark.parametrize(
    "header",
    [
        ImageHeader("PNG", 1000, 1000),
        ImageHeader("PNG", MAXIMUM_ASPECT, 1),
        ImageHeader("PNG", 1, MAXIMUM_ASPECT),
        ImageHeader("JPEG", 10, 10, scans=MAXIMUM_SCANS),
        ImageHeader("JPEG", 10, 10, metadata_blocks=MAXIMUM_METADATA_BLOCKS),
        ImageHeader("BMP", 10, 10, compression=3),
        ImageHeader("TIFF"),
    ],
)
def test_passes_what_is_just_within_the_limits(header: ImageHeader) -> None:
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


@pytest.mark.parametrize(
    ("change", "size"),
    [
        ({"height": CHEAP_PIXELS // 2000 + 1}, 1),
        ({"scans": 2}, 1),
        ({"metadata_bytes": CHEAP_METADATA_BYTES + 1}, 1),
        ({"is_complete": False}, 1),
        ({"height": 0}, 1),
        ({"format": "TIFF"}, 1),
        ({"format": ""}, 1),
        ({}, CHEAP_BYTES + 1),
    ],
)
def test_costly_beyond_any_of_them(change: dict[str, object], size: int) -> None:
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
