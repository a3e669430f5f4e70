import itertools
import threading
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest

from lifelong_core.store import LogEntry, Prediction, RequestKey, Store, logged_on, new_prediction_id
from lifelong_core.store.log import identifiers
from lifelong_core.values.errors import ConflictError, InvalidInputError
from tests.databases import sqlite_only
from tests.unit.store.samples import LONG_AGO, add_model, entry, ids_of, prediction, read_all


def window_ids(store: Store, model_id: int = 1, environment: str = "default", **options: Any) -> list[UUID]:
    options = {"limit": 1000, "since": LONG_AGO, **options}
    return list(store.predictions.window(model_id, environment, **options).ids)


def id_at(moment: datetime) -> UUID:
    """An id as it would have been made then."""
    return UUID(int=identifiers.first_id_at(moment).int + new_prediction_id().int % 2**62)


def test_a_prediction_comes_back_to_the_last_bit(store: Store):
    written = prediction(7, "site-a", decision=2, group_hash=b"\x00" * 16, head_version=3)
    assert store.predictions.append([LogEntry((written,))]) == (True,)
    assert store.predictions.get(written.id) == written
    for stranger in (new_prediction_id(), uuid4(), UUID(int=2**128 - 1), UUID(int=0)):
        assert store.predictions.get(stranger) is None


@sqlite_only
def test_nothing_to_append_is_no_transaction(store: Store):
    before = store.predictions.log_position()
    assert store.predictions.append([]) == ()
    assert store.predictions.log_position() == before


def test_a_batch_mixes_models_environments_sizes_and_class_counts(store: Store):
    binary = Prediction(new_prediction_id(), 2, "site-a", 1, 0, np.array([1, -1], np.float32))
    entries = [
        entry("r1", predictions=3),
        LogEntry((binary,)),
        entry(environment="site-b"),
        entry("r2", model_id=2),
    ]
    assert store.predictions.append(entries) == (True,) * 4
    assert window_ids(store) == [row.id for row in entries[0].predictions]
    assert window_ids(store, 2, "site-a") == [binary.id]
    assert window_ids(store, 1, "site-b") == ids_of([entries[2]])
    assert sorted(read_all(store)) == sorted(ids_of(entries))


@sqlite_only
@pytest.mark.parametrize(
    ("logits", "field"),
    [
        (np.array([1, np.nan, 0], np.float32), "logits"),
        (np.array([1, np.inf, 0], np.float32), "logits"),
        (np.zeros(3), "logits"),
        (np.zeros((1, 3), np.float32), "logits"),
        (np.zeros(1, np.float32), "logits"),
    ],
    ids=["nan", "infinite", "float64", "two dimensions", "one class"],
)
def test_logits_that_cannot_be_replayed_are_refused(store: Store, logits: Any, field: str):
    bad = Prediction(new_prediction_id(), 1, "default", 1, 0, logits)
    with pytest.raises(InvalidInputError) as refused:
        store.predictions.append([entry(), LogEntry((bad,))])
    assert refused.value.field == field
    assert list(read_all(store)) == []


@sqlite_only
@pytest.mark.parametrize(("request_id", "is_legal"), [("", False), ("r" * 200, True), ("r" * 201, False)])
def test_the_length_of_a_request_id_is_limited(store: Store, request_id: str, is_legal: bool):
    if is_legal:
        assert store.predictions.append([entry(request_id)]) == (True,)
        return
    with pytest.raises(InvalidInputError) as refused:
        store.predictions.append([entry(request_id)])
    assert refused.value.field == "request_id"


@sqlite_only
def test_an_entry_without_predictions_is_refused(store: Store):
    with pytest.raises(InvalidInputError, match="at least one"):
        store.predictions.append([LogEntry(())])


def test_an_id_is_logged_once_and_the_whole_batch_fails_together(store: Store):
    known = prediction()
    store.predictions.append([LogEntry((known,))])
    with pytest.raises(ConflictError):
        store.predictions.append([entry("r1"), LogEntry((known,))])
    assert list(read_all(store)) == [known.id]
    assert store.predictions.request(RequestKey(1, "default", "r1")) is None


def test_many_requests_are_looked_up_at_once_and_none_is_taken_for_another(store: Store):
    """By model, environment and id together: each of them occurs in a request that is asked for."""
    keys = [RequestKey(1, "default", f"r{index}") for index in range(501)]
    elsewhere = RequestKey(1, "site-a", "r7")
    entries = [entry(key.request_id) for key in (*keys[:7], *keys[8:])]
    store.predictions.append([*entries, replace(entry("r7"), request=elsewhere)])
    found = store.predictions.requests([*keys, keys[0]])
    assert set(found) == {*keys} - {keys[7]}
    assert all(stored.key == key for key, stored in found.items())
    assert found[keys[500]].predictions == entries[-1].predictions


