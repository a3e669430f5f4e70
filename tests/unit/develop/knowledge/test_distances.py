"""Distances between tasks of a knowledge base."""

import numpy as np
import pytest

from lifelong_core.develop import distance
from lifelong_core.develop.knowledge.distances import distances_between
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.errors import InvalidInputError, NotFoundError
from tests.unit.develop.knowledge.examples import make_entry, make_fingerprint

METHOD = "bKLD(small,target)"


def test_fingerprints_come_before_published_distances() -> None:
    published = {METHOD: {"a": 7.0, "b": 8.0, "c": 9.0}, "FID": {"a": 1.0}}
    base = KnowledgeBase.from_entries(make_entry(name, distances=published) for name in "abcd")
    prints = {
        "a": make_fingerprint(0, bins=100),
        "b": make_fingerprint(1, bins=100),
        "c": make_fingerprint(2, bins=100, extractor="b" * 64),
        "d": make_fingerprint(3, bins=5),
    }
    base = KnowledgeBase(base.entries, {name: (held,) for name, held in prints.items()})
    found = distances_between(base, "dcba", METHOD)
    nan = np.nan
    expected = [
        [nan, nan, nan, nan],
        [9, nan, 9, 9],
        [8, 8, nan, distance(prints["b"], prints["a"], METHOD)],
        [7, 7, distance(prints["a"], prints["b"], METHOD), nan],
    ]
    assert np.allclose(found, expected, equal_nan=True)
    assert np.array_equal(distances_between(base, "ab", "FID"), [[nan, 1], [nan, nan]], equal_nan=True)


def test_unknown_names_are_refused() -> None:
    base = KnowledgeBase.from_entries([make_entry("a")])
    with pytest.raises(NotFoundError):
        distances_between(base, ["a", "b"], METHOD)
    with pytest.raises(InvalidInputError):
        distances_between(base, ["a"], "nothing")
