"""The fingerprints that a process has read last."""

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from lifelong_core.store.artifacts import Artifacts
from lifelong_core.values.errors import NotFoundError, UnavailableError

if TYPE_CHECKING:
    from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
    from lifelong_core.develop.knowledge.stored_fingerprints import FingerprintReference

MOST_BYTES = 32 * 2**20


class FingerprintCache:
    """Reads fingerprints, and keeps at most `MOST_BYTES` of their arrays; threads may share a cache."""

    def __init__(self, artifacts: Artifacts) -> None:
        self._artifacts = artifacts
        self._lock = threading.Lock()
        self._held: OrderedDict[str, Fingerprint] = OrderedDict()
        """by artifact; the one that was used last is the last one"""
        self._bytes = 0

    def read(self, reference: "FingerprintReference") -> "Fingerprint":
        """The fingerprint of a reference.

        Raises:
            DamagedArtifactError: its bytes were changed.
            UnavailableError: it was deleted, or the artifacts do not answer.
        """
        with self._lock:
            held = self._held.get(reference.artifact)
            if held is not None:
                self._held.move_to_end(reference.artifact)
                return held
        found = self._read(reference)
        with self._lock:
            if reference.artifact not in self._held:
                self._held[reference.artifact] = found
                self._bytes += _size_of(found)
                while self._bytes > MOST_BYTES:
                    self._bytes -= _size_of(self._held.popitem(last=False)[1])
        return found

    def _read(self, reference: "FingerprintReference") -> "Fingerprint":
        from lifelong_core.develop.fingerprints.kinds import fingerprint_from_bytes

        try:
            content = self._artifacts.get(reference.artifact)
        except NotFoundError as error:
            raise UnavailableError(
                f"the file {reference.artifact} of a fingerprint of the knowledge base is missing.",
                hint="It may have been deleted a moment ago: repeat the request. If not, restore a backup.",
            ) from error
        return fingerprint_from_bytes(content)


def _size_of(fingerprint: "Fingerprint") -> int:
    """Bytes of its arrays."""
    return sum(value.nbytes for value in vars(fingerprint).values() if isinstance(value, np.ndarray))
