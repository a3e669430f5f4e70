"""Arrays as npz files: equal arrays give equal bytes, on every machine and at any time."""

import hashlib
import io
import zipfile
import zlib
from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from lifelong_core.errors import InvalidInputError

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest time a zip entry can have."""


UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RuntimeError,  # encrypted, or a method of compression that Python does not know
    MemoryError,  # a shape that nobody can hold
    zipfile.BadZipFile,
    zlib.error,
)
"""What numpy and zipfile raise for files that are damaged, or no npz files."""


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
) -> dict[str, NDArray[np.generic]]:
    """The required arrays of an npz file, and those of the optional ones that it holds.

    Args:
        content: of the file.
        required: names of arrays that it must hold.
        optional: names of others that are read as well.
        field: how errors name the file.
        prefix: every array whose name begins so is optional; None: no others are.

    Raises:
        InvalidInputError: not an npz file, one with pickled objects, or one that lacks a required array.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            known = dict.fromkeys((*required, *optional))
            more = [name for name in arrays if prefix is not None and name.startswith(prefix)]
            found = {name: arrays[name] for name in (*known, *more) if name in arrays}
    except UNREADABLE as error:
        raise InvalidInputError(
            "expected an npz file that is whole, without pickled objects.", field=field
        ) from error
    for name in required:
        if name not in found:
            raise InvalidInputError("the npz file lacks this array.", field=name)
    return found
