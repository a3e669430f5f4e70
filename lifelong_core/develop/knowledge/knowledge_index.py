"""The query indexes of all histogram fingerprints of a knowledge base."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from lifelong_core.develop.fingerprints.distances.binned_kld import BinnedKLD, Weighting
from lifelong_core.develop.fingerprints.distances.method import Method
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.develop.knowledge.index_file import IndexFile, remove_other_indexes
from lifelong_core.develop.knowledge.query_index import Neighbour, QueryIndex

_Size = tuple[str, int, int]
"""Extractor, features and bins: what fingerprints must share to be compared."""


class KnowledgeIndex:
    """One `QueryIndex` for each extractor and number of bins."""

    def __init__(self, indexes: Mapping[_Size, QueryIndex]) -> None:
        self._indexes = indexes

    @classmethod
    def open(cls, folder: Path, fingerprints: Mapping[str, Sequence[Fingerprint]]) -> Self:
        """Map the index files of these fingerprints, and remove all others from the folder.

        Args:
            folder: of the cache; only files of indexes are in it.
            fingerprints: by task; the first of each extractor and number of bins counts.

        Raises:
            OSError: the folder cannot be written.
        """
        groups: dict[_Size, dict[str, HistogramFingerprint]] = defaultdict(dict)
        for task, held in fingerprints.items():
            for fingerprint in held:
                if isinstance(fingerprint, HistogramFingerprint):
                    groups[_size(fingerprint)].setdefault(task, fingerprint)
        digests = {size: {task: one.digest for task, one in group.items()} for size, group in groups.items()}
        indexes = {
            size: QueryIndex(IndexFile.open(folder, digests[size], group.__getitem__))
            for size, group in groups.items()
        }
        remove_other_indexes(folder, digests.values())
        return cls(indexes)

    def distances(self, target: Fingerprint, method: Method[Any]) -> dict[str, float] | None:
        """Distance of each task that can be compared with the target, which may be among them.

        None: the indexes do not serve this method, or hold no fingerprint that can be compared.
        """
        if (found := self._find(target, method)) is None:
            return None
        index, histograms, weighting = found
        return dict(zip(index.tasks, index.distances(histograms, weighting).tolist(), strict=True))

    def nearest(self, target: Fingerprint, method: Method[Any], count: int) -> tuple[Neighbour, ...] | None:
        """The `count` closest tasks, in the order of the definition; None: as for `distances`."""
        if (found := self._find(target, method)) is None:
            return None
        index, histograms, weighting = found
        return index.nearest(histograms, count, weighting)

    def _find(
        self, target: Fingerprint, method: Method[Any]
    ) -> tuple[QueryIndex, HistogramFingerprint, Weighting] | None:
        if not isinstance(target, HistogramFingerprint) or not isinstance(method, BinnedKLD):
            return None
        if method.pseudo_count is not None or method.bins not in (None, target.bins):
            return None
        index = self._indexes.get(_size(target))
        return None if index is None else (index, target, method.weighting)


def _size(fingerprint: HistogramFingerprint) -> _Size:
    return fingerprint.extractor, fingerprint.features, fingerprint.bins
