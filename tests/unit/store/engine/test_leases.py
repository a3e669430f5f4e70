"""One holder at a time, whatever the clocks say; a holder that was suspended for too long writes nothing."""

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest
import sqlalchemy as sa

from lifelong_core.store import Store
from lifelong_core.store.engine.leases import Lease, hold_lease
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, UnavailableError
from tests.databases import sqlite_only
from tests.unit.store.samples import add_serving_model, cycle, head

NAME = "cycle/1/site-a"


def acquire(store: Store, holder: str = "one", seconds: float = 60) -> Lease:
    lease = store.leases.acquire(NAME, holder, seconds)
    assert lease is not None
    return lease


def move_clock(store: Store, hours: float) -> None:
    """What the others see when the clock by which the row was written was ahead by so much."""
    column = tables.leases.c.expires_at
    with store.database.write() as connection:
        (at,) = connection.execute(sa.select(column)).scalars()
        connection.execute(sa.update(tables.leases).values(expires_at=at + timedelta(hours=hours)))


def holds(store: Store, lease: Lease) -> bool:
    try:
        with store.database.write() as connection:
            hold_lease(connection, lease)
    except ConflictError as error:
        return error.field != "lease"
    return True


def test_one_has_it_until_it_is_given_back(store: Store):
    lease = acquire(store)
    assert store.leases.acquire(NAME, "two", 60) is None
    assert store.leases.acquire("cycle/1/other", "two", 60) is not None
    assert holds(store, lease)
    store.leases.release(lease)
    second = acquire(store, "two")
    assert second.token > lease.token
    assert not holds(store, lease)
    store.leases.release(lease)  # by who lost it: nothing happens
    assert holds(store, second)


def test_when_its_time_is_over_another_takes_it_and_the_first_can_do_nothing(store: Store):
    lease = acquire(store, seconds=0.2)
    time.sleep(0.25)
    second = acquire(store, "two")
    assert second.token > lease.token
    assert not holds(store, lease)
    with pytest.raises(ConflictError, match="was lost"):
        store.leases.renew(lease, 60)
    assert holds(store, second)


def test_a_holder_that_was_away_too_long_gives_up_by_itself(store: Store):
    """Nobody has taken over yet, but somebody may be about to."""
    lease = acquire(store, seconds=0.1)
    time.sleep(0.15)
    assert not holds(store, lease)
    with pytest.raises(ConflictError):
        store.leases.renew(lease, 60)


def test_renewing_prolongs_it(store: Store):
    lease = store.leases.renew(acquire(store, seconds=1), 60)
    time.sleep(1.1)
    assert store.leases.acquire(NAME, "two", 60) is None
    assert holds(store, lease)


@pytest.mark.parametrize("hours", [-1.0, 1.0], ids=["forwards", "backwards"])
def test_a_clock_that_jumps_by_an_hour_lets_others_in_at_once_and_never_two_write(store: Store, hours: float):
    lease = acquire(store)
    move_clock(store, hours)
    assert holds(store, lease)  # nobody has taken over: the holder knows by its own clock that it is in time
    second = acquire(store, "two")
    assert not holds(store, lease)
    assert holds(store, second)
    assert store.leases.acquire(NAME, "three", 60) is None


def test_a_clock_that_is_corrected_a_little_takes_no_lease_away(store: Store):
    lease = acquire(store)
    move_clock(store, 30 / 3600)
    assert store.leases.acquire(NAME, "two", 60) is None
    assert holds(store, lease)


def test_a_long_lease_is_not_taken_for_a_wrong_clock_by_who_asks_for_a_short_one(store: Store):
    acquire(store, seconds=3600)
    assert store.leases.acquire(NAME, "two", 1) is None


def test_of_many_that_come_at_once_one_gets_it(store: Store):
    start = threading.Barrier(6)
    got: list[Lease] = []

    def work(number: int) -> None:
        start.wait()
        lease = store.leases.acquire(NAME, f"holder {number}", 60)
        if lease is not None:
            got.append(lease)

    for _ in range(3):
        got.clear()
        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 1
        store.leases.release(got[0])


@pytest.mark.parametrize("outcome", ["keep", "swap"])
def test_a_cycle_is_recorded_only_under_the_lease(store: Store, outcome: str):
    model, _ = add_serving_model(store)
    mine, candidate = cycle(model, outcome=outcome), head(1) if outcome == "swap" else None
    lease = acquire(store, seconds=0.1)
    time.sleep(0.15)
    second = acquire(store, "two")
    before = (store.registry(), store.audit.list())
    with pytest.raises(ConflictError) as lost:
        store.cycles.finish(mine, candidate=candidate, expected_sequence=0, lease=lease)
    assert lost.value.field == "lease"
    assert (store.registry(), store.audit.list(), store.cycles.list()) == (*before, [])
    recorded = store.cycles.finish(mine, candidate=candidate, expected_sequence=0, lease=second)
    assert store.cycles.list() == [recorded]


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_a_process_that_is_stopped_within_its_transaction_holds_nobody_up(store: Store):
    lease = acquire(store, seconds=0.3)

    def write_and_be_stopped() -> None:
        with store.database.write() as connection:
            hold_lease(connection, lease)
            time.sleep(1)
            connection.execute(sa.select(1))

    with pytest.raises(UnavailableError):
        write_and_be_stopped()
    assert acquire(store, "two").token > lease.token


_HOLDER = """
import sys
from lifelong_core.store import Store
from lifelong_core.store.engine.leases import hold_lease
from lifelong_core.values.errors import ConflictError
store = Store.open(sys.argv[1], sys.argv[2])
lease = store.leases.acquire("cycle/1/site-a", "stopped", float(sys.argv[3]))
print("has it", flush=True)
sys.stdin.readline()
try:
    with store.database.write() as connection:
        hold_lease(connection, lease)
except ConflictError:
    print("lost it", flush=True)
else:
    print("wrote", flush=True)
"""


@pytest.mark.parametrize(("seconds", "stopped_for", "said"), [(60, 0, "wrote\n"), (0.5, 0.7, "lost it\n")])
@sqlite_only
def test_a_process_that_was_stopped_too_long_writes_nothing(
    store: Store, artifacts_url: str, seconds: float, stopped_for: float, said: str
):
    """Positive control: one that was not stopped writes."""
    url = str(store.database.url)
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, url, artifacts_url, str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "has it\n"
        if stopped_for:
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(stopped_for)
            os.kill(process.pid, signal.SIGCONT)
        assert process.communicate("\n", timeout=20)[0] == said
