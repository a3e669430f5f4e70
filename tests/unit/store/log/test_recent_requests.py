"""The memory of recently answered requests of one machine."""

import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from lifelong_core.store import LogEntry, RequestKey
from lifelong_core.store.log import recent_requests
from lifelong_core.store.log.recent_requests import RecentRequests
from tests.unit.store.samples import entry, prediction

URL = "postgresql+psycopg://user@somewhere/lifelong"
HOUR = 3600.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def opened(
    folder: Path, *, url: str = URL, clock: Clock | None = None, maximum: int = 10_000_000
) -> RecentRequests:
    return RecentRequests(
        folder / "recent.db",
        database_url=url,
        keep_seconds=HOUR,
        maximum_bytes=maximum,
        clock=clock or Clock(),
    )


def add(recent: RecentRequests, *entries: LogEntry) -> None:
    """Claim and confirm."""
    recent.claim(entries)
    recent.confirm([one.request for one in entries if one.request is not None])
    recent.close()


def test_what_was_added_is_found_also_by_another_process(tmp_path: Path) -> None:
    writer, reader = opened(tmp_path), opened(tmp_path)
    one = entry("r1", predictions=3)
    add(writer, one, entry(None))
    found = reader.find([one.request, RequestKey(1, "elsewhere", "r1"), RequestKey(2, "default", "r1")])
    assert list(found) == [one.request]
    assert found[one.request].body_digest == one.body_digest
    assert found[one.request].predictions == one.predictions
    writer.close()
    assert writer.find([one.request]) == found, "a closed one opens again"


def test_requests_of_another_database_are_not_found(tmp_path: Path) -> None:
    one = entry("r1")
    add(opened(tmp_path), one)
    assert opened(tmp_path, url="sqlite:////elsewhere.db").find([one.request]) == {}


def test_neither_groups_nor_request_ids_are_kept_and_only_the_owner_reads(tmp_path: Path) -> None:
    rows = (prediction(group_hash=b"hash-of-a-patient"),)
    one = replace(entry("accession-4711"), predictions=rows)
    recent = opened(tmp_path)
    add(recent, one)
    [found] = recent.find([one.request]).values()
    assert found.predictions == tuple(replace(row, group_hash=None) for row in one.predictions)
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        assert b"4711" not in content
        assert b"patient" not in content
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_request_is_forgotten_after_a_while(tmp_path: Path) -> None:
    clock = Clock()
    recent = opened(tmp_path, clock=clock)
    old = entry("old")
    add(recent, old)
    clock.now += HOUR - 1
    assert recent.find([old.request])
    clock.now += 2
    assert not recent.find([old.request])
    for index in range(40):
        add(recent, entry(f"r{index}"))
    assert count(tmp_path) == 40, "and its row is gone"


def test_the_file_does_not_grow_beyond_its_bound(tmp_path: Path) -> None:
    bound = 400_000
    recent = opened(tmp_path, maximum=bound)
    last = entry("last")
    for batch in range(200):
        add(recent, *(entry(f"{batch}-{index}") for index in range(50)))
    add(recent, last)
    assert recent.find([last.request])
    assert (tmp_path / "recent.db").stat().st_size < 2 * bound
    assert 100 < count(tmp_path) < 10_000


