"""Arrays as npz files: equal arrays give equal bytes, on every machine and at any time."""

import io
import zipfile
from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from lifelong_core.errors import InvalidInputError

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest time a zip entry can have."""


def write_npz(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """The arrays as a compressed npz file, little-endian; `numpy.load` reads it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            portable = np.asarray(array, order="C").astype(array.dtype.newbyteorder("<"), copy=False)
            content = io.BytesIO()
            np.lib.format.write_array(content, portable, allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            archive.writestr(entry, content.getvalue(), zipfile.ZIP_DEFLATED, 6)
    return file.getvalue()


def read_npz(content: bytes, names: Collection[str], *, field: str) -> dict[str, NDArray[np.generic]]:
    """Those of the named arrays that the npz file holds.

    Raises:
        InvalidInputError: not an npz file, or one with pickled objects.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in names if name in arrays}
    except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile, KeyError, AttributeError) as error:
        raise InvalidInputError("expected an npz file without pickled objects.", field=field) from error
