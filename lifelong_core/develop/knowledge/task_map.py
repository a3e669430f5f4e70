"""A map of tasks in the plane, whose distances are close to those of the fingerprints."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lifelong_core.develop.fingerprints.distances.method import Method, comparison_key
from lifelong_core.develop.fingerprints.distances.registry import find_method
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.knowledge.stored_fingerprints import Slot, select_fingerprints
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError

_TOLERANCE = 1e-6
"""Smallest relative decrease of the error that is worth another step."""
_SMALLEST_ERROR = 1e-18


@dataclass(frozen=True, eq=False)
class TaskMap(ArrayValue):
    """Positions of T tasks in the plane."""

    positions: Floats
    """(T, 2), centred; the first axis has the larger variance"""
    stress: float
    """Kruskal's stress-1 over the known distances, 0 to 1: 0 if the map shows all of them exactly"""


def draw_task_map(distances: Floats, *, iterations: int = 300) -> TaskMap:
    """Place tasks in the plane by metric multidimensional scaling (SMACOF; de Leeuw, 1977).

    The start is classical scaling (Torgerson, 1952), so that the result is deterministic. Pairs without a distance
    have no influence. A distance and its reverse are averaged; all are shifted up where
    some are negative.

    Args:
        distances: (T, T), lower is closer; nan: not known. The diagonal is not used.
        iterations: at most this many steps of SMACOF.

    Raises:
        InvalidInputError: not a square matrix.
    """
    known = _symmetrise(distances)
    tasks = len(known)
    if tasks < 2:
        return TaskMap(np.zeros((tasks, 2)), 0.0)
    filled = _fill(known)
    weights = (np.isfinite(known) | np.isinf(filled)).astype(np.float64)
    np.fill_diagonal(weights, 0.0)
    largest = filled[np.isfinite(filled)].max()
    filled[np.isinf(filled)] = largest  # parts without a path between them stand apart
    if largest == 0.0:
        return TaskMap(np.zeros((tasks, 2)), 0.0)
    positions = _smacof(filled / largest, weights, _scale_classically(filled / largest), iterations) * largest
    return TaskMap(_rotate(positions), _stress(known, positions))


def rank_distances(distances: Floats) -> Floats:
    """Return the rank of each distance among all, from 1; nan stays, and the diagonal is 0.

    A few tasks that are unlike all others would push the others together in a map of the distances themselves.

    Args:
        distances: (n, n); the diagonal is not used.
    """
    values = distances.copy()
    np.fill_diagonal(values, np.nan)
    ranks = np.full_like(values, np.nan)
    known = np.isfinite(values)
    ranks[known] = np.unique(values[known], return_inverse=True)[1] + 1.0
    np.fill_diagonal(ranks, 0.0)
    return ranks


def _symmetrise(distances: Floats) -> Floats:
    """Mean of both directions, or the known one; zero on the diagonal; nan: neither is known."""
    values = np.asarray(distances, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise InvalidInputError(f"expected a square matrix, got the shape {values.shape}.", field="distances")
    values = np.where(np.isfinite(values), values, np.nan)
    both = np.where(np.isnan(values), values.T, values)
    mean = (both + both.T) / 2
    np.fill_diagonal(mean, np.nan)
    if np.isfinite(mean).any():
        mean -= min(float(np.nanmin(mean)), 0.0)
    np.fill_diagonal(mean, 0.0)
    return mean


def _fill(known: Floats) -> Floats:
    """Missing distances as lengths of the shortest paths (Floyd and Warshall); inf where there is no path."""
    paths = np.where(np.isnan(known), np.inf, known)
    for middle in range(len(paths)):
        paths = np.minimum(paths, paths[:, middle, None] + paths[None, middle])
    return np.where(np.isnan(known), paths, known)


def _scale_classically(distances: Floats) -> Floats:
    """Torgerson's scaling: (T, 2)."""
    squares = distances**2
    inner = -(squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()) / 2
    values, vectors = np.linalg.eigh(inner)
    return vectors[:, -2:][:, ::-1] * np.sqrt(np.maximum(values[-2:][::-1], 0.0))


def _smacof(targets: Floats, weights: Floats, positions: Floats, iterations: int) -> Floats:
    """Reduce the weighted sum of squared differences to the target distances; each step is a Guttman transform."""
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian, hermitian=True)
    previous = np.inf
    for _ in range(iterations):
        lengths = _lengths(positions)
        error = float((weights * (lengths - targets) ** 2).sum())
        if error <= _SMALLEST_ERROR or previous - error < _TOLERANCE * error:
            break
        previous = error
        ratio = weights * np.divide(targets, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        positions = inverse @ ((np.diag(ratio.sum(axis=1)) - ratio) @ positions)
    return positions


def _rotate(positions: Floats) -> Floats:
    """Centred, on the principal axes; the entry of largest absolute value of each axis is positive."""
    centred = positions - positions.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    rotated = centred @ axes.T
    extremes = rotated[np.abs(rotated).argmax(axis=0), np.arange(rotated.shape[1])]
    return rotated * np.where(extremes < 0, -1.0, 1.0)


def _stress(known: Floats, positions: Floats) -> float:
    lengths = _lengths(positions)
    wanted = np.where(np.isnan(known), lengths, known)
    total = float((np.where(np.isnan(known), 0.0, lengths) ** 2).sum())
    return float(np.sqrt(((lengths - wanted) ** 2).sum() / total)) if total > 0 else 1.0


def _lengths(positions: Floats) -> Floats:
    differences = positions[:, None] - positions[None]
    return np.sqrt((differences**2).sum(axis=2))


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
