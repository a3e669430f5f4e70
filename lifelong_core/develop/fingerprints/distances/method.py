"""The interface of all fingerprinting methods."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np

from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError

AnyFingerprint = TypeVar("AnyFingerprint", bound=Fingerprint)

_SIZES = {"extractor": "extractors", "features": "numbers of features", "bins": "numbers of bins"}


@dataclass(frozen=True)
class Method(ABC, Generic[AnyFingerprint]):
    """A distance between fingerprints of one kind.

    Attributes:
        fingerprint_type: the kind.
        is_symmetric: whether source and target can be exchanged.
        is_zero_to_itself: whether a fingerprint has distance 0 to itself, and no other one has less.
    """

    fingerprint_type: ClassVar[type[Fingerprint]]
    is_symmetric: ClassVar[bool]
    is_zero_to_itself: ClassVar[bool]

    def distance(self, source: Fingerprint, target: Fingerprint) -> float:
        """Distance of one source.

        Raises:
            InvalidInputError: a fingerprint of another kind, or of another extractor or size than the other one.
        """
        return float(self.distances([source], target)[0])

    def distances(self, sources: Sequence[Fingerprint], target: Fingerprint) -> Floats:
        """Distances of K sources, (K,); what depends on the target only is computed once.

        Raises:
            InvalidInputError: a fingerprint of another kind, or of another extractor or size than the target.
        """
        self._check(target, "target")
        for source in sources:
            self._check(source, "source")
            check_comparable(source, target)
        if not sources:
            return np.zeros(0)
        return self._distances(cast("Sequence[AnyFingerprint]", sources), cast("AnyFingerprint", target))

    def matrix(self, fingerprints: Sequence[Fingerprint]) -> Floats:
        """Distances between N fingerprints, (N, N): source, target.

        Raises:
            InvalidInputError: a fingerprint of another kind, or of another extractor or size than the others.
        """
        for fingerprint in fingerprints:
            self._check(fingerprint, "fingerprints")
            check_comparable(fingerprint, fingerprints[0])
        if not fingerprints:
            return np.zeros((0, 0))
        return self._matrix(cast("Sequence[AnyFingerprint]", fingerprints))

    def accepts(self, fingerprint: Fingerprint) -> bool:
        """Whether the method can use a fingerprint."""
        try:
            self._check(fingerprint, "fingerprint")
        except InvalidInputError:
            return False
        return True

    def _check(self, fingerprint: Fingerprint, field: str) -> None:
        """Refuse a fingerprint that the method cannot use."""
        if not isinstance(fingerprint, self.fingerprint_type):
            raise InvalidInputError(
                f"this method needs a fingerprint of kind {self.fingerprint_type.kind}, got {fingerprint.kind}.",
                field=field,
            )

    @abstractmethod
    def _distances(self, sources: Sequence[AnyFingerprint], target: AnyFingerprint) -> Floats:
        """Distances of at least one source; the fingerprints are comparable."""

    def _matrix(self, fingerprints: Sequence[AnyFingerprint]) -> Floats:
        """Distances between at least one fingerprint; they are comparable."""
        return np.stack([self._distances(fingerprints, target) for target in fingerprints], axis=1)


def comparison_key(fingerprint: Fingerprint) -> tuple[Any, ...]:
    """Kind, extractor and size: fingerprints with equal keys can be compared."""
    return (fingerprint.kind, *(getattr(fingerprint, name, None) for name in _SIZES))


def check_comparable(source: Fingerprint, target: Fingerprint) -> None:
    """Make sure that two fingerprints are of one kind, one extractor and one size.

    Raises:
        InvalidInputError: they differ in one of these.
    """
    if source.kind != target.kind:
        raise InvalidInputError(
            f"fingerprints of different kinds: {source.kind} and {target.kind}.", field="source"
        )
    for name, plural in _SIZES.items():
        ours: Any = getattr(source, name, None)
        others: Any = getattr(target, name, None)
        if ours != others:
            raise InvalidInputError(
                f"fingerprints of different {plural} cannot be compared: {ours} and {others}.",
                field="source",
                hint="Make both fingerprints with one extractor reference and equal settings.",
            )
