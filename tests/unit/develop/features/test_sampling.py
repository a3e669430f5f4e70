"""The sample depends on names and seed only, is uniform, and needs memory for itself alone."""

import tracemalloc
from collections import Counter
from collections.abc import Iterator

import pytest

from lifelong_core.develop.features import sampling
from lifelong_core.develop.features.sampling import sample_entries
from lifelong_core.develop.features.sources.entry import Entry
from lifelong_core.values.errors import InvalidInputError

ENTRIES = [Entry(f"{index:04}.png", "ab"[index % 2]) for index in range(100)]


def test_the_order_does_not_matter() -> None:
    first = sample_entries(ENTRIES, samples=10, seed=1)
    second = sample_entries([*ENTRIES[50:], None, *ENTRIES[:50]], samples=10, seed=1)
    assert first.chosen == second.chosen
    assert (first.images, first.passed_over, second.passed_over) == (100, 0, 1)
    assert first.classes == {"a": 50, "b": 50}
    assert sample_entries(ENTRIES, samples=10, seed=2).chosen != first.chosen


def test_a_smaller_sample_is_the_beginning_of_a_larger_one() -> None:
    large = sample_entries(ENTRIES, samples=40).chosen
    assert sample_entries(ENTRIES, samples=7).chosen == large[:7]
    assert sorted(sample_entries(ENTRIES, samples=1000).chosen, key=lambda entry: entry.path) == ENTRIES


def test_every_image_is_drawn_equally_often() -> None:
    counts = Counter(
        entry.path
        for seed in range(2000)
        for entry in sample_entries(ENTRIES[:20], samples=5, seed=seed).chosen
    )
    statistic = sum((counts[entry.path] - 500) ** 2 / 500 for entry in ENTRIES[:20])
    assert (
        statistic < 43.8
    )  # the .999 quantile of chi squared with 19 degrees of freedom; the seeds are fixed


def test_equal_names_are_both_counted() -> None:
    survey = sample_entries([Entry("a.png", position=1), Entry("a.png", position=2)], samples=5)
    assert {entry.position for entry in survey.chosen} == {1, 2}


def test_frames_are_images_of_their_own() -> None:
    survey = sample_entries([Entry("a.dcm", frame=frame) for frame in range(50)], samples=5)
    assert len({entry.name for entry in survey.chosen}) == 5


def test_memory_does_not_grow_with_the_number_of_images() -> None:
    def peak(count: int) -> int:
        def entries() -> Iterator[Entry]:
            for index in range(count):
                yield Entry(f"{index}.png")

        tracemalloc.start()
        sample_entries(entries(), samples=50)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(100)
    assert peak(20_000) < 2 * peak(1000)


def test_a_class_of_each_image_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MOST_CLASSES", 9)
    entries = [Entry(f"{index}", f"patient {index}") for index in range(10)]
    assert len(sample_entries(entries[:9], samples=1).classes) == 9
    with pytest.raises(InvalidInputError, match="unlabelled"):
        sample_entries(entries, samples=1)


def test_some_image_is_needed() -> None:
    with pytest.raises(InvalidInputError, match="samples"):
        sample_entries(ENTRIES, samples=0)
