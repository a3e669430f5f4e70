"""Labelled logits with metadata per sample, for the validation of a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.arrays import as_column, read_only
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.errors import InvalidInputError
from lifelong_core.npz import read_npz, write_npz
from lifelong_core.values import ArrayValue

METADATA_PREFIX = "metadata_"
"""Prefix of the names of metadata arrays in an npz file."""

CURRENT = "current_logits"
"""Array of an npz file with the logits of two models: those of the model that serves now."""

MOST_KEYS = 100
_LONGEST_KEY = 100


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

    def __post_init__(self) -> None:
        """Check and freeze the metadata.

        Raises:
            InvalidInputError: a key or an array does not fit; the message names it.
        """
        if len(self.metadata) > MOST_KEYS:
            raise InvalidInputError(
                f"expected at most {MOST_KEYS} keys, got {len(self.metadata)}.", field="metadata"
            )
        arrays = {key: _column(key, values, self.labelled.samples) for key, values in self.metadata.items()}
        object.__setattr__(self, "metadata", MappingProxyType(dict(sorted(arrays.items()))))

    def to_bytes(self) -> bytes:
        """The arrays as an npz file; equal sets give equal bytes."""
        return write_npz(self.to_arrays())

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """The arrays of the file, by name."""
        labelled = self.labelled
        arrays: dict[str, NDArray[np.generic]] = {"logits": labelled.logits, "labels": labelled.labels}
        if labelled.groups is not None:
            arrays["groups"] = labelled.groups
        return arrays | {f"{METADATA_PREFIX}{key}": values for key, values in self.metadata.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """The set of the arrays of a file.

        Raises:
            InvalidInputError: an array has an illegal value.
        """
        rows: dict[str, Any] = {name: arrays.get(name) for name in ("logits", "labels", "groups")}
        metadata = {name: values for name, values in arrays.items() if name.startswith(METADATA_PREFIX)}
        return cls(
            LabeledLogits(**rows),
            {name.removeprefix(METADATA_PREFIX): values for name, values in metadata.items()},
        )

    @classmethod
    def from_bytes(cls, content: bytes, *, maximum_bytes: int | None = None) -> Self:
        """Read what `to_bytes`, or `numpy.savez(logits=..., labels=..., groups=..., metadata_KEY=...)`, wrote.

        Args:
            content: bytes of the file.
            maximum_bytes: limit of the memory of its arrays; None: no limit.

        Raises:
            PayloadTooLargeError: the file declares more than `maximum_bytes`.
            InvalidInputError: not an npz file, an array is missing or has an illegal value, or it holds the logits of
                two models.
        """
        found = read_npz(
            content,
            ("logits", "labels"),
            ("groups", CURRENT),
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
        return cls.from_arrays(found)


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
