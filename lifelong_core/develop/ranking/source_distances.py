"""Distances from sources to one target: computed from fingerprints, else published ones."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lifelong_core.develop.fingerprints.distances.method import check_comparable
from lifelong_core.develop.fingerprints.distances.registry import METHODS, Method
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.knowledge.entry import TransferOutcomes
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.knowledge.stored_fingerprints import select_fingerprints, slot_of
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError


def source_distances(
    knowledge: KnowledgeBase,
    target: str,
    sources: Sequence[str],
    method: str,
    fingerprints: Sequence[Fingerprint] = (),
) -> Floats:
    """Distances of this method, shape (K,); nan: not known.

    Computed and published distances are never mixed, since their extractors may differ: the published ones count only
    where no pair of fingerprints can be compared.

    Args:
        knowledge: holds the sources' fingerprints, and distances that were published for the target.
        target: name of the target.
        sources: names of the K sources.
        method: a name, as in `METHODS`.
        fingerprints: of the target, beside those that the knowledge base holds.

    Raises:
        UnavailableError: without an index, a serving process would read too many fingerprints.
    """
    distances = np.full(len(sources), np.nan)
    if method in METHODS:
        for fingerprint in (*fingerprints, *knowledge.fingerprints.get(target, ())):
            _fill(distances, knowledge, sources, METHODS[method], fingerprint)
    if np.isnan(distances).all() and target in knowledge:
        published = knowledge.entry(target).distances.get(method, {})
        distances = np.array([published.get(source, np.nan) for source in sources])
    return distances


def fill_distances(knowledge: KnowledgeBase, methods: Sequence[str]) -> TransferOutcomes:
    """The measured transfers of a knowledge base, with the distances of these methods from its fingerprints."""
    outcomes = knowledge.outcomes()
    tasks = outcomes.tasks
    if not tasks:
        return outcomes
    distances = [
        np.stack([source_distances(knowledge, target, tasks, method) for target in tasks], axis=1)
        for method in methods
    ]
    return replace(outcomes, methods=tuple(methods), distances=np.stack(distances))


def _fill(
    distances: Floats,
    knowledge: KnowledgeBase,
    sources: Sequence[str],
    method: Method[Any],
    target: Fingerprint,
) -> None:
    """Compute the distances that are not known yet and can be computed from this fingerprint of the target."""
    if not method.accepts(target):
        return
    indexed = None if knowledge.index is None else knowledge.index.distances(target, method)
    if indexed is not None:
        unknown = np.isnan(distances)
        distances[unknown] = np.array([indexed.get(source, np.nan) for source in sources])[unknown]
        return
    found: list[int] = []
    chosen: list[Fingerprint] = []
    unknown = {source: place for place, source in enumerate(sources) if np.isnan(distances[place])}
    wanted = slot_of(target)
    for source, held in select_fingerprints(
        knowledge.fingerprints, unknown, lambda slot: slot == wanted
    ).items():
        candidate = next((one for one in held if _fits(method, one, target)), None)
        if candidate is not None:
            found.append(unknown[source])
            chosen.append(candidate)
    if found:
        distances[found] = method.distances(chosen, target)


def _fits(method: Method[Any], source: Fingerprint, target: Fingerprint) -> bool:
    """Whether the method can compare these two."""
    if not (method.accepts(source) and method.accepts(target)):
        return False
    try:
        check_comparable(source, target)
    except InvalidInputError:
        return False
    return True
