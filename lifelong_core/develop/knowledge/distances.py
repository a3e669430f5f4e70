"""Distances between tasks of a knowledge base: of their fingerprints, else published ones."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from lifelong_core.arrays import Floats
from lifelong_core.develop.fingerprints.distances.method import comparison_key
from lifelong_core.develop.fingerprints.distances.registry import find_method
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase


def distances_between(knowledge: KnowledgeBase, tasks: Sequence[str], method: str) -> Floats:
    """Distances between some tasks, (T, T): source, target; nan: not known, and on the diagonal.

    Of the fingerprints where both tasks have one that the method can compare, else as published with the target.

    Args:
        knowledge: entries and fingerprints.
        tasks: names of T tasks of the knowledge base.
        method: name of a fingerprinting method.

    Raises:
        InvalidInputError: there is no such method.
        NotFoundError: the knowledge base does not hold one of the tasks.
    """
    found = find_method(method)
    result = np.full((len(tasks), len(tasks)), np.nan)
    for column, target in enumerate(tasks):
        published = knowledge.entry(target).distances.get(method, {})
        result[:, column] = [published.get(source, np.nan) for source in tasks]
    groups: dict[tuple[Any, ...], dict[int, Fingerprint]] = {}
    for place, task in enumerate(tasks):
        for fingerprint in cast("Iterable[Fingerprint]", knowledge.fingerprints.get(task, ())):
            if found.accepts(fingerprint):
                groups.setdefault(comparison_key(fingerprint), {})[place] = fingerprint
    for group in groups.values():
        places = list(group)
        result[np.ix_(places, places)] = found.matrix(list(group.values()))
    np.fill_diagonal(result, np.nan)
    return result
