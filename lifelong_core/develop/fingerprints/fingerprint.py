"""What all kinds of fingerprints share: a file format with a schema version, and a digest."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, Field

from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats
from lifelong_core.values.documents import FrozenDocument
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.npz import DAMAGED_HINT, array_digest, read_npz, write_npz
from lifelong_core.values.validation_errors import read_json

SCHEMA_VERSION = 1

MOST_BYTES = 256 * 2**20
"""Default limit of the memory that the arrays of a file may take, at 8 bytes for each number."""

_FIELD = "fingerprint"
_HEADER = "header"

Arrays: TypeAlias = dict[str, NDArray[np.generic]]


class Header(FrozenDocument):
    """The fields of a fingerprint that are no arrays."""

    schema_version: Literal[1] = 1
    kind: str


class FeatureHeader(Header):
    """Fields common to all fingerprints that are computed by a feature extractor."""

    extractor: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    samples: Annotated[int, Field(ge=1, lt=2**31)]
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


class _Envelope(BaseModel):
    """The part of a header that every version has."""

    schema_version: int
    kind: str


class Fingerprint(ArrayValue, ABC):
    """A task embedding (thesis, definition 5.1): an immutable value; equal ones have equal files and digests.

    Each subclass is a frozen dataclass; its fields are those of its header and its arrays.
    """

    kind: ClassVar[str]
    is_shareable: ClassVar[bool] = True
    """False: it holds features of single images, which can identify them"""
    header_type: ClassVar[type[Header]]
    array_types: ClassVar[Mapping[str, str]]
    """by name of an array of the file, its kind of numbers: u (unsigned) or f (floating point)"""

    @abstractmethod
    def _arrays(self) -> Arrays:
        """The arrays of the file."""

    @classmethod
    @abstractmethod
    def from_parts(cls, header: Any, arrays: Any) -> Self:
        """Return the fingerprint of a checked header and arrays of the right names and kinds of numbers."""

    def _header(self) -> Header:
        """The header, checked.

        Raises:
            InvalidInputError: a field has an illegal value.
        """
        names = self.header_type.model_fields.keys() - {"schema_version", "kind"}
        return self.header_type.from_document(
            {"kind": self.kind, **{name: getattr(self, name) for name in names}}
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over all fields; it does not depend on the compression of a file."""
        return array_digest(self._content())

    def to_bytes(self) -> bytes:
        """The fingerprint as a compressed npz file, equal for equal fingerprints."""
        return write_npz(self._content())

    def _content(self) -> Arrays:
        header = np.frombuffer(self._header().to_json().encode(), dtype=np.uint8)
        return {_HEADER: header, **self._arrays()}

    @classmethod
    def from_bytes(cls, content: bytes, *, maximum_bytes: int = MOST_BYTES) -> Self:
        """Return the fingerprint that `to_bytes` wrote.

        Args:
            content: bytes of the file.
            maximum_bytes: limit of the memory of its arrays.

        Raises:
            PayloadTooLargeError: the file declares more than `maximum_bytes`.
            InvalidInputError: no such file, one of another kind or of a newer version, or one with illegal values.
        """
        return read_fingerprint(content, {cls.kind: cls}, maximum_bytes=maximum_bytes)


def read_fingerprint(
    content: bytes, kinds: Mapping[str, type[Any]], *, maximum_bytes: int = MOST_BYTES
) -> Any:
    """Return the fingerprint in a file, of one of the given kinds.

    Raises:
        PayloadTooLargeError: the file declares more than `maximum_bytes`.
        InvalidInputError: no such file, one of another kind or of a newer version, or one with illegal values.
    """
    arrays = read_npz(
        content, [_HEADER], prefix="", field=_FIELD, maximum_bytes=maximum_bytes, hint=DAMAGED_HINT
    )
    text = arrays.pop(_HEADER)
    if text.dtype != np.uint8 or text.ndim != 1:
        raise InvalidInputError("the header is no text.", field=_FIELD)
    envelope = read_json(_Envelope, text.tobytes())
    if envelope.schema_version > SCHEMA_VERSION:
        raise InvalidInputError(
            f"the file has schema version {envelope.schema_version}, this program reads {SCHEMA_VERSION}.",
            field=_FIELD,
            hint="Update lifelong.",
        )
    if envelope.kind not in kinds:
        raise InvalidInputError(
            f"expected a fingerprint of kind {' or '.join(kinds)}, got {envelope.kind[:80]!r}.", field=_FIELD
        )
    kind = cast("type[Fingerprint]", kinds[envelope.kind])
    expected = kind.array_types
    found = {name: array.dtype.kind for name, array in arrays.items()}
    if found != expected:
        raise InvalidInputError(
            f"expected the arrays {dict(expected)} (kinds of numbers), got {str(found)[:200]}.", field=_FIELD
        )
    return kind.from_parts(read_json(kind.header_type, text.tobytes()), arrays)


def as_features(values: ArrayLike, *, features: int | None = None, field: str = "features") -> Floats:
    """Features of images, shape (n, m) with n, m >= 1, as float64; finite as float32.

    Raises:
        InvalidInputError: another shape, not numbers, or a value that is not a finite float32.
    """
    array = _as_numbers(values, field)
    if array.ndim != 2 or not array.size or (features is not None and array.shape[1] != features):
        raise InvalidInputError(
            f"expected shape (n, {features or 'm'}), one row per image, got {array.shape}.", field=field
        )
    finite = (np.abs(array) <= np.finfo(np.float32).max).all(axis=1)
    if not finite.all():
        raise InvalidInputError(
            f"row {int(np.argmin(finite))} holds a value that is not a finite float32.",
            field=field,
            hint="Leave out images for which the extractor gave NaN or infinity.",
        )
    return array


def as_single(values: ArrayLike, shape: tuple[int, ...], *, field: str) -> Floats:
    """Finite numbers of this shape, rounded to float32 as they are stored, as read-only float64.

    Raises:
        InvalidInputError: another shape, not numbers, or a value that is not a finite float32.
    """
    array = _as_numbers(values, field)
    if array.shape != shape:
        raise InvalidInputError(f"expected shape {shape}, got {array.shape}.", field=field)
    if not (np.abs(array) <= np.finfo(np.float32).max).all():
        raise InvalidInputError("expected finite numbers (float32).", field=field)
    rounded = array.astype(np.float32).astype(np.float64)
    rounded.setflags(write=False)
    return rounded


def _as_numbers(values: ArrayLike, field: str) -> Floats:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise InvalidInputError(f"expected numbers, got values of type {array.dtype}.", field=field)
    return array.astype(np.float64)
