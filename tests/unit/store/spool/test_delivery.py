"""From the spool into the log: each prediction once, whatever process dies, and no erased one."""

import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
import sqlalchemy as sa

from lifelong_core.store import LogEntry, RequestKey, Store
from lifelong_core.store.log.delivery import DeliveryOutcome, deliver_entries
from lifelong_core.store.log.identifiers import first_id_at
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError
from tests.unit.store.samples import entry, ids_of, prediction, read_all
from tests.unit.store.spool.waiting import drain, filled, open_spool, requests


def grouped(group: bytes | None, *, age: timedelta = timedelta(0), request: str | None = None) -> LogEntry:
    identity = UUID(int=first_id_at(datetime.now(UTC) - age).int + prediction().id.int % 2**62)
    row = prediction(group_hash=group, prediction_id=identity)
    return LogEntry((row,), None if request is None else RequestKey(1, "default", request), b"digest")


def erase(store: Store, group: bytes, moment: datetime) -> None:
    with store.database.write() as connection:
        connection.execute(sa.insert(tables.erased_groups), {"group_hash": group, "erased_at": moment})


def test_what_is_delivered_is_in_the_log_to_the_last_bit(store: Store):
    entries = [entry("r1", predictions=3), entry(), grouped(b"g" * 16, request="r2")]
    assert store.predictions.deliver(entries) == DeliveryOutcome(written=5, erased=0, repeated=0)
    for one in entries:
        for row in one.predictions:
            assert store.predictions.get(row.id) == row
        if one.request:
            found = store.predictions.request(one.request)
            assert found
            assert (found.body_digest, found.predictions) == (one.body_digest, one.predictions)
    assert store.predictions.deliver([]) == DeliveryOutcome(0, 0, 0)


def test_what_is_there_in_part_is_completed_and_nothing_is_there_twice(store: Store):
    entries = requests(12)
    store.predictions.append(entries[:5])
    assert store.predictions.deliver(entries).repeated == len(ids_of(entries[:5]))
    first = list(read_all(store, limit=100))
    assert sorted(first) == sorted(ids_of(entries))
    # The same again, also twice at once, changes nothing: no row appears a second time to who reads on.
    total = len(ids_of(entries))
    assert store.predictions.deliver([*entries, *entries]) == DeliveryOutcome(0, 0, 2 * total)
    assert list(read_all(store, limit=100)) == first


def test_of_two_answers_to_one_request_the_first_is_logged(store: Store):
    first, second, third = entry("r1"), entry("r1", predictions=2), entry("r1")
    store.predictions.append([first])
    delivered = store.predictions.deliver([second, third])
    assert (delivered.written, delivered.repeated) == (0, 0)
    assert [one.predictions for one in delivered.repetitions] == [
        tuple(ids_of([second])),
        tuple(ids_of([third])),
    ]
    assert {one.first for one in delivered.repetitions} == {tuple(ids_of([first]))}
    assert sorted(read_all(store)) == sorted(ids_of([first]))
    # On a key that is free, the one that comes first has it.
    fourth, fifth = entry("r2"), entry("r2")
    for _ in range(2):  # also when it comes again
        delivered = store.predictions.deliver([fourth, fifth])
        assert [one.predictions for one in delivered.repetitions] == [tuple(ids_of([fifth]))]
    assert sorted(read_all(store)) == sorted(ids_of([first, fourth]))
    found = store.predictions.request(RequestKey(1, "default", "r2"))
    assert found
    assert found.predictions == fourth.predictions


def test_another_body_under_a_key_that_is_taken_is_logged_without_it(store: Store):
    first = entry("r1")
    second, third = (replace(entry("r1"), body_digest=digest) for digest in (b"other", b"third"))
    store.predictions.append([first])
    for written in (2, 0):
        delivered = store.predictions.deliver([second, third])
        assert (delivered.written, delivered.repeated, delivered.repetitions) == (written, 2 - written, ())
    assert sorted(read_all(store)) == sorted(ids_of([first, second, third]))
    found = store.predictions.request(RequestKey(1, "default", "r1"))
    assert found
    assert found.predictions == first.predictions


def test_the_normal_path_still_refuses_an_id_that_is_there(store: Store):
    known = entry()
    store.predictions.deliver([known])
    with pytest.raises(ConflictError):
        store.predictions.append([known])


def test_environments_are_created_whatever_the_limit(store: Store):
    revision = store.registry()
    assert revision
    entries = [entry(environment=f"site-{i}") for i in range(3)]
    store.predictions.deliver(entries)
    assert store.environments.list() == ["default", "site-0", "site-1", "site-2"]
    # Workers hear of them.
    changed = store.registry(revision.revision)
    assert changed
    assert store.predictions.deliver([*entries, entry()]).written == 1
    assert store.registry(changed.revision) is None
    with pytest.raises(InvalidInputError):
        store.predictions.deliver([entry(environment="No Name")])


def test_deliveries_of_two_machines_may_create_the_same_environments(store: Store):
    barrier = threading.Barrier(2)
    outcomes: list[DeliveryOutcome] = []

    def work() -> None:
        for i in range(8):
            barrier.wait()
            outcomes.append(store.predictions.deliver([entry(environment=f"site-{i}")]))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [DeliveryOutcome(1, 0, 0)] * 16


