"""TIFF files, written from the specification (TIFF 6.0) alone, so that the tests share no code with a reader."""

import struct
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

SHORT, LONG = 3, 4
LONG_TAGS = frozenset({273, 279})


def tiff(samples: np.ndarray, tags: Mapping[int, int | Sequence[int]], *, order: str = "<") -> bytes:
    """A file of one page.

    Args:
        samples: (height, width, samples per pixel), not negative; what is written are their lowest bits.
        tags: numbers and values of tags; 258 (BitsPerSample) is required. None leaves out a tag that is written
            otherwise. Compression (259) may be 1 or 8, FillOrder (266) 1 or 2, PlanarConfiguration (284) 1 or 2.
        order: "<" or ">": byte order.
    """
    height, width, count = samples.shape
    bits = tags[258] if isinstance(tags[258], int) else tags[258][0]
    is_planar = tags.get(284) == 2
    planes = [samples[:, :, i : i + 1] for i in range(count)] if is_planar else [samples]
    strips = [_strip(plane, bits, order) for plane in planes]
    if tags.get(259) == 8:
        strips = [zlib.compress(strip) for strip in strips]
    if tags.get(266) == 2:
        strips = [_mirrored(strip) for strip in strips]
    entries = {256: width, 257: height, 259: 1, 262: 1, 277: count, 278: height}
    entries |= {273: [0] * len(strips), 279: [len(strip) for strip in strips]} | dict(tags)
    return _file({tag: value for tag, value in sorted(entries.items()) if value is not None}, strips, order)


def _strip(plane: np.ndarray, bits: int, order: str) -> bytes:
    rows = plane.reshape(len(plane), -1)
    if bits in (16, 32):
        return rows.astype(f"{order}u{bits // 8}").tobytes()
    digits = rows[:, :, None] >> np.arange(bits - 1, -1, -1) & 1
    return np.packbits(digits.reshape(len(rows), -1).astype(bool), axis=1).tobytes()


def _mirrored(content: bytes) -> bytes:
    """Each byte with its bits in the other order."""
    return np.packbits(np.unpackbits(np.frombuffer(content, np.uint8), bitorder="little")).tobytes()


def _file(entries: dict[int, int | Sequence[int]], strips: list[bytes], order: str) -> bytes:
    after = 8 + 2 + 12 * len(entries) + 4
    lists = {tag: [value] if isinstance(value, int) else [*value] for tag, value in entries.items()}
    sizes = {tag: len(value) * (4 if tag in LONG_TAGS else 2) for tag, value in lists.items()}
    start = after + sum(size for size in sizes.values() if size > 4)
    if not any(lists[273]):
        lists[273] = [start + sum(map(len, strips[:index])) for index in range(len(lists[273]))]
    directory, content = struct.pack(f"{order}H", len(entries)), b""
    for tag, value in lists.items():
        kind, letter = (LONG, "I") if tag in LONG_TAGS else (SHORT, "H")
        packed = struct.pack(f"{order}{len(value)}{letter}", *value)
        if len(packed) > 4:
            packed, content = struct.pack(f"{order}I", after + len(content)), content + packed
        directory += struct.pack(f"{order}HHI", tag, kind, len(value)) + packed.ljust(4, b"\0")
    magic = (b"II" if order == "<" else b"MM") + struct.pack(f"{order}HI", 42, 8)
    return magic + directory + bytes(4) + content + b"".join(strips)
