"""Distances between tasks of a knowledge base: of their fingerprints, or published ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lifelong_core.develop.fingerprints.distances.method import Method, comparison_key
from lifelong_core.develop.fingerprints.distances.registry import find_method
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.knowledge.stored_fingerprints import Slot, select_fingerprints
from lifelong_core.values.arrays import Floats


def distances_between(knowledge: KnowledgeBase, tasks: Sequence[str], method: str) -> Floats:
    """Distances between some tasks, (T, T): source, target; nan: not known, and on the diagonal.

    Computed and published distances are never mixed, since their extractors may differ: those that are known of more
    pairs count, computed ones where it is equal.

    Args:
        knowledge: entries and fingerprints.
        tasks: names of T tasks of the knowledge base.
        method: name of a fingerprinting method.

    Raises:
        InvalidInputError: there is no such method.
        NotFoundError: the knowledge base does not hold one of the tasks.
        UnavailableError: these are more fingerprints than a serving process reads.
    """
    computed = _compute(knowledge, tasks, find_method(method))
    published = np.full_like(computed, np.nan)
    for column, target in enumerate(tasks):
        known = knowledge.entry(target).distances.get(method, {})
        published[:, column] = [known.get(source, np.nan) for source in tasks]
    np.fill_diagonal(published, np.nan)
    return max(computed, published, key=lambda distances: int(np.isfinite(distances).sum()))


def _compute(knowledge: KnowledgeBase, tasks: Sequence[str], method: Method[Any]) -> Floats:
    """Distances of the fingerprints that the method can compare; nan on the diagonal."""

    def fits(slot: Slot) -> bool:
        return slot[0] == method.fingerprint_type.kind and getattr(method, "bins", None) in (None, slot[2])

    held = select_fingerprints(knowledge.fingerprints, tasks, fits)
    groups: dict[tuple[Any, ...], dict[int, Fingerprint]] = {}
    for place, task in enumerate(tasks):
        for fingerprint in held.get(task, ()):
            if method.accepts(fingerprint):
                groups.setdefault(comparison_key(fingerprint), {})[place] = fingerprint
    distances = np.full((len(tasks), len(tasks)), np.nan)
    for group in groups.values():
        places = list(group)
        distances[np.ix_(places, places)] = method.matrix(list(group.values()))
    np.fill_diagonal(distances, np.nan)
    return distances
