"""Labelled logits, such as a calibration set: class means, independent cases and folds."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy.numerics.newton import one_hot
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import (
    MANY_CLASSES,
    Floats,
    Integers,
    Logits,
    Mask,
    as_groups,
    as_labels,
    as_logits,
    read_labels,
    read_only,
)
from lifelong_core.values.errors import InvalidInputError, UnidentifiableError
from lifelong_core.values.npz import array_digest, read_npz, write_npz

_DIGEST = "preprocessing_digest"
_DIGEST_FORM = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, eq=False)
class LabeledLogits(ArrayValue):
    """Raw network outputs with their true classes, e.g. the calibration set held back at development.

    Examples:
        >>> data = LabeledLogits([[2.0, 0.0], [0.5, 1.0], [3.0, -1.0]], [0, 1, 0])
        >>> data.samples, data.classes, data.prevalence.round(3).tolist()
        (3, 2, [0.667, 0.333])
        >>> LabeledLogits.from_bytes(data.to_bytes()) == data
        True
    """

    logits: Logits
    """shape (N, C), finite float32, N >= 1"""
    labels: Integers
    """shape (N,), classes 0..C-1"""
    groups: NDArray[np.generic] | None = None
    """shape (N,): samples of one group (patient, study) depend on each other; None: all independent"""
    preprocessing_digest: str | None = None
    """how the images of these logits were decoded and preprocessed (`images.preprocessing_digest`); None: unknown"""

    def __post_init__(self) -> None:
        """Check and freeze the arrays.

        Raises:
            InvalidInputError: a shape or a value does not fit; the message names the field.
        """
        logits = as_logits(self.logits)
        labels = as_labels(self.labels, classes=logits.shape[1])
        if labels.shape[0] != logits.shape[0]:
            raise InvalidInputError(
                f"expected one label per row of logits ({logits.shape[0]}), got {labels.shape[0]}.",
                field="labels",
            )
        if labels.size == 0:
            raise InvalidInputError("expected at least one sample.", field="logits")
        groups = as_groups(self.groups, samples=labels.size)
        _check_digest(self.preprocessing_digest)
        object.__setattr__(self, "logits", read_only(logits.copy()))
        object.__setattr__(self, "labels", read_only(labels.copy()))
        object.__setattr__(self, "groups", None if groups is None else read_only(groups.copy()))

    @property
    def samples(self) -> int:
        """Number of samples N."""
        return self.logits.shape[0]

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.logits.shape[1]

    @property
    def counts(self) -> Integers:
        """Number of samples of each class, shape (C,)."""
        return np.bincount(self.labels, minlength=self.classes).astype(np.int64)

    @property
    def prevalence(self) -> Floats:
        """Share of each class, shape (C,)."""
        return self.counts / self.samples

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over logits, labels and groups, whatever their preprocessing."""
        return array_digest(self._arrays())

    def select(self, rows: Integers | Mask) -> Self:
        """The samples at these indices (or where this mask is true)."""
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, logits=self.logits[rows], labels=self.labels[rows], groups=groups)

    def to_bytes(self, class_names: Sequence[str] | None = None) -> bytes:
        """The set as an npz file (`numpy.load` reads it), with names as labels if given; equal sets, equal bytes."""
        arrays = self._arrays()
        if class_names is not None:
            arrays["labels"] = np.array(class_names)[self.labels]
        if self.preprocessing_digest is not None:
            arrays[_DIGEST] = np.array(self.preprocessing_digest)
        return write_npz(arrays)

    @classmethod
    def from_bytes(
        cls, content: bytes, *, maximum_bytes: int | None = None, class_names: Sequence[str] | None = None
    ) -> Self:
        """Read what `to_bytes`, or `numpy.savez(logits=..., labels=..., groups=...)`, wrote.

        Args:
            content: bytes of the file.
            maximum_bytes: limit of the memory of its arrays; None: no limit.
            class_names: by which labels are read, see `read_labels`; None: they are indices.

        Raises:
            PayloadTooLargeError: the file declares more than `maximum_bytes`.
            InvalidInputError: not an npz file, an array is missing or has an illegal value.
        """
        found = read_npz(
            content,
            ("logits", "labels"),
            ("groups", _DIGEST),
            field="calibration_set",
            maximum_bytes=maximum_bytes,
        )
        logits = cast("Logits", found["logits"])
        labels = cast("Integers", read_labels(found["labels"], class_names))
        digest = found.get(_DIGEST)
        return cls(logits, labels, found.get("groups"), None if digest is None else _text_of(digest))

    def _arrays(self) -> dict[str, NDArray[np.generic]]:
        # Little-endian whatever the machine or the caller's arrays were: digests and bytes travel.
        arrays: dict[str, NDArray[np.generic]] = {
            "logits": self.logits.astype("<f4", copy=False),
            "labels": self.labels.astype("<i8", copy=False),
        }
        if self.groups is not None:
            arrays["groups"] = self.groups.astype(self.groups.dtype.newbyteorder("<"), copy=False)
        return arrays


