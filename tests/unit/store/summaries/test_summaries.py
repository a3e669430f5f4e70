"""Summaries hold every row of the log once, in the hour of its prediction, whenever it was committed."""

import functools
import random
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.deploy import FittedQuantifier, WindowSummary, quantifier
from lifelong_core.store import LogEntry, Model, Store
from lifelong_core.store.log.commit_order import align_clock
from lifelong_core.store.log.identifiers import first_id_at, new_prediction_id
from lifelong_core.store.log.writing import insert_entries
from lifelong_core.store.schema import tables
from lifelong_core.store.summaries import folding
from lifelong_core.store.summaries.folding import SummaryFolding
from lifelong_core.store.summaries.summaries import bucket_of
from lifelong_core.values.errors import ConflictError, LifelongError
from tests.databases import sqlite_only
from tests.unit.store.log.test_commit_order import only_postgresql, open_append
from tests.unit.store.samples import LONG_AGO, add_model, calibration, prediction

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
FOREVER = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
HOUR = timedelta(hours=1)
SITE = "default"

_log = tables.predictions
_summaries = tables.window_summaries


@functools.cache
def fitted(method: str = "PACC") -> FittedQuantifier:
    return quantifier(method).fit(calibration())


@pytest.fixture
def model(store: Store) -> Model:
    return add_model(store)


def id_at(moment: datetime) -> UUID:
    return UUID(int=first_id_at(moment).int + new_prediction_id().int % 2**62)


def entries(model: Model, *moments: datetime, group: bytes | None = None) -> list[LogEntry]:
    return [
        LogEntry((prediction(model.id, SITE, prediction_id=id_at(moment), group_hash=group),))
        for moment in moments
    ]


def append(store: Store, model: Model, *moments: datetime, group: bytes | None = None) -> list[UUID]:
    new = entries(model, *moments, group=group)
    store.predictions.append(new)
    return [one.predictions[0].id for one in new]


def fold(store: Store, model: Model, method: str = "PACC", **options: Any) -> int:
    """Fold until there is nothing to do; the number of rows that were read."""
    rows = 0
    for _ in range(300):
        folded = store.summaries.fold(model, SITE, fitted(method), classes=3, **options)
        rows += folded.rows
        if folded.is_done:
            return rows
    raise AssertionError("folding does not end")


def stored(store: Store, model: Model, method: str = "PACC") -> dict[datetime, tuple[int, int]]:
    """Samples and rows left out of each hour."""
    found = store.summaries.window(model.id, SITE, fitted(method).digest, BEGINNING, FOREVER)
    assert all(one.summary is None or one.summary.samples == one.samples for one in found)
    return {one.bucket: (one.samples, one.quarantined) for one in found}


def check(store: Store, model: Model, method: str = "PACC") -> list[str]:
    return store.summaries.check(model, SITE, fitted(method))


def delete(connection: sa.Connection, ids: Sequence[UUID]) -> None:
    connection.execute(sa.delete(_log).where(_log.c.id.in_(ids)))


def test_every_hour_has_the_summary_of_its_rows(store: Store, model: Model):
    append(store, model, NOON, NOON + HOUR, NOON + timedelta(minutes=59, milliseconds=59_999), NOON - HOUR)
    store.predictions.append([LogEntry((prediction(model.id, "elsewhere", prediction_id=id_at(NOON)),))])
    assert fold(store, model) == 4
    assert stored(store, model) == {NOON - HOUR: (1, 0), NOON: (2, 0), NOON + HOUR: (1, 0)}
    assert check(store, model) == []
    assert fold(store, model) == 0
    window = store.predictions.window(model.id, SITE, limit=10, since=NOON)
    found = store.summaries.newest(model.id, SITE, fitted(), samples=3, since=LONG_AGO)
    assert found is not None
    assert found.buckets == (NOON, NOON + HOUR)
    expected = fitted().summarize(window.logits)
    assert np.array_equal(found.summary.counts, expected.counts)
    assert np.allclose(found.summary.feature_sums, expected.feature_sums, rtol=1e-9)