def test_the_first_claim_to_a_request_holds_until_it_is_withdrawn(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    first, second = entry("r", predictions=2), entry("r", predictions=2)
    key = first.request
    assert one.claim([first, second, entry("s"), entry(None)]) == {}, "of one call, the first"
    assert one.claim([first]) == {}, "its own"
    claim = other.claim([second, entry("t")])
    assert list(claim) == [key]
    assert (claim[key].is_logged, claim[key].first.predictions) == (False, first.predictions)
    assert other.find([key]) == {}, "nobody knows whether it is logged"
    one.withdraw([key])
    assert other.claim([second]) == {}
    assert list(one.claim([first])) == [key]


def test_a_confirmed_claim_is_an_answer_from_the_next_claim_on(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    first, second = entry("r"), entry("r")
    key = first.request
    one.claim([first])
    one.confirm([key])
    assert other.find([key]) == {}
    one.claim([entry("next")])
    assert other.find([key])[key].predictions == first.predictions
    assert other.claim([second])[key].is_logged


def test_a_claim_that_is_not_confirmed_is_void_after_a_while(tmp_path: Path) -> None:
    clock = Clock()
    one, other = opened(tmp_path, clock=clock), opened(tmp_path, clock=clock)
    one.claim([entry("r")])
    clock.now += 599
    assert other.claim([entry("r")]) != {}
    clock.now += 2
    assert other.claim([entry("r")]) == {}


def test_the_answer_to_an_erased_request_is_replaced(tmp_path: Path) -> None:
    recent = opened(tmp_path)
    first, second = entry("r"), entry("r")
    add(recent, first)
    recent.replace([second])
    assert recent.find([second.request])[second.request].predictions == second.predictions


@pytest.mark.parametrize("content", [b"no database at all" * 1000, b"SQLite format 3\0" + bytes(5000)])
def test_a_damaged_file_is_begun_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "recent.db").write_bytes(content)
    recent = opened(tmp_path)
    one = entry("r")
    add(recent, one)
    add(recent, one)
    assert recent.problem is None
    assert recent.find([one.request])


@pytest.mark.parametrize("meets_it", [True, False])
def test_a_worker_goes_on_with_the_file_that_another_one_has_begun_after_damage(
    tmp_path: Path, meets_it: bool
) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    for recent in (one, other):
        recent.claim([entry("before")])
    damaged = sqlite3.DatabaseError("database disk image is malformed")
    one._fail(damaged)
    one.claim([first := entry("r")])
    if meets_it:
        other._fail(damaged)
    [claim] = other.claim([entry("r")]).values()
    assert claim.first.predictions == first.predictions


def test_a_confirmation_is_kept_until_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recent, reader, one = opened(tmp_path), opened(tmp_path), entry("r")
    recent.claim([one])
    recent.confirm([one.request])
    with closing(sqlite3.connect(tmp_path / "recent.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert recent.claim([entry("locked out")]) == {}
        assert recent.problem is not None

    def fill(*_: object) -> NoReturn:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(recent_requests, "_CALLS_BETWEEN_PRUNING", 0)
        patched.setattr(recent, "_prune", fill)
        assert recent.claim([entry("not written")]) == {}
        assert recent.problem is not None
    recent.claim([entry("next")])
    assert set(reader.find([one.request])) == {one.request}


def test_confirmations_do_not_pile_up_while_the_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "recent.db").mkdir()
    recent = opened(tmp_path)
    for _ in range(3):
        keys = [RequestKey(1, "default", f"r{number}") for number in range(recent_requests._MOST_CONFIRMED)]
        recent.confirm(keys)
        assert recent.claim([entry("r")]) == {}
        assert recent.problem is not None
    assert len(recent._confirmed) == recent_requests._MOST_CONFIRMED


def test_where_it_cannot_be_written_nothing_fails_and_the_problem_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    recent = RecentRequests(
        tmp_path / "file" / "recent.db", database_url=URL, keep_seconds=HOUR, maximum_bytes=10_000_000
    )
    one = entry("r")
    add(recent, one)
    assert recent.find([one.request]) == {}
    assert recent.problem is not None
    (tmp_path / "file").unlink()
    add(recent, one)
    assert recent.problem is None
    assert recent.find([one.request])


def test_a_writer_that_holds_the_file_holds_up_nobody_for_long(tmp_path: Path) -> None:
    recent = opened(tmp_path)
    one, two = entry("one"), entry("two")
    add(recent, one)
    with closing(sqlite3.connect(tmp_path / "recent.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        add(recent, two)
        assert recent.problem is not None
        assert recent.find([one.request])
    add(recent, two)
    assert recent.problem is None


def count(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "recent.db")) as connection:
        return connection.execute("SELECT count(*) FROM requests").fetchone()[0]
