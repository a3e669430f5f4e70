"""The query indexes of all histogram fingerprints of a knowledge base."""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast

from lifelong_core.develop.fingerprints.distances.binned_kld import BinnedKLD, JensenShannon
from lifelong_core.develop.fingerprints.distances.method import Method
from lifelong_core.develop.fingerprints.distances.vectors import VDNA
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.develop.knowledge.index_file import IndexFile, remove_other_indexes
from lifelong_core.develop.knowledge.query_index import Neighbour, QueryIndex
from lifelong_core.develop.knowledge.stored_fingerprints import Slot, StoredFingerprints, slot_of
from lifelong_core.values.errors import InvalidInputError


class KnowledgeIndex:
    """One `QueryIndex` for each extractor and number of bins; it serves bKLD, JSD and VDNA.

    Attributes:
        is_complete: whether none is missing.
    """

    def __init__(self, indexes: Mapping[Slot, QueryIndex], *, is_complete: bool = True) -> None:
        self._indexes = indexes
        self.is_complete = is_complete

    def __len__(self) -> int:
        return len(self._indexes)

    @classmethod
    def open(cls, folder: Path, fingerprints: Mapping[str, Sequence[Fingerprint]]) -> Self:
        """Map the index files of these fingerprints, and remove all others from the folder.

        Args:
            folder: of the cache; only files of indexes are in it.
            fingerprints: by task; the first of each extractor and number of bins counts. Where they differ in the
                number of features, there is no index of this extractor.

        Raises:
            OSError: the folder cannot be written.
        """
        indexes: dict[Slot, QueryIndex] = {}
        groups = _group(fingerprints)
        for slot, (digests, load) in groups.items():
            with contextlib.suppress(InvalidInputError):
                indexes[slot] = QueryIndex(IndexFile.open(folder, digests, load))
        remove_other_indexes(folder, [digests for digests, _ in groups.values()])
        return cls(indexes, is_complete=len(indexes) == len(groups))

    @classmethod
    def find(cls, folder: Path, fingerprints: Mapping[str, Sequence[Fingerprint]]) -> Self:
        """Map those index files that exist, and build none; parameters as of `open`."""
        groups = _group(fingerprints)
        files = {slot: IndexFile.find(folder, digests) for slot, (digests, _) in groups.items()}
        indexes = {slot: QueryIndex(file) for slot, file in files.items() if file is not None}
        return cls(indexes, is_complete=len(indexes) == len(groups))

    def distances(self, target: Fingerprint, method: Method[Any]) -> dict[str, float] | None:
        """Distance of each task that can be compared with the target, which may be among them.

        None: the indexes do not serve this method, or hold no fingerprint that can be compared.
        """
        if (index := self._find(target, method)) is None:
            return None
        histograms = cast("HistogramFingerprint", target)
        if isinstance(method, BinnedKLD):
            distances = index.distances(histograms, method.weighting)
        elif isinstance(method, JensenShannon):
            distances = index.jensen_shannon_distances(histograms)
        else:
            distances = index.earth_movers_distances(histograms)
        return dict(zip(index.tasks, distances.tolist(), strict=True))

    def nearest(self, target: Fingerprint, method: Method[Any], count: int) -> tuple[Neighbour, ...] | None:
        """The `count` closest tasks by bKLD, in the order of the definition; None: as `distances`, or no bKLD."""
        index = self._find(target, method)
        if index is None or not isinstance(method, BinnedKLD):
            return None
        return index.nearest(cast("HistogramFingerprint", target), count, method.weighting)

    def _find(self, target: Fingerprint, method: Method[Any]) -> QueryIndex | None:
        if not isinstance(target, HistogramFingerprint) or not isinstance(
            method, (BinnedKLD, JensenShannon, VDNA)
        ):
            return None
        if isinstance(method, BinnedKLD) and (
            method.pseudo_count is not None or method.bins not in (None, target.bins)
        ):
            return None
        index = self._indexes.get(slot_of(target))
        return index if index is not None and index.features == target.features else None


def _group(
    fingerprints: Mapping[str, Sequence[Fingerprint]],
) -> dict[Slot, tuple[dict[str, str], Callable[[str], HistogramFingerprint]]]:
    """Of each extractor and number of bins: digests of the fingerprints by task, and what reads that of a task."""
    held: Mapping[str, Sequence[Any]] = fingerprints
    read: Callable[[Any], Any] = lambda fingerprint: fingerprint  # noqa: E731
    if isinstance(fingerprints, StoredFingerprints):
        held, read = fingerprints.references, fingerprints.read
    groups: dict[Slot, dict[str, Any]] = defaultdict(dict)
    for task, several in held.items():
        for one in several:
            if one.kind == HistogramFingerprint.kind:
                groups[slot_of(one)].setdefault(task, one)

    def loading(group: Mapping[str, Any]) -> Callable[[str], HistogramFingerprint]:
        return lambda task: read(group[task])

    return {
        slot: ({task: one.digest for task, one in group.items()}, loading(group))
        for slot, group in groups.items()
    }
