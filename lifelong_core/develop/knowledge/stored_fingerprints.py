"""Fingerprints of tasks, read when a comparison needs them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.values.errors import UnavailableError

Slot: TypeAlias = tuple[str, str | None, int | None]
"""Kind, extractor and number of bins of a fingerprint; None: it has none."""


@dataclass(frozen=True)
class FingerprintReference:
    """Facts of a stored fingerprint that are known without reading it."""

    artifact: str
    """digest of its file"""
    digest: str
    """of its values"""
    kind: str
    extractor: str | None
    bins: int | None


class StoredFingerprints(Mapping[str, tuple[Fingerprint, ...]]):
    """Fingerprints by task; a look-up reads those of one task.

    Attributes:
        references: by task; tasks without fingerprints are left out.
        read: gives the fingerprint of a reference.
        most_at_once: largest number that `select` reads; None: unlimited.
    """

    def __init__(
        self,
        references: Mapping[str, tuple[FingerprintReference, ...]],
        read: Callable[[FingerprintReference], Fingerprint],
        *,
        most_at_once: int | None = None,
    ) -> None:
        self.references = MappingProxyType(dict(references))
        self.read = read
        self.most_at_once = most_at_once

    def __getitem__(self, task: str) -> tuple[Fingerprint, ...]:
        return tuple(map(self.read, self.references[task]))

    def __contains__(self, task: object) -> bool:
        return task in self.references

    def __iter__(self) -> Iterator[str]:
        return iter(self.references)

    def __len__(self) -> int:
        return len(self.references)

    def select(
        self, tasks: Iterable[str], fits: Callable[[Slot], bool]
    ) -> dict[str, tuple[Fingerprint, ...]]:
        """As `select_fingerprints`.

        Raises:
            UnavailableError: these are more than `most_at_once`.
        """
        found = _select(self.references, tasks, fits)
        count = sum(map(len, found.values()))
        if self.most_at_once is not None and count > self.most_at_once:
            raise UnavailableError(
                f"{count} fingerprints would be read for these distances, at most {self.most_at_once} are.",
                hint="A monitor on this host makes the index by which they are not read (job `rank`; for bKLD, JSD"
                " and VDNA). On the host, `lifelong neighbours` makes it too, and takes any number.",
            )
        return {task: tuple(map(self.read, held)) for task, held in found.items()}


def select_fingerprints(
    fingerprints: Mapping[str, tuple[Fingerprint, ...]], tasks: Iterable[str], fits: Callable[[Slot], bool]
) -> dict[str, tuple[Fingerprint, ...]]:
    """The fingerprints of these tasks that fit, and no task without any; others are not read.

    Raises:
        UnavailableError: these are more than a serving process reads.
    """
    if isinstance(fingerprints, StoredFingerprints):
        return fingerprints.select(tasks, fits)
    return _select(fingerprints, tasks, fits)


def slot_of(fingerprint: Fingerprint | FingerprintReference) -> Slot:
    """Kind, extractor and number of bins."""
    return fingerprint.kind, getattr(fingerprint, "extractor", None), getattr(fingerprint, "bins", None)


def _select(
    held: Mapping[str, tuple[Any, ...]], tasks: Iterable[str], fits: Callable[[Slot], bool]
) -> dict[str, tuple[Any, ...]]:
    fitting = {task: tuple(one for one in held.get(task, ()) if fits(slot_of(one))) for task in tasks}
    return {task: found for task, found in fitting.items() if found}