@sqlite_only
@pytest.mark.parametrize("limit", [1, 1000])
def test_rows_that_come_late_go_to_their_old_hour(store: Store, model: Model, limit: int):
    append(store, model, NOON, NOON + HOUR)
    assert fold(store, model, limit=limit) == 2
    append(store, model, NOON - 5 * HOUR, NOON, NOON + 3 * HOUR)
    assert fold(store, model, limit=limit) == 3
    expected = {NOON - 5 * HOUR: (1, 0), NOON: (2, 0), NOON + HOUR: (1, 0), NOON + 3 * HOUR: (1, 0)}
    assert stored(store, model) == expected
    assert check(store, model) == []


@sqlite_only
def test_a_clock_that_jumps_loses_nothing_whatever_time_it_says(store: Store, model: Model):
    future = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + 2 * HOUR
    times = (future, datetime(9999, 12, 31, 23, 30, tzinfo=UTC), BEGINNING, NOON)
    append(store, model, *times)
    assert fold(store, model) == 4
    append(store, model, *times)
    assert fold(store, model) == 4
    assert {bucket: samples for bucket, (samples, _) in stored(store, model).items()} == {
        bucket_of(id_at(moment)): 2 for moment in times
    }
    assert check(store, model) == []
    with store.database.write() as connection:
        store.summaries.mark_stale(connection)
    fold(store, model)
    assert len(stored(store, model)) == 4
    assert check(store, model) == []


@pytest.mark.parametrize(
    ("limit", "value", "rows"), [("MOST_HOURS", 5, 10), ("MOST_CELLS_WRITTEN", 9, 8), ("MOST_HOURS", 12, 24)]
)
def test_rows_of_very_many_hours_are_written_in_several_transactions(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, rows: int
):
    monkeypatch.setattr(folding, limit, value)
    append(store, model, *(NOON + (index % 12) * HOUR for index in range(24)))
    first = [store.summaries.fold(model, SITE, fitted(), classes=3) for _ in range(2)][1]
    assert (first.rows, first.is_done) == (rows, rows == 24)
    # What the hours hold already is written with them.
    append(store, model, *(NOON + index * HOUR for index in range(12)))
    fold(store, model)
    assert set(stored(store, model).values()) == {(3, 0)}
    assert check(store, model) == []


@only_postgresql
def test_a_commit_that_comes_late_with_smaller_ids_is_folded(store: Store, model: Model):
    slow, fast = entries(model, NOON, NOON), entries(model, NOON, NOON + HOUR)
    with open_append(store, slow):
        store.predictions.append(fast)
        assert fold(store, model) == 0
    assert fold(store, model) == 4
    assert check(store, model) == []


@sqlite_only
def test_the_check_catches_a_reader_that_goes_by_ids(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch
):
    """Positive control of all tests in which nothing is skipped."""
    newest = [UUID(int=0)]

    def by_id(connection: sa.Connection, *_: object) -> Sequence[Any]:
        query = sa.select(_log).where(_log.c.id > newest[0]).order_by(_log.c.id)
        rows = connection.execute(query).all()
        newest[0] = max([newest[0], *(row.id for row in rows)])
        return rows

    monkeypatch.setattr(folding, "next_rows", by_id)
    append(store, model, NOON, NOON + HOUR)
    fold(store, model)
    assert check(store, model) == []
    append(store, model, NOON, NOON + 2 * HOUR)
    fold(store, model)
    (problem,) = check(store, model)
    assert "12:00 UTC" in problem
    assert "counts 1 samples" in problem


@sqlite_only
def test_the_check_catches_rows_that_are_read_twice(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch
):
    append(store, model, NOON, NOON + HOUR)
    fold(store, model)
    real = SummaryFolding.advance

    def from_the_beginning(self: SummaryFolding, cursor: Any) -> Any:
        step = real(self, type(cursor)(1, None, cursor.is_grouped, cursor.revision))
        return type(step)(cursor, step.hours, step.rows)

    monkeypatch.setattr(SummaryFolding, "advance", from_the_beginning)
    fold(store, model)
    assert len(check(store, model)) == 2


