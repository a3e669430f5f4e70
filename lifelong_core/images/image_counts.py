"""How many images there are at a path, without decoding one and without the libraries of training."""

import csv
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath

from lifelong_core.configuration.image_roots import resolve_within
from lifelong_core.images import IMAGE_SUFFIXES
from lifelong_core.values.errors import InvalidInputError

_DICOM_SUFFIXES = frozenset({".dcm", ".dicom", ".ima"})


def count_images(path: Path, *, most: int | None = None) -> int | None:
    """About how many images a folder or CSV file names; frames of a DICOM file count as one.

    Args:
        path: of a folder, or of a CSV file with a header.
        most: None is returned for more, so that a request does not walk a large disk.

    Returns:
        The number; None: there are too many, or the path is an archive, or cannot be read here.

    Examples:
        >>> count_images(Path("/nowhere")) is None
        True
    """
    try:
        found = _images(resolve_within(path, None))
        count = sum(1 for _ in (found if most is None else islice(found, most + 1)))
    except (InvalidInputError, OSError, ValueError, csv.Error):
        return None
    return count if count and (most is None or count <= most) else None


def _images(path: Path) -> Iterator[str]:
    if path.is_dir():
        for _, _, names in os.walk(path):
            yield from (name for name in names if _is_image(name))
    elif path.suffix.lower() == ".csv":
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield from (str(number) for number, _ in enumerate(csv.DictReader(file)))


def _is_image(name: str) -> bool:
    suffix = PurePosixPath(name).suffix.lower()
    return not name.startswith(".") and (suffix in IMAGE_SUFFIXES or suffix in _DICOM_SUFFIXES)
