"""All features of a sample of images: the fingerprint of naive, MMD and EMD."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.develop.fingerprints.extractor import MOST_FEATURES, ExtractorReference
from lifelong_core.develop.fingerprints.fingerprint import (
    Arrays,
    FeatureHeader,
    Fingerprint,
    Header,
    as_features,
    as_single,
)
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError


class FeatureSetHeader(FeatureHeader):
    """Header of a `FeatureFingerprint`."""


@dataclass(frozen=True, eq=False)
class FeatureFingerprint(Fingerprint):
    """Features of each sampled image (thesis, example 5.2); not for sharing, because a row can identify its image.

    The rows are sorted, so that the order of the images does not matter.

    Raises:
        InvalidInputError: a field has an illegal value, or there are not `samples` rows.
    """

    kind: ClassVar[str] = "features"
    is_shareable: ClassVar[bool] = False
    header_type: ClassVar[type[Header]] = FeatureSetHeader
    array_types: ClassVar[Mapping[str, str]] = {"rows": "f"}

    extractor: str
    """digest of the extractor reference"""
    samples: int
    """number of images, n"""
    rows: Floats
    """(n, m)"""
    seed: int = 0
    """of the sampling of the images"""

    def __post_init__(self) -> None:
        """Check the fields, sort the rows and make them read-only."""
        self._header()
        shape = np.shape(self.rows)
        if len(shape) != 2 or shape[0] != self.samples or not 1 <= shape[1] <= MOST_FEATURES:
            raise InvalidInputError(
                f"expected shape ({self.samples}, m) with m in 1..{MOST_FEATURES}, got {shape}.", field="rows"
            )
        rows = as_single(self.rows, (shape[0], shape[1]), field="rows")
        rows = rows[np.lexsort(rows.T[::-1])]
        rows.setflags(write=False)
        object.__setattr__(self, "rows", rows)

    @property
    def features(self) -> int:
        """Number of features, m."""
        return self.rows.shape[1]

    def _arrays(self) -> Arrays:
        return {"rows": self.rows.astype(np.float32)}

    @classmethod
    def from_parts(cls, header: FeatureSetHeader, arrays: Any) -> Self:
        """Return the fingerprint of a checked header and the arrays of the file."""
        return cls(header.extractor, header.samples, arrays["rows"], header.seed)


def make_feature_fingerprint(
    features: ArrayLike, extractor: ExtractorReference, *, seed: int = 0
) -> FeatureFingerprint:
    """Fingerprint of all features, (n, m).

    Raises:
        InvalidInputError: another shape, or a value that is not finite.
    """
    rows = as_features(features, features=extractor.features)
    return FeatureFingerprint(extractor.digest, len(rows), rows, seed)
