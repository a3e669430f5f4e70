"""Labelled logits of two models on the same samples, for their comparison."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy.labelled_set import CURRENT, METADATA_PREFIX, LabelledSet
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Logits, as_logits, read_only
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.npz import read_npz, write_npz

MODELS = "models"
"""Array of an npz file: references of both models."""
LONGEST_NAME = 200
"""Characters of the name of a sample."""


@dataclass(frozen=True, eq=False)
class PairedSet(ArrayValue):
    """A labelled set of a new model, with the current model's logits of the same samples.

    Examples:
        >>> from lifelong_core.deploy.labeled import LabeledLogits
        >>> new = LabelledSet(LabeledLogits([[2.0, 0.0], [0.5, 1.0]], [0, 1]))
        >>> both = PairedSet(new, np.array([[1.0, 0.0], [1.0, 0.5]], np.float32), np.array(["a.png", "b.png"]))
        >>> PairedSet.from_bytes(both.to_bytes()) == both
        True
    """

    new: LabelledSet
    current_logits: Logits
    """shape (N, C)"""
    names: NDArray[np.str_] | None = None
    """shape (N,), names of the samples, such as files"""
    models: tuple[str, str] | None = None
    """references of the new and the current model; None: not known"""

    def __post_init__(self) -> None:
        """Check and freeze the arrays.

        Raises:
            InvalidInputError: a shape or a value does not fit; the field names the array.
        """
        expected = self.new.labelled.logits.shape
        logits = as_logits(self.current_logits, field=CURRENT)
        if logits.shape != expected:
            raise InvalidInputError(
                f"expected the shape {expected} of the new model's logits, got {logits.shape}.", field=CURRENT
            )
        object.__setattr__(self, "current_logits", read_only(logits.copy()))
        if self.names is not None:
            object.__setattr__(self, "names", _names(self.names, expected[0]))
        if self.models is not None:
            object.__setattr__(self, "models", _models(self.models))

    def to_bytes(self) -> bytes:
        """The arrays as an npz file; equal sets give equal bytes."""
        models = None if self.models is None else np.array(self.models)
        optional = {"names": self.names, MODELS: models}
        given = {name: array for name, array in optional.items() if array is not None}
        return write_npz({**self.new.to_arrays(), CURRENT: self.current_logits, **given})

    @classmethod
    def from_bytes(
        cls, content: bytes, *, maximum_bytes: int | None = None, class_names: Sequence[str] | None = None
    ) -> Self:
        """Read what `to_bytes`, or `numpy.savez(logits=..., current_logits=..., labels=..., ...)`, wrote.

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
            ("logits", CURRENT, "labels"),
            ("groups", "names", MODELS),
            prefix=METADATA_PREFIX,
            field="labelled_set",
            maximum_bytes=maximum_bytes,
        )
        current: Any = found[CURRENT]
        names: Any = found.get("names")
        models: Any = found.get(MODELS)
        return cls(LabelledSet.from_arrays(found, class_names), current, names, models)


def _names(given: Any, samples: int) -> NDArray[np.str_]:
    names = _texts(given, samples, field="names")
    if names.dtype.itemsize > 4 * LONGEST_NAME:
        raise InvalidInputError(f"expected names of at most {LONGEST_NAME} characters.", field="names")
    return read_only(names)


def _models(given: Any) -> tuple[str, str]:
    new, current = _texts(given, 2, field=MODELS).tolist()
    return new, current


def _texts(given: Any, count: int, *, field: str) -> NDArray[np.str_]:
    """An array (count,) of texts that UTF-8 can hold, as reports are written in it."""
    found = np.asarray(given)
    if found.shape != (count,) or found.dtype.kind not in "US":
        raise InvalidInputError(f"expected {count} texts.", field=field)
    try:
        texts = found.astype(np.str_)
        "".join(texts.tolist()).encode()
    except (ValueError, SystemError) as error:
        # Bytes beyond ASCII, halves of characters, and numbers that are no character (a SystemError).
        raise InvalidInputError(
            "expected texts of Unicode characters.",
            field=field,
            hint="Decode bytes first: names.decode('utf-8').",
        ) from error
    return texts
