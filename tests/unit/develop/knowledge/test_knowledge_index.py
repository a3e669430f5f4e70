from pathlib import Path

import pytest

from lifelong_core.develop.fingerprints.distances.registry import METHODS
from lifelong_core.develop.fingerprints.fisher import KeywordFingerprint
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from tests.unit.develop.knowledge.examples import make_entry, make_fingerprint

SMALL, LARGE, VDNA = METHODS["bKLD(small,target)"], METHODS["bKLD(large,source)"], METHODS["VDNA"]
JSD = METHODS["JSD"]


def make_knowledge() -> KnowledgeBase:
    knowledge = KnowledgeBase()
    for number, name in enumerate("abcd"):
        fingerprints = [
            KeywordFingerprint(("medical",)),
            make_fingerprint(number, bins=100),
            make_fingerprint(number + 10, bins=100),
        ]
        if name != "d":
            fingerprints.append(make_fingerprint(number, bins=1000))
        knowledge = knowledge.add(make_entry(name), fingerprints)
    return knowledge.add(make_entry("other"), [make_fingerprint(5, bins=100, extractor="b" * 64)])


def test_distances_are_those_of_the_first_comparable_fingerprints(tmp_path: Path) -> None:
    knowledge = make_knowledge().with_index(tmp_path)
    assert knowledge == make_knowledge()
    assert knowledge.index is not None
    cases = (
        (SMALL, 100, "abcd"),
        (LARGE, 1000, "abc"),
        (VDNA, 100, "abcd"),
        (VDNA, 1000, "abc"),
        (JSD, 100, "abcd"),
    )
    for method, bins, tasks in cases:
        target = make_fingerprint(77, bins=bins)
        wanted = {
            task: method.distance(
                next(one for one in knowledge.fingerprints[task][1:] if one.bins == bins), target
            )
            for task in tasks
        }
        assert knowledge.index.distances(target, method) == pytest.approx(wanted, rel=1e-5)
        if method in (VDNA, JSD):
            assert knowledge.index.nearest(target, method, 2) is None
            continue
        nearest = knowledge.index.nearest(target, method, 2)
        assert [one.task for one in nearest or ()] == sorted(wanted, key=lambda task: wanted[task])[:2]


def test_what_the_indexes_do_not_serve_is_left_to_others(tmp_path: Path) -> None:
    index = make_knowledge().with_index(tmp_path).index
    assert index is not None
    target = make_fingerprint(77, bins=100)
    for method in ("bKLD(small,smoothed)", "P2L", "bKLD(large,source)"):
        assert index.distances(target, METHODS[method]) is None
        assert index.nearest(target, METHODS[method], 1) is None
    assert index.distances(KeywordFingerprint(("medical",)), METHODS["Manual"]) is None
    assert index.distances(make_fingerprint(77, bins=100, features=5), SMALL) is None
    assert index.distances(make_fingerprint(77, bins=100, extractor="c" * 64), SMALL) is None


def test_files_follow_the_knowledge_base(tmp_path: Path) -> None:
    knowledge = make_knowledge().with_index(tmp_path)
    before = set(tmp_path.iterdir())
    assert len(before) == 3
    changed = knowledge.remove("other")
    assert changed.index is None
    changed.with_index(tmp_path)
    assert set(tmp_path.iterdir()) < before
    assert KnowledgeBase().with_index(tmp_path).fingerprints == {}
    assert list(tmp_path.iterdir()) == []
