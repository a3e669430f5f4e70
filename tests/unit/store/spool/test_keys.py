"""The index of request keys against a dictionary."""

from collections import defaultdict

import numpy as np
import pytest

from lifelong_core.store.spool import keys as keys_module
from lifelong_core.store.spool.keys import KeyIndex


@pytest.mark.parametrize("seed", range(4))
def test_every_key_is_found_at_its_places_until_its_segment_goes(seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(keys_module, "_RECENT", 20)
    monkeypatch.setattr(keys_module, "_LARGEST_RUN", 100)
    rng = np.random.default_rng(seed)
    index = KeyIndex()
    expected: dict[int, list[tuple[int, int]]] = defaultdict(list)
    first = gone = 10**15
    for segment in range(first, first + 60 * 5000, 5000):
        digests = rng.integers(0, 2**64, size=rng.integers(0, 30), dtype=np.uint64)
        if segment % 3:
            offsets = np.sort(rng.integers(0, 2**22, size=digests.size)).astype(np.uint32)
            index.add_segment(digests, segment, offsets)
        else:
            offsets = np.repeat(np.uint32(17), digests.size)
            index.add(digests.tolist(), segment, 17)
        for one, offset in zip(digests.tolist(), offsets.tolist(), strict=True):
            expected[one].append((segment, offset))
        gone = max(gone, segment - 5000 * int(rng.integers(5, 40)))
        index.forget_before(gone)
        wanted = [*expected, 0, 2**64 - 1, 5]
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for position, number, offset in index.find(wanted):
            if number >= gone:
                found[wanted[position]].append((number, offset))
        left = {one: [place for place in places if place[0] >= gone] for one, places in expected.items()}
        assert dict(found) == {one: places for one, places in left.items() if places}
        # Few keys of segments that are gone, and few runs.
        sizes = [run.locations.size for run in index._runs]
        assert sum(sizes) <= sum(map(len, left.values())) + 200
        assert len(sizes) <= 5 + sum(sizes) // 20
    assert index.find([]) == []


def test_keys_with_one_digest_are_all_found():
    index = KeyIndex()
    for segment in (5, 6):
        index.add_segment(np.array([7, 9, 7], np.uint64), segment, np.array([1, 2, 3], np.uint32))
    index.add([7], 7, 4)
    assert sorted(index.find([8, 7])) == [(1, 5, 1), (1, 5, 3), (1, 6, 1), (1, 6, 3), (1, 7, 4)]
