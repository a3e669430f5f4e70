"""A reader in commit order skips no row and reads none twice, however late commits come."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest
import sqlalchemy as sa

from lifelong_core.store import LogEntry, LogPosition, Store
from lifelong_core.store.log.commit_order import align_clock
from lifelong_core.store.log.writing import insert_entries
from lifelong_core.store.schema import tables
from tests.unit.store.samples import LONG_AGO, entry, ids_of, prediction, read_all

only_postgresql = pytest.mark.parametrize("kind", ["postgresql"], indirect=True)


@contextmanager
def open_append(store: Store, entries: list[LogEntry]) -> Iterator[None]:
    """Write the entries, and commit only at the end of the block."""
    with store.database.write() as connection:
        insert_entries(connection, entries)
        yield


def test_rows_come_in_commit_order_in_pages_of_any_size(store: Store):
    batches = [[entry(model_id=index % 2 + 1) for _ in range(index)] for index in (3, 1, 4)]
    for batch in reversed(batches):
        store.predictions.append(batch)
    expected = [one for batch in reversed(batches) for one in ids_of(batch)]
    for limit in (1, 2, 3, 100):
        assert list(read_all(store, limit=limit)) == expected


def test_a_reader_without_news_keeps_its_position(store: Store):
    assert store.predictions.read_since(None, limit=5) == ([], None)
    store.predictions.append([entry()])
    rows, position = store.predictions.read_since(None, limit=5)
    assert [row.id for row in rows] == list(read_all(store))
    assert isinstance(position, LogPosition)
    assert store.predictions.read_since(position, limit=5) == ([], position)


@only_postgresql
def test_a_commit_that_comes_late_with_smaller_ids_is_not_skipped(store: Store):
    """Positive control: a reader that goes by ids does skip it."""
    slow, fast = [entry(), entry()], [entry(), entry()]
    assert max(ids_of(slow)) < min(ids_of(fast))
    with open_append(store, slow):
        store.predictions.append(fast)
        log_position = store.predictions.log_position()
        seen, position = store.predictions.read_since(None, limit=10)
        # The fast rows are behind the log position: something older may still appear before them.
        assert seen == []
        naive_seen = read_by_id(store, after=None)
        assert naive_seen == ids_of(fast)
    assert set(read_all(store, position=position)) == set(ids_of([*slow, *fast]))
    assert read_by_id(store, after=naive_seen[-1]) == []
    assert store.predictions.count_between(1, "default", 0, log_position) == 0


@only_postgresql
def test_a_window_leaves_out_what_could_change_and_stays_the_same(store: Store):
    store.predictions.append([entry() for _ in range(3)])
    with open_append(store, [entry()]):
        store.predictions.append([entry()])
        during = store.predictions.window(1, "default", limit=10, since=LONG_AGO)
    assert len(during.ids) == 3
    again = store.predictions.window(1, "default", limit=10, since=LONG_AGO, log_position=during.log_position)
    assert again == during
    assert len(store.predictions.window(1, "default", limit=10, since=LONG_AGO).ids) == 5


@only_postgresql
def test_a_transaction_that_is_rolled_back_holds_nobody_up(store: Store):
    def append_and_fail() -> None:
        with open_append(store, [entry()]):
            store.predictions.append([entry()])
            assert list(read_all(store)) == []
            raise RuntimeError

    with pytest.raises(RuntimeError):
        append_and_fail()
    assert len(list(read_all(store))) == 1


def test_a_reader_among_delayed_writers_sees_every_row_once(store: Store):
    writers, batches = 4, 12
    written: list[UUID] = []
    is_done = threading.Event()
    start = threading.Barrier(writers + 1)

    def write(seed: int) -> None:
        rng = random.Random(seed)
        start.wait()
        for _ in range(batches):
            entries = [entry(model_id=rng.randint(1, 2)) for _ in range(rng.randint(1, 4))]
            time.sleep(rng.uniform(0, 0.004))
            with open_append(store, entries):
                time.sleep(rng.uniform(0, 0.006))
            written.extend(ids_of(entries))

    # Its id is smaller than all others, and it comes last, whatever the load of the machine.
    latecomer = [entry()]
    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(writers)]
    for thread in threads:
        thread.start()
    seen: list[UUID] = []
    by_id: list[UUID] = []
    position: LogPosition | None = None
    start.wait()
    while True:
        is_last = is_done.is_set()
        rows, position = store.predictions.read_since(position, limit=5)
        seen += [row.id for row in rows]
        by_id += read_by_id(store, after=by_id[-1] if by_id else None)
        if is_last and not rows:
            break
        if not is_done.is_set() and by_id and not any(thread.is_alive() for thread in threads):
            store.predictions.append(latecomer)
            written.extend(ids_of(latecomer))
            is_done.set()
    assert len(seen) == len(set(seen))
    assert sorted(seen) == sorted(written)
    # Positive control: the same reader, going by ids, has skipped rows.
    assert set(written) - set(by_id) >= set(ids_of(latecomer))


def test_each_transaction_has_a_commit_order_of_its_own_below_the_next_log_position(store: Store):
    for _ in range(3):
        before = store.predictions.log_position()
        batch = [entry() for _ in range(3)]
        store.predictions.append(batch)
        order = commit_orders(store)
        assert {order[one] for one in ids_of(batch)} == {max(order.values())}
        assert before <= max(order.values()) < store.predictions.log_position()


@only_postgresql
def test_a_log_restored_on_a_new_server_goes_on_in_order(store: Store):
    """The transaction ids of a new server start again from a small number."""
    store.predictions.append([entry(), entry()])
    with store.database.write() as connection:
        ahead = tables.predictions.c.commit_order + 1_000_000
        connection.execute(sa.update(tables.predictions).values(commit_order=ahead))
    assert list(read_all(store)) == []
    with store.database.write() as connection:
        align_clock(connection)
    restored, position = store.predictions.read_since(None, limit=10)
    assert len(restored) == 2
    news = [entry()]
    store.predictions.append(news)
    assert list(read_all(store, position=position)) == ids_of(news)


def test_aligning_an_ordinary_log_changes_nothing(store: Store):
    store.predictions.append([entry()])
    before = offset(store)
    with store.database.write() as connection:
        align_clock(connection)
    assert offset(store) == before


def test_a_position_sorts_like_the_log():
    first, second = sorted([prediction().id, prediction().id])
    assert LogPosition(1, second) < LogPosition(2, first) < LogPosition(2, second)


def offset(store: Store) -> int:
    with store.database.read() as connection:
        return connection.execute(sa.select(tables.commit_clock.c.value)).scalar_one()


def commit_orders(store: Store) -> dict[UUID, int]:
    with store.database.read() as connection:
        rows = connection.execute(sa.select(tables.predictions.c.id, tables.predictions.c.commit_order))
        return {row.id: row.commit_order for row in rows}


def read_by_id(store: Store, *, after: UUID | None) -> list[UUID]:
    """What a naive reader would do: remember the last id."""
    identity = tables.predictions.c.id
    query = sa.select(identity).order_by(identity)
    with store.database.read() as connection:
        return list(connection.execute(query if after is None else query.where(identity > after)).scalars())