def test_a_repeated_request_writes_nothing_and_tells_what_was_answered(store: Store):
    first, again, other = entry("r1", predictions=3), entry("r1", predictions=3), entry("r2")
    assert store.predictions.append([first]) == (True,)
    assert store.predictions.append([again, other]) == (False, True)
    stored = store.predictions.request(RequestKey(1, "default", "r1"))
    assert stored is not None
    assert (stored.body_digest, stored.predictions) == (first.body_digest, first.predictions)
    assert sorted(read_all(store)) == sorted(ids_of([first, other]))
    assert store.predictions.request(RequestKey(1, "default", "r3")) is None


@sqlite_only
def test_of_equal_requests_in_one_batch_the_first_is_written(store: Store):
    entries = [entry("same"), entry(), entry("same"), entry("other"), entry("same")]
    assert store.predictions.append(entries) == (True, True, False, True, False)
    assert sorted(read_all(store)) == sorted(ids_of([entries[0], entries[1], entries[3]]))


@sqlite_only
def test_a_request_belongs_to_model_and_environment(store: Store):
    entries = [entry("r1"), entry("r1", environment="site-a"), entry("r1", model_id=2)]
    assert store.predictions.append(entries) == (True,) * 3
    found = store.predictions.find_request(1, "r1")
    assert [stored.key for stored in found] == [RequestKey(1, "default", "r1"), RequestKey(1, "site-a", "r1")]
    assert [stored.predictions for stored in found] == [entries[0].predictions, entries[1].predictions]
    assert store.predictions.find_request(3, "r1") == []


def test_a_large_request_comes_back_in_its_order(store: Store):
    large = entry("r1", predictions=1203)
    store.predictions.append([large])
    stored = store.predictions.request(RequestKey(1, "default", "r1"))
    assert stored is not None
    assert stored.predictions == large.predictions


def test_many_threads_that_race_for_the_same_requests_write_each_once(store: Store):
    start = threading.Barrier(6)
    written: list[UUID] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        start.wait()
        for _ in range(5):
            # In another order everywhere: nobody may wait in a circle.
            entries = [entry(f"r{index}") for index in rng.permutation(20)]
            outcomes = store.predictions.append(entries)
            written.extend(ids_of([one for one, new in zip(entries, outcomes, strict=True) if new]))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(written) == 20
    assert sorted(read_all(store)) == sorted(written)
    for index in range(20):
        stored = store.predictions.request(RequestKey(1, "default", f"r{index}"))
        assert stored is not None
        assert stored.predictions[0].id in written


def test_a_window_holds_the_newest_predictions_oldest_first(store: Store):
    entries = [entry() for _ in range(10)]
    store.predictions.append(entries[5:])
    store.predictions.append([*entries[:5], entry(environment="site-a"), entry(model_id=2)])
    window = store.predictions.window(1, "default", limit=4, since=LONG_AGO)
    expected = [one.predictions[0] for one in entries[-4:]]
    assert list(window.ids) == [row.id for row in expected]
    assert np.array_equal(window.logits, np.stack([row.logits for row in expected]))
    assert window.logits.dtype == np.float32
    assert window.groups is None
    assert window_ids(store) == ids_of(entries)


@sqlite_only
def test_an_empty_window_has_no_rows(store: Store):
    window = store.predictions.window(1, "default", limit=4, since=LONG_AGO)
    assert (window.ids, window.logits.shape[0], window.groups) == ((), 0, None)


def test_a_window_leaves_out_what_is_older_than_since_to_the_millisecond(store: Store):
    now = datetime.now(UTC).replace(microsecond=0)
    old = [prediction(prediction_id=id_at(now - timedelta(days=age))) for age in (3, 2, 1)]
    store.predictions.append([LogEntry((row,)) for row in old])
    assert window_ids(store, since=now - timedelta(days=2)) == [old[1].id, old[2].id]
    assert window_ids(store, since=now - timedelta(days=2) + timedelta(milliseconds=1)) == [old[2].id]
    assert window_ids(store, since=now - timedelta(days=4)) == [row.id for row in old]


@sqlite_only
def test_samples_without_a_group_stand_for_themselves_in_a_window_with_groups(store: Store):
    hashes = [b"\x01" * 15 + b"\x00", None, b"\x02" * 16, b"\x01" * 15 + b"\x00", None]
    store.predictions.append([LogEntry((prediction(group_hash=one),)) for one in hashes])
    groups = store.predictions.window(1, "default", limit=10, since=LONG_AGO).groups
    assert groups is not None
    assert groups.shape == (5,)
    assert groups[0] == groups[3]
    assert len(set(groups.tolist())) == 4


