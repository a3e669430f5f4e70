"""The extractor of features: fingerprints are comparable only if they share its reference."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats
from lifelong_core.values.documents import FrozenDocument
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.npz import DAMAGED_HINT, read_npz, write_npz
from lifelong_core.values.preprocessing import Preprocessing

QUANTILES = (0.05, 0.95)
"""of each feature over the reference images: the lower edge of the first bin and the upper edge of the last one"""

MOST_FEATURES = 16_384

_FIELD = "extractor"
_MOST_BYTES = 4 * MOST_FEATURES * 16


class ExtractorDocument(FrozenDocument):
    """The fields of an extractor reference that are no arrays."""

    schema_version: Literal[1] = 1
    architecture: str = Field(min_length=1, max_length=200)
    """name of a timm model; its features before the classifier are used"""
    weights: str = Field(pattern="^[0-9a-f]{64}$")
    """SHA-256 over names, types, shapes and values of the backbone's tensors, whatever the format of their file"""
    preprocessing: Preprocessing
    reference_images: Annotated[int, Field(ge=2)]
    """how many images the edges were computed on"""
    reference_names: tuple[Annotated[str, Field(min_length=1, max_length=500)], ...] = Field(
        min_length=1, max_length=100
    )
    """what these images are, such as names of public data sets"""


@dataclass(frozen=True, eq=False)
class ExtractorReference(ArrayValue):
    """Backbone, weights, preprocessing and bin edges: one file that institutions share.

    Attributes:
        document: all but the edges.
        edges: (m, 2), 5 % and 95 % quantile of each feature over the reference images; low < high.

    Raises:
        InvalidInputError: edges of another shape, not finite, or not increasing.
    """

    document: ExtractorDocument
    edges: Floats

    def __post_init__(self) -> None:
        """Check the edges and make them read-only."""
        edges = np.array(self.edges, dtype=np.float64)
        if edges.ndim != 2 or edges.shape[1] != 2 or not 1 <= len(edges) <= MOST_FEATURES:
            raise InvalidInputError(
                f"expected shape (m, 2) with m in 1..{MOST_FEATURES}, got {edges.shape}.", field="edges"
            )
        if not np.isfinite(edges).all() or not (edges[:, 0] < edges[:, 1]).all():
            raise InvalidInputError("expected finite edges, low < high for each feature.", field="edges")
        edges.flags.writeable = False
        object.__setattr__(self, "edges", edges)

    @property
    def features(self) -> int:
        """Number of features, m."""
        return len(self.edges)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over the document and the edges."""
        content = json.dumps(self.document.to_document(), sort_keys=True).encode()
        return hashlib.sha256(content + b"\n" + self.edges.astype("<f8").tobytes()).hexdigest()

    def to_bytes(self) -> bytes:
        """The reference as an npz file, equal for equal references."""
        document = np.frombuffer(self.document.to_json().encode(), dtype=np.uint8)
        return write_npz({"document": document, "edges": self.edges})

    @classmethod
    def from_bytes(cls, content: bytes) -> "ExtractorReference":
        """Return the reference that `to_bytes` wrote.

        Raises:
            InvalidInputError: not such a file, one of a newer version, or one with illegal values.
        """
        arrays = read_npz(
            content, ("document", "edges"), field=_FIELD, maximum_bytes=_MOST_BYTES, hint=DAMAGED_HINT
        )
        document, edges = arrays["document"], arrays["edges"]
        if document.dtype != np.uint8 or edges.dtype.kind != "f":
            raise InvalidInputError(
                "the npz file holds arrays of other types than an extractor reference.", field=_FIELD
            )
        return cls(ExtractorDocument.from_json(document.tobytes()), edges.astype(np.float64))


def measure_edges(features: Floats) -> Floats:
    """Bin edges, (m, 2), of the features (n, m) of reference images: their 5 % and 95 % quantiles.

    A feature whose two quantiles are equal, such as one that is always 0, gets an upper edge of 1 above.

    Raises:
        InvalidInputError: not two-dimensional, fewer than two images, or not finite.
    """
    array = np.asarray(features)
    if array.ndim != 2 or len(array) < 2 or not np.isfinite(array).all():
        raise InvalidInputError(
            f"expected finite features of at least two images, (n, m), got shape {array.shape}.",
            field="features",
        )
    edges = np.quantile(array.astype(np.float64), QUANTILES, axis=0).T
    flat = ~(edges[:, 0] < edges[:, 1])
    edges[flat, 1] = edges[flat, 0] + 1
    return edges
