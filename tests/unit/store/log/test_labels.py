import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest

from lifelong_core.store import LogEntry, NewLabel, Prediction, Store, new_prediction_id
from lifelong_core.store.log.identifiers import shadow_prediction_id
from lifelong_core.values.errors import InvalidInputError
from tests.databases import sqlite_only
from tests.unit.store.at_once import at_once
from tests.unit.store.samples import entry, ids_of, prediction


def logged(store: Store, count: int, **options: str) -> list[Prediction]:
    rows = [prediction(decision=index % 3, head_version=index + 1, **options) for index in range(count)]  # type: ignore[arg-type]
    store.predictions.append([LogEntry((row,)) for row in rows])
    return rows


def test_labels_are_stored_repeated_corrected_or_unknown(store: Store):
    one, two = logged(store, 2)
    batch = [NewLabel(one.id, 1, "pathology"), NewLabel(new_prediction_id(), 0), NewLabel(two.id, 0)]
    assert store.labels.record(batch) == ("stored", "unknown", "stored")
    assert store.labels.record([NewLabel(one.id, 1), NewLabel(two.id, 2)]) == ("unchanged", "corrected")
    found = store.labels.newest_labelled(1, "default", limit=10, classes=3)
    assert found.ids == (one.id, two.id)
    assert found.labels.tolist() == [1, 2]


@sqlite_only
def test_ids_that_were_never_logged_are_unknown(store: Store):
    (row,) = logged(store, 1)
    strangers = [new_prediction_id(), uuid4(), UUID(int=2**128 - 1), UUID(int=0)]
    batch = [NewLabel(one, 9) for one in strangers] + [NewLabel(row.id, 1)]
    assert store.labels.record(batch) == ("unknown",) * 4 + ("stored",)


@sqlite_only
def test_the_last_label_of_one_batch_counts(store: Store):
    (row,) = logged(store, 1)
    batch = [NewLabel(row.id, 1), NewLabel(row.id, 1), NewLabel(row.id, 2), NewLabel(row.id, 0)]
    assert store.labels.record(batch) == ("stored", "unchanged", "corrected", "corrected")
    assert store.labels.newest_labelled(1, "default", limit=10, classes=3).labels.tolist() == [0]
    assert store.labels.record([]) == ()


@sqlite_only
@pytest.mark.parametrize("label", [-1, 3, 10**6])
def test_a_label_that_is_no_class_refuses_the_whole_batch(store: Store, label: int):
    one, two = logged(store, 2)
    with pytest.raises(InvalidInputError, match=r"0\.\.2") as refused:
        store.labels.record([NewLabel(one.id, 0), NewLabel(two.id, label)])
    assert refused.value.field == "label"
    assert store.labels.newest_labelled(1, "default", limit=10, classes=3).ids == ()


def test_labelled_predictions_are_the_newest_of_one_population_oldest_first(store: Store):
    rows = logged(store, 6)
    elsewhere = logged(store, 2, environment="site-a")
    store.labels.record([NewLabel(row.id, index % 3) for index, row in reversed(list(enumerate(rows[:5])))])
    store.labels.record([NewLabel(row.id, 0) for row in elsewhere])
    found = store.labels.newest_labelled(1, "default", limit=3, classes=3)
    assert found.ids == tuple(row.id for row in rows[2:5])
    assert found.labels.tolist() == [2, 0, 1]
    assert found.decisions.tolist() == [row.decision for row in rows[2:5]]
    assert found.head_versions.tolist() == [3, 4, 5]
    assert np.array_equal(found.logits, np.stack([row.logits for row in rows[2:5]]))
    assert store.labels.newest_labelled(2, "default", limit=3, classes=3).logits.shape[0] == 0


def test_many_labels_in_one_call(store: Store):
    entries = [entry(predictions=400) for _ in range(3)]
    store.predictions.append(entries)
    assert set(store.labels.record([NewLabel(one, 1) for one in ids_of(entries)])) == {"stored"}
    assert store.labels.newest_labelled(1, "default", limit=5000, classes=3).labels.sum() == 1200


def test_the_same_labels_sent_at_once_are_kept_once(store: Store):
    rows = logged(store, 30)
    start = threading.Barrier(4)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        start.wait()
        try:
            for index in np.random.default_rng(seed).permutation(30).reshape(3, 10):
                store.labels.record([NewLabel(rows[one].id, int(one) % 3) for one in index])
        except BaseException as error:  # noqa: BLE001 - shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.labels.newest_labelled(1, "default", limit=99, classes=3).labels.tolist() == [
        index % 3 for index in range(30)
    ]


def test_a_label_also_counts_for_the_shadow_of_the_same_image(store: Store):
    one, two = logged(store, 2)
    shadow = replace(prediction(model_id=2), id=shadow_prediction_id(one.id))
    assert store.labels.record([NewLabel(one.id, 1), NewLabel(two.id, 1)]) == ("stored", "stored")
    store.predictions.append([LogEntry((shadow,))])
    # Logged after the label: a repetition of the label brings it.
    assert store.labels.record([NewLabel(one.id, 1), NewLabel(one.id, 2)]) == ("unchanged", "corrected")
    found = store.labels.newest_labelled(2, "default", limit=10, classes=3)
    assert (found.ids, found.labels.tolist()) == ((shadow.id,), [2])


