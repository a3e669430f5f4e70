"""Waiting for changes: notified at once on PostgreSQL, and never slower than polling."""

import os
import resource
import threading
import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from lifelong_core.store import Store
from lifelong_core.store.registry.changes import Changes
from tests.unit.store.samples import add_serving_model, head

LONG = 30.0
"""Seconds that no test waits for if all is well."""


@pytest.fixture
def changes(store: Store) -> Iterator[Changes]:
    opened = store.changes()
    yield opened
    opened.close()


def listeners(store: Store) -> list[int]:
    """The server processes of the connections that listen."""
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'lifelong listener' AND state = 'idle'"
    with store.database.read() as connection:
        return list(connection.execute(sa.text(query)).scalars())


def eventually_one_listener(store: Store, *, other_than: int = 0) -> int:
    deadline = time.monotonic() + LONG
    while not (found := [pid for pid in listeners(store) if pid != other_than]):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found[0]


def waited(changes: Changes) -> float:
    began = time.monotonic()
    changes.wait(LONG)
    return time.monotonic() - began


def test_a_wait_ends_after_its_time(changes: Changes):
    changes.wait(0.01)  # a listener that has just begun may end the first one early
    changes.wait(0.01)


def test_closing_ends_a_wait_and_all_later_ones(changes: Changes):
    threading.Timer(0.1, changes.close).start()
    changes.wait(0.05)
    assert waited(changes) < LONG / 2
    assert waited(changes) < LONG / 2
    changes.close()


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_a_change_is_told_when_it_is_committed_and_not_before(store: Store, changes: Changes):
    add_serving_model(store)
    eventually_one_listener(store)
    while waited_briefly(changes):
        pass
    threading.Timer(
        0.1, lambda: store.heads.publish("dermatology", head(1), environment=None, actor="me")
    ).start()
    known = store.revision()
    assert waited(changes) < LONG / 2
    assert store.registry(known) is not None, "it can be read when it is told"


def waited_briefly(changes: Changes) -> bool:
    """Whether something was told within a moment."""
    began = time.monotonic()
    changes.wait(0.2)
    return time.monotonic() - began < 0.2


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_a_change_that_is_rolled_back_or_no_workers_business_is_not_told(store: Store, changes: Changes):
    add_serving_model(store)
    eventually_one_listener(store)
    while waited_briefly(changes):
        pass
    with pytest.raises(Exception, match="changed meanwhile"):
        store.heads.publish("dermatology", head(1), environment=None, actor="me", expected_sequence=9)
    store.workers.forget("nobody")
    assert not waited_briefly(changes)


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_a_lost_listener_is_opened_again_and_what_it_missed_is_asked_for(store: Store, changes: Changes):
    add_serving_model(store)
    first = eventually_one_listener(store)
    while waited_briefly(changes):
        pass
    with store.database.write() as connection:
        connection.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": first})
    # The new listener ends the wait by itself: nobody told it what happened in between.
    assert waited(changes) < LONG / 2
    eventually_one_listener(store, other_than=first)
    while waited_briefly(changes):
        pass
    store.tokens.create("fresh", ["read"], actor="me")  # type: ignore[list-item]
    assert waited(changes) < LONG / 2


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_a_process_with_many_open_files_is_told_too(store: Store):
    """`select` takes descriptors below 1024 only."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        changes = store.changes()
        eventually_one_listener(store)
        add_serving_model(store)
        assert waited(changes) < LONG
        changes.close()
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_a_closed_listener_leaves_no_connection(store: Store):
    opened = store.changes()
    eventually_one_listener(store)
    opened.close()
    deadline = time.monotonic() + LONG
    while listeners(store):
        assert time.monotonic() < deadline
        time.sleep(0.02)
