"""Arrays as npz files; equal arrays give equal bytes on every machine and at any time."""

import hashlib
import io
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterable, Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Oldest time that a zip entry can have."""

MAXIMUM_ENTRIES = 1000
"""Limit of the entries in a file's directory; each takes some 500 bytes of memory before anything is unpacked."""

_DIRECTORY_ENTRY = b"PK\x01\x02"
_NUMBER_BYTES = 8
"""Bytes of a value in memory, at least: computations use float64 or int64, however small the type in the file is, and
texts of no characters still are values."""

LONGEST_HEADER = 1_000
"""Bytes; numpy writes a few hundred at most. It is a Python expression, whose parsing takes time."""
_HEADER_START = 12
"""Bytes up to the text of the header; version 1 has two of the text among them."""

LABELLED_HINT = "Write it with numpy.savez(file, logits=..., labels=...)."
DAMAGED_HINT = "The file is damaged, or another one: get it again from its origin."
"""Hints for files that people make, and for files that this program made."""

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}

UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RuntimeError,  # encrypted, or a method of compression that Python does not know
    MemoryError,  # a shape that does not fit into memory
    OverflowError,
    SyntaxError,  # the headers of arrays are Python expressions
    tokenize.TokenError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions that numpy and zipfile raise for damaged files and for files that are no npz files."""


def array_digest(arrays: Mapping[str, NDArray[np.generic]]) -> str:
    """SHA-256 (hex) over names, types, shapes and values."""
    digest = hashlib.sha256()
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def write_npz(arrays: Mapping[str, NDArray[np.generic]], *, compressed: bool = True) -> bytes:
    """The arrays as an npz file, little-endian; `numpy.load` reads it."""
    file = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, array in arrays.items():
            portable = np.asarray(array, order="C").astype(array.dtype.newbyteorder("<"), copy=False)
            content = io.BytesIO()
            np.lib.format.write_array(content, portable, allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            archive.writestr(entry, content.getvalue(), method, 6)
    return file.getvalue()


def read_npz(
    content: bytes,
    required: Collection[str],
    optional: Collection[str] = (),
    *,
    field: str,
    prefix: str | None = None,
    maximum_bytes: int | None = None,
    hint: str = LABELLED_HINT,
) -> dict[str, NDArray[np.generic]]:
    """Read the required arrays of an npz file, and those of the optional arrays that it has.

    Args:
        content: bytes of the file.
        required: names of arrays that the file must have.
        optional: names of further arrays to read.
        field: name of the file in errors.
        prefix: arrays whose names begin with it are optional too; None: no others are.
        maximum_bytes: limit of the memory of the arrays, at 8 bytes for each number; the declared sizes are checked
            before anything is unpacked. None: no limit.
        hint: how to get a file that can be read.

    Raises:
        PayloadTooLargeError: the file declares more than `maximum_bytes`, or holds too many entries.
        InvalidInputError: not an npz file, one with pickled objects or two arrays of one name, or one that lacks a
            required array.
    """
    if content.count(_DIRECTORY_ENTRY) > MAXIMUM_ENTRIES:
        raise PayloadTooLargeError(f"expected at most {MAXIMUM_ENTRIES} arrays.", field=field)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = _wanted(archive, (*required, *optional), prefix)
            _check_declared(archive, names, math.inf if maximum_bytes is None else maximum_bytes, field)
            found = {name: _array(archive, name) for name in names}
    except PayloadTooLargeError:
        raise
    except UNREADABLE as error:
        raise InvalidInputError(
            "expected an npz file that is whole, without pickled objects.",
            field=field,
            hint=hint,
        ) from error
    for name in required:
        if name not in found:
            raise InvalidInputError("the npz file lacks this array.", field=name)
    return found


def read_array_header(stream: IO[bytes], *, field: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the array that a stream of the npy format begins with; the stream is then at its first number.

    Raises:
        InvalidInputError: no such array, a header longer than `LONGEST_HEADER`, or another order than that of C.
    """
    try:
        shape, is_fortran, dtype = _read_header(stream)
    except UNREADABLE as error:
        raise InvalidInputError(
            "expected an array in the npy format.", field=field, hint=DAMAGED_HINT
        ) from error
    if is_fortran and sum(size > 1 for size in shape) > 1:
        raise InvalidInputError(
            "expected an array in the order of C.", field=field, hint="Save numpy.ascontiguousarray(array)."
        )
    return shape, dtype


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it is in the order of Fortran, and type; raises one of `UNREADABLE`."""
    start = stream.read(_HEADER_START)
    major = start[6] if start.startswith(b"\x93NUMPY") else 0
    width = {1: 2, 2: 4}[major]
    length = int.from_bytes(start[8 : 8 + width], "little")
    if length > LONGEST_HEADER:
        raise ValueError("header")
    whole = io.BytesIO(start + stream.read(8 + width + length - _HEADER_START))
    return _HEADERS[np.lib.format.read_magic(whole)](whole)


def _wanted(archive: zipfile.ZipFile, known: Iterable[str], prefix: str | None) -> list[str]:
    """Names of the arrays to read, in this order: known names, then those with the prefix."""
    held = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    if len(set(held)) < len(held):  # readers differ in which of them they take
        raise zipfile.BadZipFile("two entries of one name")
    more = [name for name in held if prefix is not None and name.startswith(prefix)]
    return [name for name in dict.fromkeys((*known, *more)) if name in held]


def _check_declared(archive: zipfile.ZipFile, names: Iterable[str], maximum: float, field: str) -> None:
    """Compare the sizes in the directory, then the shapes in the headers, with the limit.

    zipfile inflates no entry beyond the size in the directory, but reads methods other than deflate in pieces of any
    size.
    """
    entries = archive.infolist()
    if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in entries):
        raise zipfile.BadZipFile("neither stored nor deflated")
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked <= maximum:
        unpacked = sum(_declared_bytes(archive, name) for name in names)
    if unpacked > maximum:
        raise PayloadTooLargeError(
            f"the npz file unpacks to {unpacked} bytes, at most {maximum} are accepted.", field=field
        )


def _declared_bytes(archive: zipfile.ZipFile, name: str) -> int:
    with archive.open(f"{name}.npy") as stream:
        shape, _, dtype = _read_header(stream)
    if any(size < 0 for size in shape):  # it would make room for another array
        raise ValueError("shape")
    return math.prod(shape) * max(dtype.itemsize, _NUMBER_BYTES)


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[np.generic]:
    with archive.open(f"{name}.npy") as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)