def test_labels_are_found_as_they_were_known_at_a_time(store: Store):
    rows = logged(store, 3)
    for row in rows:
        store.labels.record([NewLabel(row.id, 0)])
    first, second, third = store.labels.recorded_times(1, "default", limit=10)
    for at, known in ((first, rows[:1]), (second, rows[:2]), (third, rows), (None, rows)):
        found = store.labels.newest_labelled(1, "default", limit=10, classes=3, recorded_by=at)
        assert found.ids == tuple(row.id for row in known)
    store.labels.record([NewLabel(rows[0].id, 1)])
    corrected = store.labels.recorded_times(1, "default", limit=10)
    assert corrected[:2] == [second, third]
    assert corrected[2] > third
    assert store.labels.recorded_times(1, "default", limit=1) == [third]
    assert store.labels.recorded_times(1, "site-a", limit=1) == []


def story(store: Store, prediction_id: UUID) -> list[tuple[Any, ...]]:
    return [
        (one.revision, one.previous_label, one.label, one.propensity, one.source, one.actor)
        for one in store.labels.history(prediction_id)
    ]


def test_the_history_tells_who_changed_a_label_from_what_to_what(store: Store):
    one, two = logged(store, 2)
    store.labels.record([NewLabel(one.id, 1, "pathology"), NewLabel(two.id, 0)], actor="lis")
    store.labels.record([NewLabel(one.id, 1, "repeated")], actor="lis")
    store.labels.record([NewLabel(one.id, 2, "panel"), NewLabel(one.id, 0)], actor="dr-b")
    assert story(store, one.id) == [
        (1, None, 1, None, "pathology", "lis"),
        (2, 1, 2, None, "panel", "dr-b"),
        (3, 2, 0, None, "", "dr-b"),
    ]
    assert story(store, two.id) == [(1, None, 0, None, "", "lis")]
    times = [revision.recorded_at for revision in store.labels.history(one.id)]
    assert times == sorted(times)
    assert store.labels.recorded_times(1, "default", limit=9)[-1] == times[-1]


@sqlite_only
@pytest.mark.parametrize("stranger", [new_prediction_id(), uuid4(), UUID(int=0), UUID(int=2**128 - 1)])
def test_a_prediction_without_a_label_has_no_history(store: Store, stranger: UUID):
    (row,) = logged(store, 1)
    assert store.labels.history(row.id) == store.labels.history(stranger) == ()


@sqlite_only
def test_a_propensity_is_kept_until_another_one_is_sent(store: Store):
    one, two = logged(store, 2)
    store.labels.record([NewLabel(one.id, 1), NewLabel(two.id, 1)])
    assert store.labels.newest_labelled(1, "default", limit=9, classes=3).propensities is None
    batch = [NewLabel(one.id, 1, propensity=0.25)]
    assert store.labels.record(batch) == ("corrected",)
    assert store.labels.record(batch) == ("unchanged",)
    assert store.labels.record([NewLabel(one.id, 2)]) == ("corrected",)
    assert store.labels.record([NewLabel(one.id, 2, propensity=1.0)]) == ("corrected",)
    assert [revision[1:4] for revision in story(store, one.id)] == [
        (None, 1, None),
        (1, 1, 0.25),
        (1, 2, 0.25),
        (2, 2, 1.0),
    ]
    found = store.labels.newest_labelled(1, "default", limit=9, classes=3)
    np.testing.assert_array_equal(found.propensities, [1.0, np.nan])


@sqlite_only
@pytest.mark.parametrize("propensity", [0.0, -0.5, 1.0000001, float("nan"), float("inf")])
def test_a_propensity_that_is_no_positive_probability_refuses_the_batch(store: Store, propensity: float):
    one, two = logged(store, 2)
    with pytest.raises(InvalidInputError, match=r"\(0, 1\]") as refused:
        store.labels.record([NewLabel(one.id, 0), NewLabel(two.id, 0, propensity=propensity)])
    assert refused.value.field == "propensity"
    assert store.labels.history(one.id) == ()


@sqlite_only
def test_the_shadow_of_an_image_has_the_history_of_its_label(store: Store):
    (one,) = logged(store, 1)
    shadow = replace(prediction(model_id=2), id=shadow_prediction_id(one.id))
    store.labels.record([NewLabel(one.id, 1)], actor="lis")
    store.predictions.append([LogEntry((shadow,))])
    store.labels.record([NewLabel(one.id, 2, propensity=0.5)], actor="dr-b")
    assert story(store, shadow.id) == [(1, None, 2, 0.5, "", "dr-b")]


def test_corrections_at_once_leave_one_unbroken_history(store: Store, artifacts_url: str):
    rows = logged(store, 6)

    def correcting(name: str, seed: int) -> Callable[[Store], None]:
        def work(own: Store) -> None:
            rng = np.random.default_rng(seed)
            for _ in range(12):
                chosen = rng.permutation(6)[:4]
                own.labels.record(
                    [NewLabel(rows[one].id, int(rng.integers(3)), name) for one in chosen], actor=name
                )

        return work

    at_once(store, artifacts_url, *(correcting(f"writer-{seed}", seed) for seed in range(4)))
    found = store.labels.newest_labelled(1, "default", limit=9, classes=3)
    present = dict(zip(found.ids, found.labels.tolist(), strict=True))
    actors = set[str | None]()
    for row in rows:
        history = store.labels.history(row.id)
        assert [one.revision for one in history] == list(range(1, len(history) + 1))
        assert history[0].previous_label is None
        assert all(later.previous_label == earlier.label for earlier, later in pairwise(history))
        assert all(one.previous_label != one.label for one in history)
        assert all(later.recorded_at >= earlier.recorded_at for earlier, later in pairwise(history))
        assert history[-1].label == present[row.id]
        actors |= {one.actor for one in history}
    assert len(actors) == 4
