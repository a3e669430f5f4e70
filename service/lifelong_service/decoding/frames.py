"""Frames between the serving process and its decoding process: length-prefixed bytes."""

import json
import struct
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

_LENGTH: Final = struct.Struct("<Q")


def write_frame(stream: BinaryIO, *parts: bytes | memoryview) -> None:
    """Write the parts as one frame."""
    stream.write(_LENGTH.pack(sum(len(part) for part in parts)))
    for part in parts:
        stream.write(part)
    stream.flush()


def read_frame(stream: BinaryIO) -> bytes:
    """Return the next frame.

    Raises:
        EOFError: the other process has ended, before or within the frame.
    """
    return _read(stream, _LENGTH.unpack(_read(stream, _LENGTH.size))[0])


def write_document(stream: BinaryIO, document: dict[str, Any]) -> None:
    """Write a JSON document as one frame."""
    write_frame(stream, json.dumps(document).encode())


def read_document(stream: BinaryIO) -> dict[str, Any]:
    """Return the JSON document in the next frame.

    Raises:
        EOFError: the other process has ended.
    """
    return json.loads(read_frame(stream))


def write_array(stream: BinaryIO, array: NDArray[np.float32]) -> None:
    """Write a contiguous array of float32: its shape, then its content."""
    write_document(stream, {"shape": array.shape})
    write_frame(stream, array.data.cast("B"))


def read_array(shape: list[int], stream: BinaryIO) -> NDArray[np.float32]:
    """Return an array of this shape.

    Raises:
        EOFError: the other process has ended.
    """
    return np.frombuffer(read_frame(stream), dtype=np.float32).reshape(shape)


def _read(stream: BinaryIO, size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content