def test_a_window_read_again_up_to_its_log_position_is_the_same(store: Store):
    store.predictions.append([entry() for _ in range(5)])
    window = store.predictions.window(1, "default", limit=3, since=LONG_AGO)
    late = prediction(prediction_id=UUID(int=window.ids[0].int + 1))
    store.predictions.append([LogEntry((late,)), entry()])
    again = store.predictions.window(1, "default", limit=3, since=LONG_AGO, log_position=window.log_position)
    assert again == window
    assert late.id in window_ids(store)
    assert store.predictions.window(1, "default", limit=3, since=LONG_AGO) != window


def test_counts_between_log_positions_add_up(store: Store):
    log_positions = [store.predictions.log_position()]
    for size in (3, 0, 5):
        store.predictions.append([entry() for _ in range(size)])
        store.predictions.append([entry(environment="site-a"), entry(model_id=2)])
        log_positions.append(store.predictions.log_position())

    def count(start: int, end: int) -> int:
        return store.predictions.count_between(1, "default", log_positions[start], log_positions[end])

    assert [count(0, 1), count(1, 2), count(2, 3), count(0, 3), count(3, 3)] == [3, 0, 5, 8, 0]
    assert store.predictions.count_between(1, "default", 0, log_positions[-1]) == 8


def test_reading_from_log_position_to_log_position_gives_each_row_once_late_ones_included(store: Store):
    log_positions = [store.predictions.log_position()]
    late: UUID | None = None
    written: list[list[UUID]] = []
    for size in (3, 0, 4):
        entries = [entry() for _ in range(size)]
        if late is not None:  # made before all others, committed after them
            entries.append(LogEntry((prediction(prediction_id=late),)))
        late = new_prediction_id()
        store.predictions.append(entries)
        store.predictions.append([entry(environment="site-a"), entry(model_id=2)])
        written.append(sorted(ids_of(entries)))
        log_positions.append(store.predictions.log_position())
    read = [
        store.predictions.between(1, "default", start, end, limit=100)
        for start, end in itertools.pairwise(log_positions)
    ]
    assert [sorted(window.ids) for window in read] == written
    assert [len(ids) for ids in written] == [3, 1, 5]
    assert [window.log_position for window in read] == log_positions[1:]
    whole = store.predictions.between(1, "default", 0, log_positions[-1], limit=100)
    assert sorted(whole.ids) == sorted(itertools.chain(*written))
    assert np.array_equal(whole.logits[:3], read[0].logits)
    assert store.predictions.between(1, "default", log_positions[1], log_positions[1], limit=100).ids == ()


def test_of_more_than_the_limit_those_that_appeared_last_are_read_in_order(store: Store):
    groups = [b"\x01" * 16, None, b"\x01" * 16]
    entries = [LogEntry((prediction(group_hash=one),)) for one in groups]
    for one in (entries[2], entries[0], entries[1]):
        store.predictions.append([one])
    until = store.predictions.log_position()
    window = store.predictions.between(1, "default", 0, until, limit=2)
    assert list(window.ids) == ids_of([entries[0], entries[1]])
    assert window.groups is not None
    assert window.groups.tolist() == [(b"\x01" * 16).hex(), entries[1].predictions[0].id.hex]
    expected = np.stack([one.predictions[0].logits for one in entries[:2]])
    assert np.array_equal(window.logits, expected)


def test_populations_are_those_with_recent_predictions(store: Store):
    first, second = add_model(store, "a"), add_model(store, "b")
    for name in ("site-a", "site-b"):
        store.environments.ensure(name, limit=9)
    now = datetime.now(UTC).replace(microsecond=0)
    old = prediction(first.id, "site-b", prediction_id=id_at(now - timedelta(days=3)))
    store.predictions.append(
        [entry(model_id=second.id), entry(model_id=first.id, environment="site-a"), LogEntry((old,))]
    )
    recent = [(first.id, "site-a"), (second.id, "default")]
    assert store.predictions.populations(now - timedelta(days=1)) == recent
    assert store.predictions.populations(now - timedelta(days=3)) == sorted([*recent, (first.id, "site-b")])


def test_predictions_of_any_day_are_kept(store: Store):
    """On PostgreSQL days without a partition of their own go to the default one."""
    days = [datetime(1999, 1, 1, tzinfo=UTC), datetime.now(UTC), datetime(2100, 12, 31, tzinfo=UTC)]
    rows = [prediction(prediction_id=id_at(day)) for day in days]
    store.predictions.append([LogEntry((row,)) for row in rows])
    assert [store.predictions.get(row.id) for row in rows] == rows
    assert [logged_on(row.id) for row in rows][::2] == [date(1999, 1, 1), date(2100, 12, 31)]
    assert window_ids(store, since=datetime(1990, 1, 1, tzinfo=UTC)) == [row.id for row in rows]