def test_folding_among_delayed_writers_by_two_at_once_skips_and_repeats_nothing(store: Store, model: Model):
    writers, batches = 3, 8
    is_done = threading.Event()
    written, lost = list[int](), list[ConflictError]()

    def write(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(batches):
            batch = entries(model, *(NOON + rng.randint(0, 4) * HOUR for _ in range(rng.randint(1, 4))))
            with store.database.write() as connection:
                insert_entries(connection, batch)
                time.sleep(rng.uniform(0, 0.01))
            written.append(len(batch))

    def read() -> None:
        while not is_done.is_set():
            try:
                store.summaries.fold(model, SITE, fitted(), classes=3, limit=5)
            except ConflictError as error:
                lost.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(writers)]
    for thread in [*readers, *threads]:
        thread.start()
    for thread in threads:
        thread.join()
    is_done.set()
    for thread in readers:
        thread.join()
    fold(store, model, limit=5)
    assert sum(samples for samples, _ in stored(store, model).values()) == sum(written)
    assert check(store, model) == []


def test_of_two_that_fold_the_same_rows_one_wins(store: Store, model: Model, monkeypatch: pytest.MonkeyPatch):
    append(store, model, NOON)
    fold(store, model)
    append(store, model, NOON)
    meanwhile(monkeypatch, lambda: fold(store, model))
    with pytest.raises(ConflictError, match="changed"):
        fold(store, model)
    assert stored(store, model) == {NOON: (2, 0)}
    assert check(store, model) == []


