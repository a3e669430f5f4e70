"""Distances of the index of a knowledge base are those of the fingerprints."""

from pathlib import Path

import numpy as np

from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.knowledge.query_index import QueryIndex
from lifelong_core.develop.ranking.source_distances import source_distances
from tests.unit.develop.knowledge.examples import make_entry, make_fingerprint


def make_knowledge() -> KnowledgeBase:
    knowledge = KnowledgeBase()
    for number, name in enumerate(("a", "b", "c", "target")):
        fingerprints = [make_fingerprint(number, bins=100), make_fingerprint(number + 10, bins=100)]
        knowledge = knowledge.add(make_entry(name), fingerprints)
    knowledge = knowledge.add(make_entry("other"), [make_fingerprint(5, bins=100, extractor="b" * 64)])
    return knowledge.add(make_entry("none"))


def test_an_index_changes_no_distance(tmp_path: Path, monkeypatch) -> None:
    plain = make_knowledge()
    indexed = plain.with_index(tmp_path)
    distances, used = QueryIndex.distances, []
    monkeypatch.setattr(QueryIndex, "distances", lambda *given: used.append(given[2]) or distances(*given))
    sources = ("c", "a", "none", "other", "b")
    for method in ("bKLD(small,target)", "bKLD(small,smoothed)", "VDNA"):
        for further in (
            (),
            (make_fingerprint(50, bins=100),),
            (make_fingerprint(6, bins=100, extractor="b" * 64),),
        ):
            wanted = source_distances(plain, "target", sources, method, further)
            found = source_distances(indexed, "target", sources, method, further)
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
            assert np.isnan(found[2])
    assert set(used) == {"target"}
