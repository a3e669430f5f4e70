"""The labelled images of a source: class, group and given split of each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import cast

import numpy as np
from numpy.typing import NDArray

from lifelong_core.develop.features.sources.entry import Entry, ImageSource, printable
from lifelong_core.develop.training.recipe import SPLITS, SplitName
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError
from lifelong_core.values.validation_errors import suggest

MOST_IMAGES = 2_000_000
"""Listed, they take some 0.8 GB of memory; a small DICOM file may declare a million."""
_MOST_NAMED = 5
_FIELD = "images"


@dataclass(frozen=True, eq=False)
class Cases:
    """Labelled images in order of their names, so that moved or reordered files are the same cases."""

    entries: tuple[Entry, ...]
    class_names: tuple[str, ...]
    labels: NDArray[np.int64]
    """shape (N,), indices of `class_names`"""
    groups: tuple[str | None, ...]
    """None: the image names no group"""
    splits: tuple[SplitName, ...] | None
    """of each image; None: the source names none"""

    def __len__(self) -> int:
        """N."""
        return len(self.entries)

    @property
    def has_groups(self) -> bool:
        """Whether some image names a group."""
        return any(group is not None for group in self.groups)

    def take(self, kept: Sequence[int]) -> "Cases":
        """The cases at these positions."""
        return Cases(
            tuple(self.entries[index] for index in kept),
            self.class_names,
            self.labels[np.asarray(kept, dtype=np.int64)],
            tuple(self.groups[index] for index in kept),
            None if self.splits is None else tuple(self.splits[index] for index in kept),
        )


def read_cases(source: ImageSource, class_names: Sequence[str] | None = None) -> Cases:
    """List the labelled images of a source.

    Args:
        source: of the images.
        class_names: in the order of the logits; None: those of the images, sorted.

    Raises:
        PayloadTooLargeError: there are more than `MOST_IMAGES`.
        InvalidInputError: there is no image, one without a class, one of an unknown class, or fewer than two classes;
            or splits are given for some images only, or have unknown names.
    """
    found = islice((entry for entry in source.entries() if entry is not None), MOST_IMAGES + 1)
    entries = sorted(found, key=lambda entry: entry.name)
    if len(entries) > MOST_IMAGES:
        raise PayloadTooLargeError(f"expected at most {MOST_IMAGES} images, got more.", field=_FIELD)
    if not entries:
        raise InvalidInputError("there is no image.", field=_FIELD, hint="Give the folder of the images.")
    _check_unique(entries)
    _check_labelled(entries)
    labels = [entry.label or "" for entry in entries]
    names = tuple(sorted(set(labels)) if class_names is None else class_names)
    _check_classes(labels, names)
    index = {name: number for number, name in enumerate(names)}
    return Cases(
        tuple(entries),
        names,
        np.array([index[label] for label in labels], dtype=np.int64),
        tuple(entry.group for entry in entries),
        _given_splits(entries),
    )


def list_some(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    shown = ", ".join(printable(name) for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _check_unique(entries: Sequence[Entry]) -> None:
    repeated = [name for name, count in Counter(entry.name for entry in entries).items() if count > 1]
    if repeated:
        raise InvalidInputError(f"these images are listed twice: {list_some(repeated)}.", field=_FIELD)


def _check_labelled(entries: Sequence[Entry]) -> None:
    without = [entry.name for entry in entries if entry.label is None]
    if without:
        raise InvalidInputError(
            f"{len(without)} of {len(entries)} images have no class: {list_some(without)}.",
            field=_FIELD,
            hint="Give one sub-folder for each class, a CSV file with the column label, or a tar file with .cls files.",
        )


def _check_classes(labels: Sequence[str], names: Sequence[str]) -> None:
    unknown = sorted(set(labels) - set(names))
    if unknown:
        guess = suggest(unknown[0], list(names))
        raise InvalidInputError(
            f"these classes are not of the task: {list_some(unknown)}.",
            field=_FIELD,
            hint=f"The classes are {', '.join(names)}.{' ' + guess if guess else ''}",
        )
    missing = [name for name in names if name not in set(labels)]
    if missing:
        raise InvalidInputError(f"there is no image of {list_some(missing)}.", field=_FIELD)
    if len(names) < 2:
        raise InvalidInputError("expected images of at least two classes.", field=_FIELD)


def _given_splits(entries: Sequence[Entry]) -> tuple[SplitName, ...] | None:
    given = [entry.split for entry in entries]
    if not any(given):
        return None
    without = [entry.name for entry in entries if entry.split is None]
    if without:
        raise InvalidInputError(
            f"{len(without)} of {len(entries)} images have no split: {list_some(without)}.",
            field="split",
            hint="Name the split of all images, or of none.",
        )
    unknown = sorted({str(split) for split in given} - set(SPLITS))
    if unknown:
        raise InvalidInputError(
            f"there is no split {list_some(unknown)}.", field="split", hint=f"Splits: {', '.join(SPLITS)}."
        )
    return tuple(cast("SplitName", split) for split in given)
