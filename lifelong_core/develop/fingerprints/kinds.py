"""A fingerprint of any kind from its file."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from lifelong_core.develop.fingerprints.feature_set import FeatureFingerprint
from lifelong_core.develop.fingerprints.fingerprint import MOST_BYTES, Fingerprint, read_fingerprint
from lifelong_core.develop.fingerprints.fisher import FisherFingerprint, KeywordFingerprint
from lifelong_core.develop.fingerprints.gaussian import GaussianFingerprint
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint

KINDS: Mapping[str, type[Fingerprint]] = MappingProxyType(
    {
        kind.kind: kind
        for kind in (
            HistogramFingerprint,
            GaussianFingerprint,
            FeatureFingerprint,
            FisherFingerprint,
            KeywordFingerprint,
        )
    }
)


def fingerprint_from_bytes(content: bytes, *, maximum_bytes: int = MOST_BYTES) -> Fingerprint:
    """Return the fingerprint of any kind that `to_bytes` wrote.

    Raises:
        PayloadTooLargeError: the arrays of the file would take more than `maximum_bytes` of memory.
        InvalidInputError: no such file, one of a newer version, or one with illegal values.
    """
    return cast("Fingerprint", read_fingerprint(content, KINDS, maximum_bytes=maximum_bytes))
