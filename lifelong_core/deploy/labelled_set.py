"""Labelled logits with metadata and uncertainties per sample, for the validation of a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import (
    Floats,
    Logits,
    as_column,
    as_logits,
    read_labels,
    read_only,
    with_both_columns,
)
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.mistaken_probabilities import expect_logits
from lifelong_core.values.npz import read_npz, write_npz
from lifelong_core.values.uncertainties import MOST_MEMBERS, as_uncertainties, check_members

METADATA_PREFIX = "metadata_"
"""Prefix of the names of metadata arrays in an npz file."""

CURRENT = "current_logits"
"""Array of an npz file with the logits of two models: those of the model that serves now."""

MOST_KEYS = 100
_LONGEST_KEY = 100

MEMBER_PREFIX = "logits_"
MEMBER_NAMES = tuple(f"{MEMBER_PREFIX}{number}" for number in range(MOST_MEMBERS + 2))
"""Names of the arrays of members in an npz file, with one below and one above those that are allowed, to refuse them"""


@dataclass(frozen=True, eq=False)
class LabelledSet(ArrayValue):
    """Labelled logits with metadata per sample; reports use the metadata for subgroups.

    Examples:
        >>> labelled = LabeledLogits([[2.0, 0.0], [0.5, 1.0]], [0, 1])
        >>> data = LabelledSet(labelled, {"scanner": ["A", "B"]})
        >>> data.metadata["scanner"].tolist()
        ['A', 'B']
        >>> LabelledSet.from_bytes(data.to_bytes()) == data
        True
    """

    labelled: LabeledLogits
    metadata: Mapping[str, NDArray[np.generic]] = field(default_factory=dict[str, NDArray[np.generic]])
    """by key, shape (N,): strings, numbers or booleans; any array of that shape"""
    uncertainties: Floats | None = None
    """shape (N,), predicted uncertainty of each sample, not negative"""
    members: Logits | None = None
    """shape (M, N, C), logits of the same samples by several models, dropout draws or augmentations, whose spread is
    the uncertainty"""

    def __post_init__(self) -> None:
        """Check and freeze metadata, uncertainties and members.

        Raises:
            InvalidInputError: a key or an array does not fit; the message names it.
        """
        if len(self.metadata) > MOST_KEYS:
            raise InvalidInputError(
                f"expected at most {MOST_KEYS} keys, got {len(self.metadata)}.", field="metadata"
            )
        arrays = {key: _column(key, values, self.labelled.samples) for key, values in self.metadata.items()}
        object.__setattr__(self, "metadata", MappingProxyType(dict(sorted(arrays.items()))))
        if self.uncertainties is not None and self.members is not None:
            raise InvalidInputError(
                "uncertainties and members were both given.", field="uncertainties", hint="Give one of them."
            )
        if self.uncertainties is not None:
            values = as_uncertainties(self.uncertainties, samples=self.labelled.samples)
            object.__setattr__(self, "uncertainties", read_only(values.copy()))
        if self.members is not None:
            rows, classes = self.labelled.logits.shape
            members = as_members(list(self.members), samples=rows, classes=classes)
            object.__setattr__(self, "members", read_only(members))

    def to_bytes(self) -> bytes:
        """The arrays as an npz file; equal sets give equal bytes."""
        return write_npz(self.to_arrays())

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """The arrays of the file, by name."""
        labelled = self.labelled
        arrays: dict[str, NDArray[np.generic]] = {"logits": labelled.logits, "labels": labelled.labels}
        if labelled.groups is not None:
            arrays["groups"] = labelled.groups
        if self.uncertainties is not None:
            arrays["uncertainties"] = self.uncertainties
        if self.members is not None:
            arrays |= {f"{MEMBER_PREFIX}{place}": one for place, one in enumerate(self.members, start=1)}
        return arrays | {f"{METADATA_PREFIX}{key}": values for key, values in self.metadata.items()}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[np.generic]], class_names: Sequence[str] | None = None
    ) -> Self:
        """The set of the arrays of a file; labels by the rule of `read_labels`.

        Raises:
            InvalidInputError: an array has an illegal value.
        """
        given: Mapping[str, Any] = arrays
        rows: dict[str, Any] = {name: given.get(name) for name in ("logits", "groups")}
        rows["labels"] = read_labels(arrays["labels"], class_names)
        metadata = {name: values for name, values in arrays.items() if name.startswith(METADATA_PREFIX)}
        return cls(
            LabeledLogits(**rows),
            {name.removeprefix(METADATA_PREFIX): values for name, values in metadata.items()},
            given.get("uncertainties"),
            cast("Logits | None", take_members(arrays) or None),
        )

    @classmethod
    def from_bytes(
        cls, content: bytes, *, maximum_bytes: int | None = None, class_names: Sequence[str] | None = None
    ) -> Self:
        """Read what `to_bytes`, or `numpy.savez(logits=..., labels=..., groups=..., metadata_KEY=...)`, wrote.

        Uncertainties are the array `uncertainties`; those of members are `logits_1`, `logits_2`, ...

        Args:
            content: bytes of the file.
            maximum_bytes: limit of the memory of its arrays; None: no limit.
            class_names: by which labels are read, see `read_labels`; None: they are indices.

        Raises:
            PayloadTooLargeError: the file declares more than `maximum_bytes`.
            InvalidInputError: not an npz file, an array is missing or has an illegal value, or it holds the logits of
                two models.
        """
        found = read_npz(
            content,
            ("logits", "labels"),
            ("groups", CURRENT, "uncertainties", *MEMBER_NAMES),
            prefix=METADATA_PREFIX,
            field="labelled_set",
            maximum_bytes=maximum_bytes,
        )
        if CURRENT in found:
            raise InvalidInputError(
                "the file holds the logits of two models, which a promotion report compares.",
                field=CURRENT,
                hint="Compare them: `lifelong models report`. To validate one model, give its logits only.",
            )
        return cls.from_arrays(found, class_names)


def _column(key: str, values: ArrayLike, samples: int) -> NDArray[np.generic]:
    name = f"metadata.{key[:_LONGEST_KEY]}"
    if not 0 < len(key) <= _LONGEST_KEY or not key.isprintable():
        raise InvalidInputError(
            f"expected a key of 1 to {_LONGEST_KEY} printable characters, got {key[:_LONGEST_KEY]!r}.",
            field="metadata",
        )
    array = as_column(values, samples=samples, field=name).copy()
    if array.dtype.kind not in "biufUS":
        raise InvalidInputError(
            f"expected strings, numbers or booleans, got values of type {array.dtype}.",
            field=name,
            hint="Convert them, e.g. with astype(str).",
        )
    return read_only(array)


def take_members(arrays: Mapping[str, NDArray[np.generic]]) -> tuple[NDArray[np.generic], ...]:
    """The arrays logits_1, logits_2, ... of a file, in their order; empty without any.

    Raises:
        InvalidInputError: the numbers do not begin with 1 or leave one out, there are too many, or one has a single
            column where the others have one per class.

    Examples:
        >>> rows = np.eye(2)
        >>> [array.tolist() for array in take_members({"logits_2": -rows, "logits_1": 2 * rows})]
        [[[2.0, 0.0], [0.0, 2.0]], [[-1.0, -0.0], [-0.0, -1.0]]]
    """
    found = [name for name in MEMBER_NAMES if name in arrays]
    if len(found) > MOST_MEMBERS:
        check_members(len(found))
    for place, name in enumerate(found, start=1):
        if name != f"{MEMBER_PREFIX}{place}":
            raise InvalidInputError(
                f"the members of the file are not numbered from 1: there is {name}, but no {MEMBER_PREFIX}{place}.",
                field=name,
            )
        # A single column is the logit of the positive class; beside two columns it is more likely one of them.
        if _has_one_column(arrays[name]) != _has_one_column(arrays.get("logits", arrays[found[0]])):
            raise InvalidInputError(
                f"expected as many columns as the other arrays of logits have, got shape {arrays[name].shape}.",
                field=name,
            )
    return tuple(arrays[name] for name in found)


def _has_one_column(array: NDArray[np.generic]) -> bool:
    return array.ndim < 2 or array.shape[1] == 1


def as_members(members: Sequence[ArrayLike], *, samples: int, classes: int) -> Logits:
    """Checked logits of the members, shape (M, N, C).

    Raises:
        InvalidInputError: there is one or too many, one has another shape or a value that is not finite, one holds
            probabilities, or all are the same.
    """
    check_members(len(members))
    found = np.stack(
        [_member(values, place, samples, classes) for place, values in enumerate(members, start=1)]
    )
    if (found == found[0]).all():
        raise InvalidInputError(
            "all members are equal, so they give no uncertainty.",
            field="members",
            hint="Members must differ, for example in their training, dropout or augmentation.",
        )
    return found


def _member(values: ArrayLike, place: int, samples: int, classes: int) -> Logits:
    field = f"{MEMBER_PREFIX}{place}"
    try:
        array = with_both_columns(np.asarray(values))
    except ValueError as error:
        raise InvalidInputError("expected rows of equal length.", field=field) from error
    if array.shape != (samples, classes):
        raise InvalidInputError(
            f"expected shape ({samples}, {classes}), as for the logits, got {array.shape}.",
            field=field,
            hint="Give the logits of the same samples, in the same order, for every member.",
        )
    logits = as_logits(array, field=field)
    expect_logits(logits, field=field)
    return logits
