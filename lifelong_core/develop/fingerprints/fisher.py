"""The fingerprint of FED, the diagonal of the Fisher information; and that of Manual, keywords of a description."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field

from lifelong_core.develop.fingerprints.fingerprint import (
    Arrays,
    FeatureHeader,
    Fingerprint,
    Header,
    as_single,
)
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError


class FisherHeader(FeatureHeader):
    """Header of a `FisherFingerprint`."""


@dataclass(frozen=True, eq=False)
class FisherFingerprint(Fingerprint):
    """The Fisher embedding of a task (thesis, definition 5.10), with one entry for each group of weights.

    Raises:
        InvalidInputError: a field has an illegal value, an entry is negative, or all are zero.
    """

    kind: ClassVar[str] = "fisher"
    header_type: ClassVar[type[Header]] = FisherHeader
    array_types: ClassVar[Mapping[str, str]] = {"embedding": "f"}

    extractor: str
    """digest of the extractor reference, whose backbone was differentiated"""
    samples: int
    """number of images, n"""
    embedding: Floats
    """(k,), not negative"""
    seed: int = 0
    """of the sampling of the images and of the fit of the head"""

    def __post_init__(self) -> None:
        """Check the fields and make the array read-only."""
        self._header()
        embedding = as_single(self.embedding, (np.size(self.embedding),), field="embedding")
        if not embedding.size or embedding.min() < 0 or not embedding.any():
            raise InvalidInputError(
                "expected entries that are not negative, at least one above 0.", field="embedding"
            )
        object.__setattr__(self, "embedding", embedding)

    @property
    def features(self) -> int:
        """Number of entries, k."""
        return self.embedding.size

    def _arrays(self) -> Arrays:
        return {"embedding": self.embedding.astype(np.float32)}

    @classmethod
    def from_parts(cls, header: FisherHeader, arrays: Any) -> Self:
        """Return the fingerprint of a checked header and the arrays of the file."""
        return cls(header.extractor, header.samples, arrays["embedding"], header.seed)


class KeywordHeader(Header):
    """Header of a `KeywordFingerprint`."""

    keywords: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(
        min_length=1, max_length=100
    )


@dataclass(frozen=True, eq=False)
class KeywordFingerprint(Fingerprint):
    """Keywords of a task (thesis, definition 5.18) in small letters, sorted, each once; it needs no image.

    Examples:
        >>> KeywordFingerprint(("Laparoscopy", "gynecology ", "laparoscopy")).keywords
        ('gynecology', 'laparoscopy')

    Raises:
        InvalidInputError: no keyword, one that is empty or too long, or too many.
    """

    kind: ClassVar[str] = "keywords"
    header_type: ClassVar[type[Header]] = KeywordHeader
    array_types: ClassVar[Mapping[str, str]] = {}

    keywords: tuple[str, ...]

    def __post_init__(self) -> None:
        """Bring the keywords into one form and check them."""
        plain = {keyword.strip().casefold() for keyword in self.keywords}
        object.__setattr__(self, "keywords", tuple(sorted(plain)))
        self._header()

    def _arrays(self) -> Arrays:
        return {}

    @classmethod
    def from_parts(cls, header: KeywordHeader, arrays: Any) -> Self:  # noqa: ARG003 # it has none
        """Return the fingerprint of a checked header and the arrays of the file."""
        return cls(header.keywords)