def test_what_was_made_before_its_group_was_erased_does_not_come_back(store: Store):
    erased, other = b"e" * 16, b"o" * 16
    mixed = LogEntry(
        (*grouped(erased, age=timedelta(hours=2)).predictions, *grouped(other).predictions),
        RequestKey(1, "default", "mixed"),
        b"digest",
    )
    old = grouped(erased, age=timedelta(seconds=61), request="old")
    new = grouped(erased, age=timedelta(seconds=59), request="new")
    others = [
        grouped(other, age=timedelta(hours=2)),
        grouped(None),
        *(grouped(i.to_bytes(16, "big")) for i in range(250)),
    ]
    erase(store, erased, datetime.now(UTC) - timedelta(seconds=60))
    erase(store, b"x" * 16, datetime.now(UTC))
    delivered = store.predictions.deliver([mixed, old, new, *others])
    assert delivered == DeliveryOutcome(written=254, erased=2, repeated=0)
    left = replace(mixed, predictions=mixed.predictions[1:])
    assert sorted(read_all(store, limit=1000)) == sorted(ids_of([left, new, *others]))
    # Not even that of what is left: a retry would get its decisions for other rows.
    for key in ("old", "mixed"):
        assert store.predictions.request(RequestKey(1, "default", key)) is None
    assert store.predictions.deliver([old]) == DeliveryOutcome(0, 1, 0)


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_an_erasure_waits_for_a_delivery_that_has_not_seen_it(store: Store):
    """Or rows would come that the erasure, which has deleted already, never sees."""
    group = b"e" * 16
    is_erased = threading.Event()

    def work() -> None:
        erase(store, group, datetime.now(UTC) + timedelta(seconds=1))
        is_erased.set()

    thread = threading.Thread(target=work)
    with store.database.write() as connection:
        assert deliver_entries(connection, [grouped(group)]).written == 1
        thread.start()
        assert not is_erased.wait(0.2)
    thread.join()
    assert len(list(read_all(store))) == 1


class Death(BaseException):
    """The process dies."""


def check_death_before_forgetting(store: Store, folder: Path) -> None:
    """A delivery whose rows are committed, and whose process died before it could forget them, comes again."""
    entries = requests(10)
    filled(folder, entries)

    def write_and_die(some: Sequence[LogEntry]) -> None:
        store.predictions.deliver(some)
        raise Death

    def die(_: Sequence[LogEntry]) -> None:
        raise Death

    for write in (die, write_and_die):
        with pytest.raises(Death):
            open_spool(folder).deliver(write, limit=8)
    delivered: list[DeliveryOutcome] = []
    assert (
        drain(open_spool(folder), write=lambda some: delivered.append(store.predictions.deliver(some)))
        == entries
    )
    assert sum(one.repeated for one in delivered) == 9
    assert sorted(read_all(store, limit=100)) == sorted(ids_of(entries))


def test_a_process_that_dies_before_it_forgets_loses_and_doubles_nothing(store: Store, tmp_path: Path):
    check_death_before_forgetting(store, tmp_path / "spool")


@pytest.mark.parametrize("broken", ["forgotten first", "written twice"])
def test_the_check_of_such_a_death_can_fail(
    store: Store, tmp_path: Path, broken: str, monkeypatch: pytest.MonkeyPatch
):
    if broken == "forgotten first":
        deliver = type(open_spool(tmp_path)).deliver

        def forget_first(spool, write, *, limit=1000):  # type: ignore[no-untyped-def]
            taken: list[LogEntry] = []
            count = deliver(spool, taken.extend, limit=limit)
            write(taken)
            return count

        monkeypatch.setattr("lifelong_core.store.spool.spool.Spool.deliver", forget_first)
    else:

        def append(some: Sequence[LogEntry]) -> DeliveryOutcome:
            store.predictions.append(some)
            return DeliveryOutcome(0, 0, 0)

        monkeypatch.setattr(store.predictions, "deliver", append)
    with pytest.raises((AssertionError, ConflictError)):
        check_death_before_forgetting(store, tmp_path / "spool")


DELIVERER = """
import os, signal, sys, time
from pathlib import Path
from lifelong_core.store import Store
from lifelong_core.store.spool.spool import Spool

def deliver():
    spool = Spool(Path(sys.argv[1]), maximum_bytes=10**8, segment_bytes=10_000)
    with Store.open(sys.argv[2], "memory://artifacts") as store:
        while spool.deliver(store.predictions.deliver, limit=10):
            pass

for seconds in (0.03, 0.06, 0.1, 60):
    child = os.fork()
    if child == 0:
        deliver()
        os._exit(0)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG) != (0, 0):
            sys.exit()
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


def test_a_deliverer_that_is_killed_again_and_again_delivers_each_row_once(store: Store, tmp_path: Path):
    folder = tmp_path / "spool"
    spool = open_spool(folder, segment_bytes=10_000)
    entries = requests(600)
    for start in range(0, len(entries), 5):
        spool.append(entries[start : start + 5])
    url = store.database.url.render_as_string(hide_password=False)
    command = [sys.executable, "-W", "error", "-c", DELIVERER, str(folder), url]
    process = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (process.stderr, process.returncode) == ("", 0)
    assert spool.is_empty()
    assert sorted(read_all(store, limit=1000)) == sorted(ids_of(entries))
    assert spool.state().damaged_records == 0


def test_a_value_that_only_the_database_refuses_is_put_aside(store: Store, tmp_path: Path):
    spool = open_spool(tmp_path / "spool")
    # PostgreSQL takes no NUL in a text; no name of an environment is illegal for SQLite but by our own rule.
    bad = entry("nul\0") if store.database.is_postgresql else entry(environment="No Name")
    entries = [entry("r1"), bad, entry("r2")]
    spool.append(entries)
    assert spool.deliver(store.predictions.deliver) == 2
    assert spool.deliver(store.predictions.deliver) == 0
    assert sorted(read_all(store)) == sorted(ids_of([entries[0], entries[2]]))
    (refusal,) = spool.dead_letters()
    assert refusal.entries == (bad,)
    assert refusal.reason
