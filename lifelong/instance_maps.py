"""Instance maps of classifiers in files: one array for all images, or a folder with one file for each image."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lifelong_core.values.class_labels import composed
from lifelong_core.values.csv_files import read_csv
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.npz import UNREADABLE, read_npz

SUFFIXES = (".npy", ".npz")
HINT = (
    "Write all maps with numpy.save(file, array) of shape (images, height, width), or a folder with one npy file for"
    " each image."
)


@dataclass(frozen=True, eq=False)
class InstanceMaps:
    """The maps of one classifier."""

    maps: Sequence[NDArray[Any]]
    """one for each image"""
    names: tuple[str, ...] | None
    """of the images; None: their order says which is which"""


def read_maps(path: Path, *, field: str) -> InstanceMaps:
    """The maps of a classifier.

    Args:
        path: npy file with an array (images, ...), npz file with such an array as `maps` or as its only array, or a
            folder with one npy or npz file for each image, whose names are those of the images.
        field: name of the classifier in errors.

    Raises:
        InvalidInputError: a file cannot be read or does not fit; the message names it.
    """
    if not path.is_dir():
        found = _array(path, field=field)
        if found.ndim < 2:
            raise InvalidInputError(
                f"{path}: expected shape (images, height, width), got {found.shape}.", field=field, hint=HINT
            )
        return InstanceMaps(list(found), None)
    paths = sorted(
        (one for one in path.iterdir() if one.suffix.lower() in SUFFIXES), key=lambda one: one.stem
    )
    if not paths:
        raise InvalidInputError(f"{path} has no npy or npz file.", field=field, hint=HINT)
    names = tuple(one.stem for one in paths)
    if len(set(names)) < len(names):
        raise InvalidInputError(f"{path} has two files of one image.", field=field)
    return InstanceMaps([_array(one, field=field) for one in paths], names)


def read_image_labels(path: Path, names: Sequence[str] | None, *, field: str) -> NDArray[Any]:
    """Whether each image is positive, in the order of the maps.

    Args:
        path: npy file with an array (images,) of 0 and 1, or CSV with the columns file and label.
        names: of the images, for CSV.
        field: name of the file in errors.

    Raises:
        InvalidInputError: it cannot be read, or lacks an image.
    """
    if path.suffix.lower() != ".csv":
        return _array(path, field=field, name="labels")
    if names is None:
        raise InvalidInputError(
            f"{path}: a CSV file needs the names of the images.",
            field=field,
            hint="Give the maps as folders with one file for each image, or the labels as npy, in their order.",
        )
    rows = read_csv(path, required=("file", "label"), field=field)
    labels = {Path(row["file"]).stem: row["label"] for row in rows}
    found = {name: labels[composed(name)] for name in names if composed(name) in labels}
    missing = [name for name in names if name not in found]
    if missing:
        raise InvalidInputError(f"{path} has no label for {missing[0]}.", field=field)
    wrong = [name for name in names if found[name] not in ("0", "1")]
    if wrong:
        raise InvalidInputError(
            f"{path}: expected 0 or 1 for {wrong[0]}, got {found[wrong[0]]!r}.", field=field
        )
    return np.array([int(found[name]) for name in names])


def _array(path: Path, *, field: str, name: str = "maps") -> NDArray[Any]:
    """The array of a file; that of an npy file stays on the disk until it is used."""
    try:
        if path.suffix.lower() == ".npz":
            return _of_npz(path, field=field, name=name)
        return np.lib.format.open_memmap(path, mode="r")
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error.message}", field=field, hint=error.hint) from error
    except UNREADABLE as error:
        raise InvalidInputError(
            f"{path} is no npy or npz file that is whole, without pickled objects.", field=field, hint=HINT
        ) from error


def _of_npz(path: Path, *, field: str, name: str) -> NDArray[Any]:
    found = read_npz(path.read_bytes(), (), prefix="", field=field, hint=HINT)
    if name in found:
        return found[name]
    if len(found) != 1:
        raise InvalidInputError(f"expected the array {name}, or one array only.", field=field, hint=HINT)
    return next(iter(found.values()))
