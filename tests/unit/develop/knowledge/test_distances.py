"""Distances between tasks of a knowledge base."""

import numpy as np
import pytest

from lifelong_core.develop import distance
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.knowledge.task_map import distances_between
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from tests.unit.develop.knowledge.examples import make_entry, make_fingerprint

METHOD = "bKLD(small,target)"


PUBLISHED = {METHOD: {"a": 7.0, "b": 8.0, "c": 9.0}, "FID": {"a": 1.0}}


def base_with(*held: HistogramFingerprint) -> KnowledgeBase:
    """The tasks a, b, ..., each with one fingerprint, and published distances from a, b and c to every task."""
    base = KnowledgeBase.from_entries(make_entry(name, distances=PUBLISHED) for name in "abcd"[: len(held)])
    return KnowledgeBase(base.entries, {name: (one,) for name, one in zip(base.tasks, held, strict=True)})


def test_distances_are_those_of_comparable_fingerprints() -> None:
    held = [make_fingerprint(seed, bins=100) for seed in range(2)]
    others = make_fingerprint(2, bins=100, extractor="b" * 64), make_fingerprint(3, bins=5)
    found = distances_between(base_with(*held), "ba", METHOD)
    expected = [[np.nan, distance(held[1], held[0], METHOD)], [distance(held[0], held[1], METHOD), np.nan]]
    assert np.allclose(found, expected, equal_nan=True)
    assert distances_between(base_with(*held), "b", METHOD).shape == (1, 1)
    mixed = distances_between(base_with(*held, *others), "abcd", METHOD)
    nan = np.nan  # published, of which more are known
    assert np.array_equal(mixed, [[nan, 7, 7, 7], [8, nan, 8, 8], [9, 9, nan, 9], [nan] * 4], equal_nan=True)


def test_published_distances_count_without_fingerprints() -> None:
    base = base_with(*(make_fingerprint(seed, bins=5) for seed in range(3)))
    found = distances_between(base, "ab", "FID")
    assert np.array_equal(found, [[np.nan, 1], [np.nan, np.nan]], equal_nan=True)
    assert np.isfinite(distances_between(base, "ab", "VDNA")).sum() == 2


def test_unknown_names_are_refused() -> None:
    base = KnowledgeBase.from_entries([make_entry("a")])
    with pytest.raises(NotFoundError):
        distances_between(base, ["a", "b"], METHOD)
    with pytest.raises(InvalidInputError):
        distances_between(base, ["a"], "nothing")