def _text_of(array: NDArray[np.generic]) -> str:
    """The only element of an array of text; else a text that is no digest."""
    return str(array.item()) if array.dtype.kind == "U" and array.size == 1 else ""


def _check_digest(digest: str | None) -> None:
    if digest is not None and _DIGEST_FORM.fullmatch(digest) is None:
        raise InvalidInputError(
            "expected 64 hexadecimal digits in lower case.",
            field=_DIGEST,
            hint="Leave it out if it is not known how the images were preprocessed.",
        )


def check_every_class(data: LabeledLogits) -> None:
    """Check that every class has a sample.

    Raises:
        UnidentifiableError: a class has no sample.
    """
    absent = data.counts == 0
    if absent.any():
        raise UnidentifiableError(
            f"class {int(np.argmax(absent))} has no calibration sample.",
            field="calibration",
            hint="Add labelled samples of this class.",
        )


def class_means(features: Floats, data: LabeledLogits) -> Floats:
    """Mean feature of each class, shape (F, C): column k belongs to class k; every class has a sample.

    Args:
        features: of the samples, shape (N, F).
        data: the samples.
    """
    if data.classes <= MANY_CLASSES:
        return features.T @ (one_hot(data.labels, data.classes) / data.counts)
    order = np.argsort(data.labels, kind="stable")
    sums = np.add.reduceat(features[order], np.cumsum(data.counts) - data.counts, axis=0)
    return (sums.T / data.counts).reshape(*features.shape[1:], data.classes)


def independent_cases(data: LabeledLogits) -> Integers:
    """Samples of each class, shape (C,); samples of one class and one group count once."""
    if data.groups is None:
        return data.counts
    _, member = np.unique(data.groups, return_inverse=True)
    pairs = np.unique(np.column_stack([data.labels, member]), axis=0)
    return np.bincount(pairs[:, 0], minlength=data.classes).astype(np.int64)


def stratified_folds(data: LabeledLogits, count: int) -> Integers:
    """Fold of each sample, 0..count-1 or fewer, shape (N,); the rest of every fold has samples of every class.

    Samples, or whole groups where the data have them, go to the folds class by class in their order. All samples are in
    fold 0, which means that cross-fitting is impossible, where a class has one sample or one fold would contain all
    samples of a class.
    """
    folds = np.zeros(data.samples, dtype=np.int64)
    if data.groups is None:
        usable = min(count, int(data.counts.min()))
        for k in range(data.classes):
            rows = np.flatnonzero(data.labels == k)
            folds[rows] = np.arange(rows.size) % usable
        return folds
    _, first, member = np.unique(data.groups, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    folds = rank[member] % count
    table = np.zeros((count, data.classes), dtype=np.int64)
    np.add.at(table, (folds, data.labels), 1)
    return np.zeros(data.samples, dtype=np.int64) if (table == data.counts).any() else folds


def crossfitting_folds(data: LabeledLogits, count: int = 5) -> Integers:
    """Folds like `stratified_folds`, with the largest number of folds, at most `count`, that the groups allow; shape
    (N,).
    """
    for tried in range(count, 1, -1):
        folds = stratified_folds(data, tried)
        if folds.any():
            return folds
    return np.zeros(data.samples, dtype=np.int64)