def meanwhile(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Let something happen, once, after the next step was computed and before it is written."""
    for name in ("advance", "rebuild_hour"):
        real = getattr(SummaryFolding, name)

        def then(self: SummaryFolding, *arguments: Any, real: Any = real) -> Any:
            step = real(self, *arguments)
            monkeypatch.undo()
            happens()
            return step

        monkeypatch.setattr(SummaryFolding, name, then)


@sqlite_only
def test_at_the_first_row_with_a_group_all_is_made_anew(store: Store, model: Model):
    append(store, model, NOON, NOON, NOON + HOUR)
    fold(store, model)
    append(store, model, NOON, NOON + HOUR, group=b"a" * 16)
    assert fold(store, model) == 5
    assert stored(store, model) == {NOON: (3, 0), NOON + HOUR: (2, 0)}
    assert check(store, model) == []
    found = store.summaries.newest(model.id, SITE, fitted(), samples=5, since=LONG_AGO)
    assert found is not None
    assert found.is_grouped
    window = store.predictions.window(model.id, SITE, limit=10, since=LONG_AGO)
    assert found.summary.groups == fitted().summarize(window.logits, window.groups).groups
    append(store, model, NOON + 2 * HOUR)
    assert fold(store, model) == 1
    assert check(store, model) == []


@pytest.mark.parametrize("grouped", [False, True])
def test_deleted_rows_leave_the_summaries_with_the_log(store: Store, model: Model, grouped: bool):
    ids = append(store, model, NOON, NOON, NOON + HOUR, group=b"a" * 16 if grouped else None)
    append(store, model, NOON + 2 * HOUR)
    fold(store, model)
    with store.database.write() as connection:
        delete(connection, ids[1:])
        buckets = [bucket_of(one) for one in ids[1:]]
        store.summaries.mark_stale(connection, model_id=model.id, environment=SITE, buckets=buckets)
    assert store.summaries.are_behind(model.id, SITE)
    assert store.summaries.newest(model.id, SITE, fitted(), samples=9, since=LONG_AGO) is None
    newest = store.summaries.newest(model.id, SITE, fitted(), samples=1, since=LONG_AGO)
    assert newest is not None
    assert newest.buckets == (NOON + 2 * HOUR,)
    fold(store, model)
    assert stored(store, model) == {NOON: (1, 0), NOON + 2 * HOUR: (1, 0)}
    assert check(store, model) == []
    assert not store.summaries.are_behind(model.id, SITE)


@sqlite_only
def test_deletions_of_which_nobody_says_are_found_by_the_check(store: Store, model: Model):
    ids = append(store, model, NOON, NOON, NOON + HOUR)
    fold(store, model)
    with store.database.write() as connection:
        delete(connection, ids[1:])
    assert len(check(store, model)) == 2
    assert "the log has no rows" in check(store, model)[1]


@pytest.mark.parametrize("is_stale", [False, True], ids=["new rows", "hour made anew"])
def test_rows_that_are_deleted_while_they_are_being_read_do_not_come_back(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch, is_stale: bool
):
    append(store, model, NOON)
    fold(store, model)
    ids = append(store, model, NOON, NOON + HOUR)

    def erase() -> None:
        with store.database.write() as connection:
            delete(connection, ids)
            buckets = [bucket_of(one) for one in ids]
            store.summaries.mark_stale(connection, model_id=model.id, environment=SITE, buckets=buckets)

    if is_stale:
        fold(store, model)
        with store.database.write() as connection:
            store.summaries.mark_stale(connection, until=NOON + HOUR)
    meanwhile(monkeypatch, erase)
    with pytest.raises(ConflictError):
        fold(store, model)
    fold(store, model)
    assert stored(store, model) == {NOON: (1, 0)}
    assert check(store, model) == []


@pytest.fixture
def abandoned_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifelong_core.store.summaries.summaries.ABANDONED_SECONDS", 0.0)


def test_two_monitors_with_different_quantifiers_keep_their_summaries_both(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch
):
    """Each adds what is new; only when one has stopped to do so for long, the other drops what it left."""
    with Store.open(store.database.url.render_as_string(hide_password=False), "memory://other") as elsewhere:
        for rows in (1, 2, 3):
            append(store, model, NOON)
            assert fold(store, model) == 1
            assert fold(elsewhere, model, "ACC") == 1
            assert stored(store, model) == stored(store, model, "ACC") == {NOON: (rows, 0)}
        assert not store.summaries.are_behind(model.id, SITE)
        monkeypatch.setattr("lifelong_core.store.summaries.summaries.ABANDONED_SECONDS", 0.0)
        assert fold(store, model) == 0
        assert stored(store, model, "ACC") == {NOON: (3, 0)}, "they have grown since it looked last"
        assert fold(store, model) == 0
        assert stored(store, model, "ACC") == {}


@sqlite_only
@pytest.mark.usefixtures("abandoned_at_once")
def test_another_quantifier_has_summaries_of_its_own_and_those_of_the_old_one_go(store: Store, model: Model):
    append(store, model, NOON, NOON + HOUR)
    fold(store, model)
    assert fold(store, model, "ACC") == 2
    assert stored(store, model) == {}
    assert stored(store, model, "ACC") == {NOON: (1, 0), NOON + HOUR: (1, 0)}
    assert check(store, model, "ACC") == []
    append(store, model, NOON)
    # Who still has the old quantifier begins anew, and neither mixes the two up.
    assert fold(store, model) == 3
    assert check(store, model) == []


@pytest.mark.usefixtures("abandoned_at_once")
def test_who_still_folds_with_a_quantifier_whose_summaries_are_being_dropped_begins_anew(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("lifelong_core.store.summaries.folding._DROPPED_AT_ONCE", 1)
    append(store, model, NOON, NOON + HOUR, NOON + 2 * HOUR)
    fold(store, model)
    while len(stored(store, model)) == 3:
        store.summaries.fold(model, SITE, fitted("ACC"), classes=3)
    assert len(stored(store, model)) == 2
    assert store.summaries.newest(model.id, SITE, fitted(), samples=9, since=LONG_AGO) is None
    append(store, model, NOON)
    fold(store, model)
    assert stored(store, model) == {NOON: (2, 0), NOON + HOUR: (1, 0), NOON + 2 * HOUR: (1, 0)}
    assert check(store, model) == []


def test_who_lost_the_lease_writes_nothing(store: Store, model: Model):
    append(store, model, NOON)
    lost = store.leases.acquire("cycle", "one", 0.05)
    time.sleep(0.1)
    valid = store.leases.acquire("cycle", "two", 60)
    for _ in range(2):
        with pytest.raises(ConflictError) as refused:
            fold(store, model, lease=lost)
        assert refused.value.field == "lease"
        assert stored(store, model) == {}
        # The second time the cursor is there, and rows would be written.
        store.summaries.fold(model, SITE, fitted(), classes=3, lease=valid)
        with store.database.write() as connection:
            connection.execute(sa.delete(_summaries))
            connection.execute(sa.update(tables.summary_cursors).values(commit_order=0, last_id=None))
    assert fold(store, model, lease=valid) == 1


def test_a_step_that_takes_longer_than_its_lease_is_written_if_the_lease_was_renewed(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch
):
    fold(store, model)
    append(store, model, NOON)
    lease = store.leases.acquire("cycle", "one", 1)
    assert lease is not None
    meanwhile(monkeypatch, lambda: (store.leases.renew(lease, 60), time.sleep(1.1)))
    assert fold(store, model, lease=lease) == 1


@sqlite_only
def test_rows_that_cannot_be_judged_are_left_out_and_counted(store: Store, model: Model):
    ids = append(store, model, *(NOON,) * 6, NOON + HOUR)
    hostile = {
        ids[0]: np.array([np.nan, 0, 1], "<f4").tobytes(),
        ids[1]: np.array([np.inf, 0, 1], "<f4").tobytes(),
        ids[2]: np.array([2, 2, 2], "<f4").tobytes(),
        ids[3]: np.array([1, 2], "<f4").tobytes(),
        ids[4]: b"abc",
        ids[6]: b"",
    }
    with store.database.write() as connection:
        for one, blob in hostile.items():
            connection.execute(sa.update(_log).where(_log.c.id == one).values(logits=blob))
    assert fold(store, model) == 7
    assert stored(store, model) == {NOON: (1, 5), NOON + HOUR: (0, 1)}
    assert check(store, model) == []
    found = store.summaries.newest(model.id, SITE, fitted(), samples=9, since=LONG_AGO)
    assert found is not None
    assert (found.summary.samples, found.quarantined) == (1, 6)


@pytest.mark.parametrize("damage", [b"no summary", None], ids=["text", "of another"])
def test_a_damaged_summary_is_made_anew(store: Store, model: Model, damage: bytes | None):
    append(store, model, NOON, NOON + HOUR)
    fold(store, model)
    content = fitted("ACC").summarize(calibration().logits).to_bytes() if damage is None else damage

    def break_it() -> None:
        with store.database.write() as connection:
            connection.execute(
                sa.update(_summaries).where(_summaries.c.bucket == NOON).values(summary=content)
            )

    break_it()
    assert "damaged" in check(store, model)[0]
    assert store.summaries.newest(model.id, SITE, fitted(), samples=9, since=LONG_AGO) is None
    fold(store, model)
    assert check(store, model) == []
    break_it()
    append(store, model, NOON)
    fold(store, model)
    assert stored(store, model) == {NOON: (2, 0), NOON + HOUR: (1, 0)}
    assert check(store, model) == []


@sqlite_only
def test_the_check_sees_small_differences(store: Store, model: Model):
    append(store, model, *(NOON,) * 20)
    fold(store, model)
    (hour,) = store.summaries.window(model.id, SITE, fitted().digest, NOON, FOREVER)
    assert hour.summary is not None

    def found(**changes: Any) -> list[str]:
        values = {name: getattr(hour.summary, name) for name in hour.summary.__dataclass_fields__} | changes
        with store.database.write() as connection:
            content = WindowSummary(**values).to_bytes()
            connection.execute(sa.update(_summaries).values(summary=content))
        return check(store, model)

    assert found() == []
    assert found(moments=hour.summary.moments + 1e-10) == []
    for name in ("moments", "feature_sums", "logit_sums"):
        assert name in found(**{name: getattr(hour.summary, name) + 1e-6})[0]
    moved = hour.summary.counts.copy()
    moved[0] += 1
    moved[-1] = max(1, moved[-1] - 1)
    assert "cells" in found(counts=moved)[0]


def test_a_window_is_made_of_the_newest_whole_hours(store: Store, model: Model):
    append(store, model, *(NOON,) * 3, *(NOON + HOUR,) * 2, *(NOON + 5 * HOUR,) * 2)
    fold(store, model)

    def hours(samples: int, since: datetime = LONG_AGO) -> list[int]:
        found = store.summaries.newest(model.id, SITE, fitted(), samples=samples, since=since)
        assert found is not None
        assert found.summary.samples == len(
            [one for one in window.ids if bucket_of(one) in set(found.buckets)]
        )
        return [(bucket - NOON) // HOUR for bucket in found.buckets]

    window = store.predictions.window(model.id, SITE, limit=10, since=LONG_AGO)
    assert hours(1) == hours(2) == [5]
    assert hours(3) == hours(4) == [1, 5]
    assert hours(5) == hours(100) == [0, 1, 5]
    assert hours(100, NOON + timedelta(seconds=1)) == [1, 5]
    assert hours(100, NOON + 6 * HOUR) == []


@sqlite_only
def test_a_window_of_the_past_can_be_made_again(store: Store, model: Model):
    append(store, model, NOON, NOON, NOON + HOUR, NOON + 3 * HOUR, group=b"g" * 16)
    fold(store, model)
    past = store.summaries.newest(model.id, SITE, fitted(), samples=2, since=LONG_AGO)
    assert past is not None
    append(store, model, NOON, NOON + HOUR, NOON + 2 * HOUR, NOON + 7 * HOUR)
    fold(store, model)
    again = store.summaries.rebuilt_window(
        model.id,
        SITE,
        fitted(),
        since=past.buckets[0],
        until=past.buckets[-1] + HOUR,
        log_position=past.log_position,
        is_grouped=past.is_grouped,
    )
    assert again.buckets == past.buckets == (NOON + HOUR, NOON + 3 * HOUR)
    assert again.log_position == past.log_position
    assert np.array_equal(again.summary.counts, past.summary.counts)
    assert again.summary.groups == past.summary.groups
    assert np.allclose(again.summary.moments, past.summary.moments, rtol=1e-9)


@sqlite_only
def test_before_anything_is_folded_there_is_nothing_to_read_or_to_check(store: Store, model: Model):
    append(store, model, NOON)
    assert store.summaries.are_behind(model.id, SITE)
    assert store.summaries.newest(model.id, SITE, fitted(), samples=1, since=LONG_AGO) is None
    assert check(store, model) == []


def test_a_failure_in_the_middle_leaves_nothing_half_done(
    store: Store, model: Model, monkeypatch: pytest.MonkeyPatch
):
    append(store, model, NOON, NOON + HOUR)
    store.summaries.fold(model, SITE, fitted(), classes=3)
    execute = sa.Connection.execute

    def fails_at_the_second(connection: sa.Connection, statement: Any, *arguments: Any, **more: Any) -> Any:
        if "INSERT INTO window_summaries" in str(statement):
            inserts.append(statement)
            if len(inserts) == 2:
                raise LifelongError("the disk is full.")
        return execute(connection, statement, *arguments, **more)

    inserts: list[Any] = []
    with monkeypatch.context() as patched:
        patched.setattr(sa.Connection, "execute", fails_at_the_second)
        with pytest.raises(LifelongError, match="disk"):
            fold(store, model)
    assert len(inserts) == 2
    assert stored(store, model) == {}
    assert fold(store, model) == 2
    assert check(store, model) == []


@only_postgresql
def test_a_log_restored_on_a_new_server_goes_on_being_folded(store: Store, model: Model):
    """A cursor may lie far above the newest row: it counts when the clock of the commits is set."""
    append(store, model, NOON)
    fold(store, model)
    with store.database.write() as connection:
        cursor = tables.summary_cursors
        connection.execute(sa.update(cursor).values(commit_order=cursor.c.commit_order + 1_000_000))
    append(store, model, NOON)
    assert fold(store, model) == 0  # why it has to count
    with store.database.write() as connection:
        align_clock(connection)
    append(store, model, NOON)
    assert fold(store, model) == 1
