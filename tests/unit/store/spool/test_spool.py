"""One process: appended entries are found, counted, bounded, and delivered once in order."""

import os
import shutil
import stat
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from lifelong_core.store import LogEntry, RequestKey, StoredRequest, logged_at
from lifelong_core.store.spool import spool as spool_module
from lifelong_core.store.spool.contents import SpoolState
from lifelong_core.store.spool.framing import Record, pack_record
from lifelong_core.store.spool.locks import FileLock
from lifelong_core.store.spool.segments import SpoolFullError
from lifelong_core.store.spool.spool import Spool
from lifelong_core.values.errors import ConfigurationError, ConflictError, InvalidInputError, UnavailableError
from tests.unit.store.samples import entry, prediction
from tests.unit.store.spool.waiting import MAXIMUM_BYTES, drain, filled, open_spool, requests, segments


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "spool"


@pytest.fixture
def spool(folder: Path) -> Spool:
    return open_spool(folder)


def stored(*entries: LogEntry) -> dict[RequestKey, StoredRequest]:
    return {
        one.request: StoredRequest(one.request, one.body_digest, one.predictions)
        for one in entries
        if one.request is not None
    }


def test_a_spool_that_was_never_used_is_empty_and_makes_no_folder(spool: Spool, folder: Path):
    assert spool.is_empty()
    assert spool.deliver(pytest.fail) == 0
    assert spool.find([RequestKey(1, "default", "r1")]) == {}
    assert spool.state() == SpoolState(0, MAXIMUM_BYTES, 0, None, 0, 0)
    assert spool.append([]) == ()
    assert not list(folder.glob("*.segment"))


@pytest.mark.parametrize("segment_bytes", [1, 700, 4 << 20], ids=["one record each", "some", "all in one"])
@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_what_is_appended_comes_out_once_in_its_order(folder: Path, segment_bytes: int, limit: int):
    spool = open_spool(folder, segment_bytes=segment_bytes)
    entries = requests(40)
    for start in range(0, 40, 4):
        assert spool.append(entries[start : start + 4]) == (True,) * 4
    assert not spool.is_empty()
    assert drain(spool, limit=limit) == entries
    assert spool.is_empty()
    assert drain(spool) == []


def test_every_value_comes_out_to_the_last_bit(spool: Spool):
    full = replace(
        prediction(2**31 - 1, "site-a", decision=7, head_version=2**31 - 1), group_hash=b"\xff" * 16
    )
    odd = replace(prediction(2, "ä" * 64), logits=np.array([-0.0, 1e-45, 3.4e38], np.float32))
    key = RequestKey(3, "site-b", "r" * 199 + "\U0001f9ec")
    entries = [LogEntry((full, odd), key, b"\x00" * 300), LogEntry((prediction(),), None, b"no key")]
    spool.append(entries)
    assert spool.find([key]) == stored(entries[0])
    taken = drain(spool)
    assert taken == entries
    assert taken[0].predictions[1].logits.tobytes() == odd.logits.tobytes()


def test_a_batch_of_the_limit_ends_with_the_record_that_reaches_it(spool: Spool):
    for _ in range(5):
        spool.append([entry(predictions=3)])
    sizes: list[int] = []
    while delivered := spool.deliver(lambda _: None, limit=4):
        sizes.append(delivered)
    assert sizes == [6, 6, 3]


def test_a_request_that_waits_is_found_and_taken_once(spool: Spool, folder: Path):
    first, again, other = entry("r1", predictions=2), entry("r1"), entry("r2")
    assert spool.append([first]) == (True,)
    assert spool.append([again, other, entry("r2"), entry()]) == (False, True, False, True)
    assert spool.append([again]) == (False,)
    for reader in (spool, open_spool(folder)):
        keys = [RequestKey(1, "default", "r1"), RequestKey(1, "default", "r2")]
        others = [RequestKey(1, "site-a", "r1"), RequestKey(2, "default", "r1")]
        assert reader.find([*others, *keys]) == stored(first, other)
        assert (reader.find(others), reader.find([])) == ({}, {})
    assert [len(one.predictions) for one in drain(spool)] == [2, 1, 1]
    assert spool.find([RequestKey(1, "default", "r1")]) == {}
    # The log has it now: whoever appends it again has not found it there.
    assert spool.append([again]) == (True,)


def test_requests_are_found_in_all_segments_by_a_process_that_starts_later(folder: Path):
    entries = [entry(f"r{i}") for i in range(200)]
    spool = filled(folder, entries, segment_bytes=3000)
    files = segments(folder)
    assert len(files) > 5
    assert len(list(folder.glob("*.keys"))) == len(files) - 1
    # Without one of the files of keys, and with one that is damaged, the segments are read.
    files_of_keys = sorted(folder.glob("*.keys"))
    files_of_keys[1].unlink()
    files_of_keys[2].write_bytes(files_of_keys[2].read_bytes()[:-1] + b"\x00")
    later = open_spool(folder, segment_bytes=3000)
    keys = [one.request for one in entries if one.request]
    assert later.find(keys) == stored(*entries)
    assert later.state().predictions == 200
    for _ in range(5):
        later.deliver(lambda _: None)
    for reader in (spool, later, open_spool(folder)):
        found = [key in reader.find([key]) for key in keys]
        # What is delivered is found until its segment goes.
        assert found == sorted(found)
        assert 50 < found.count(False) < 150
        assert reader.append([entries[-1]]) == (False,)
        assert len(list(folder.glob("*.keys"))) == len(segments(folder)) - 1


def test_two_keys_with_one_digest_are_two_requests(spool: Spool, monkeypatch: pytest.MonkeyPatch):
    for module in ("encoding", "spool"):
        monkeypatch.setattr(f"lifelong_core.store.spool.{module}.key_digest", lambda _: 7)
    first, second = entry("r1"), entry("r2")
    assert spool.append([first]) == (True,)
    assert spool.append([second]) == (True,)
    assert spool.find([second.request, RequestKey(1, "default", "r3")]) == stored(second)
    assert drain(spool) == [first, second]


def test_the_state_says_how_much_waits_since_when(spool: Spool, folder: Path):
    entries = [entry(predictions=2) for _ in range(4)]
    for one in entries:
        spool.append([one])
    state = open_spool(folder).state()
    assert state == SpoolState(
        segments(folder)[0].stat().st_size, MAXIMUM_BYTES, 8, logged_at(entries[0].predictions[0].id), 0, 0
    )
    spool.deliver(lambda _: None, limit=3)
    for reader in (spool, open_spool(folder)):
        assert (reader.state().predictions, reader.state().oldest) == (
            4,
            logged_at(entries[2].predictions[0].id),
        )


def test_the_bound_is_kept_to_the_byte(folder: Path):
    entries = [entry(), entry(), entry()]
    probe = open_spool(folder.with_name("probe"))
    for one in entries:
        probe.append([one])
    size = probe.state().bytes
    just = open_spool(folder, maximum_bytes=size)
    for one in entries:
        just.append([one])
    with pytest.raises(SpoolFullError, match="is full") as full:
        just.append([entry()])
    assert full.value.retry_after_seconds > 0
    assert just.state().bytes == size
    below = open_spool(folder.with_name("below"), maximum_bytes=size - 1)
    below.append(entries[:1])
    below.append(entries[1:2])
    with pytest.raises(SpoolFullError):
        below.append(entries[2:])
    assert drain(below) == entries[:2]
    assert below.append(entries[2:]) == (True,)
    assert drain(just) == entries


def test_what_was_put_aside_counts_for_the_bound(folder: Path):
    spool = open_spool(folder, maximum_bytes=1000)

    def refuse(entries: Sequence[LogEntry]) -> None:
        raise InvalidInputError("never")

    def append_and_refuse() -> None:
        for _ in range(100):
            spool.append([entry()])
            spool.deliver(refuse)

    with pytest.raises(SpoolFullError):
        append_and_refuse()
    assert 5 < spool.state().refused_records < 10
    assert spool.is_empty()


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (LogEntry(()), "predictions"),
        (entry("r" * 201), "request_id"),
        (entry("\ud800"), None),
        (LogEntry((replace(prediction(), logits=np.array([1, np.nan], np.float32)),)), "logits"),
        (LogEntry((replace(prediction(), id=uuid4()),)), "id"),
        (LogEntry((replace(prediction(), decision=2**31),)), None),
        (LogEntry((replace(prediction(), group_hash=b"\x00" * 255),)), "group_hash"),
    ],
    ids=["no prediction", "long id", "surrogate", "nan", "strange id", "large number", "long hash"],
)
def test_what_the_log_would_not_take_is_refused_at_once(spool: Spool, bad: LogEntry, field: str | None):
    with pytest.raises(InvalidInputError) as refused:
        spool.append([entry(), bad])
    assert refused.value.field == field
    assert spool.is_empty()


def test_a_failed_write_forgets_nothing(spool: Spool):
    entries = requests(6)
    for one in entries:
        spool.append([one])
    for error in (
        UnavailableError("away"),
        ConfigurationError("read-only"),
        OSError("ours"),
        ValueError("bug"),
    ):

        def fail(_: Sequence[LogEntry], error: Exception = error) -> None:
            raise error

        with pytest.raises(type(error), match=str(error)):
            spool.deliver(fail, limit=3)
    assert drain(spool, limit=3) == entries


def test_what_the_log_refuses_for_good_is_kept_aside_and_holds_up_nothing(spool: Spool, folder: Path):
    entries = requests(20)
    for start in range(0, 20, 5):
        spool.append(entries[start : start + 5])
    refused = [entries[3], entries[4], entries[19]]
    outages = iter([True, *([False] * 1000)])

    def write(some: Sequence[LogEntry]) -> None:
        if any(one in refused for one in some):
            error = ConflictError if some[0] is entries[3] else InvalidInputError
            raise error("not this one")
        if some[0] == entries[5] and next(outages):
            raise UnavailableError("away")

    with pytest.raises(UnavailableError):
        drain(spool, write=write)
    taken = drain(spool, write=write)
    assert taken == [one for one in entries if one not in refused]
    state = open_spool(folder).state()
    assert (state.refused_records, state.predictions, spool.is_empty()) == (3, 0, True)
    kept = open_spool(folder).dead_letters()
    assert [one.entries for one in kept] == [(one,) for one in refused]
    assert {one.reason for one in kept} == {"not this one"}


def test_a_record_of_a_newer_version_is_kept_aside(spool: Spool, folder: Path):
    before, behind = entry(), entry()
    spool.append([before])
    file = segments(folder)[0]
    record = Record(77, b"strange", keys=9, predictions=4, offset=file.stat().st_size)
    with file.open("ab") as stream:
        stream.write(pack_record(record, file=int(file.stem)))
    assert spool.append([behind]) == (True,)
    assert spool.state().predictions == 6
    assert drain(spool) == [before, behind]
    assert [one.entries for one in spool.dead_letters()] == [()]
    assert spool.state().damaged_records == 0


def test_one_process_delivers_at_a_time(spool: Spool, folder: Path):
    spool.append([entry()])
    other = open_spool(folder)
    outcomes: list[int | None] = []

    def write(_: Sequence[LogEntry]) -> None:
        outcomes.append(other.deliver(pytest.fail))
        outcomes.append(spool.deliver(pytest.fail))
        # Meanwhile others append.
        assert other.append([late]) == (True,)

    late = entry("late")
    assert spool.deliver(write) == 1
    assert outcomes == [None, None]
    assert not spool.is_empty()
    assert drain(other) == [late]


def test_whoever_delivers_next_goes_on_where_the_last_one_stopped(folder: Path):
    entries = requests(30)
    filled(folder, entries)
    taken: list[LogEntry] = []
    while open_spool(folder).deliver(taken.extend, limit=4):
        pass
    assert taken == entries


def test_progress_that_is_damaged_or_of_another_file_delivers_again_from_the_beginning(folder: Path):
    entries = requests(6)
    for damage in (b"", b"short", b"\xff" * 32, None):
        spool = open_spool(folder)
        for one in entries:
            spool.append([one])
        spool.deliver(lambda _: None, limit=4)
        if damage is not None:
            (folder / "delivery").write_bytes(damage)
            assert drain(open_spool(folder)) == entries
        else:
            file = segments(folder)[0]
            file.write_bytes(b"")
            assert spool.state().oldest is None
            assert drain(open_spool(folder)) == []
            assert drain(spool) == []


def test_threads_of_one_process_may_append_at_once(spool: Spool):
    batches = {name: [[entry(f"{name}{i}")] for i in range(50)] for name in "abc"}

    def work(name: str) -> None:
        for batch in batches[name]:
            assert spool.append(batch) == (True,)
            assert spool.find([batch[0].request])

    threads = [threading.Thread(target=work, args=(name,)) for name in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = drain(spool)
    for name, mine in batches.items():
        ids = [one for one in taken if one.request and one.request.request_id.startswith(name)]
        assert ids == [one for batch in mine for one in batch]


@pytest.mark.parametrize("lock", ["lock", "delivery"])
def test_nobody_waits_for_ever_for_a_process_that_hangs(
    spool: Spool, folder: Path, lock: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(spool_module, "PATIENCE_SECONDS", 0.02)
    spool.append([entry("r1")])
    with FileLock(folder / lock).hold(until=0):
        if lock == "delivery":
            assert spool.deliver(pytest.fail) is None
            assert spool.append([entry()]) == (True,)
            return
        for call in (
            lambda: spool.append([entry()]),
            lambda: spool.find([RequestKey(1, "default", "r1")]),
            spool.state,
            lambda: spool.deliver(pytest.fail),
        ):
            with pytest.raises(UnavailableError, match="held the spool"):
                call()
        assert not spool.is_empty()
    assert len(drain(spool)) == 1


def test_only_the_owner_may_read_what_waits(folder: Path):
    entries = requests(3)
    spool = filled(folder, entries, segment_bytes=1)

    def refuse(some: Sequence[LogEntry]) -> None:
        if some[0] == entries[0]:
            raise InvalidInputError("never")

    assert spool.deliver(refuse) == 2
    file = segments(folder)[0]
    file.write_bytes(file.read_bytes()[:-1])
    open_spool(folder).deliver(lambda _: None, limit=1)
    names = {path.name for path in folder.iterdir()}
    assert {"lock", "delivery", "refused", "damaged"} <= names
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_disappears_and_comes_back_is_used_again(spool: Spool, folder: Path):
    for one in requests(3):
        spool.append([one])
    shutil.rmtree(folder)
    assert spool.is_empty()
    assert drain(spool) == []
    assert spool.state().predictions == 0
    later = requests(4, prefix="later")
    for one in later:
        assert spool.append([one]) == (True,)
    assert spool.find([RequestKey(1, "default", "r1")]) == {}
    assert drain(spool) == later


def test_a_segment_that_disappears_takes_only_its_own_records_along(folder: Path):
    for victim in (0, 3, -1):
        entries = requests(6)
        spool = filled(folder, entries, segment_bytes=1)
        segments(folder)[victim].unlink()
        del entries[victim]
        entries += (late := requests(2, prefix="late"))
        for one in late:
            assert spool.append([one]) == (True,)
        assert drain(spool) == entries


def test_a_folder_that_cannot_be_used_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("no folder")
    spool = open_spool(tmp_path / "file")
    for call in (
        spool.is_empty,
        spool.state,
        lambda: spool.append([entry()]),
        lambda: spool.deliver(pytest.fail),
    ):
        with pytest.raises(
            UnavailableError, match=r"cannot be used: Not a directory.*LIFELONG_SPOOL_DIRECTORY"
        ):
            call()
    real_open = os.open

    def refuse(path: Any, *arguments: Any) -> int:
        if str(path).endswith("lock"):
            raise OSError(30, "Read-only file system", path)
        return real_open(path, *arguments)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(UnavailableError, match=r"Read-only file system.*can write"):
        open_spool(tmp_path / "spool").append([entry()])


def test_a_spool_goes_on_after_it_was_closed(spool: Spool):
    entries = requests(4)
    spool.append(entries[:2])
    spool.close()
    assert spool.append([*entries[1:]]) == (False, True, True)
    spool.close()
    spool.close()
    assert drain(spool) == entries


@pytest.mark.parametrize("durability", ["process", "power"])
def test_power_failures_are_survived_by_waiting_for_file_and_folder(
    folder: Path, durability: str, monkeypatch: pytest.MonkeyPatch
):
    calls: list[tuple[str, str, int]] = []

    def spy(name: str) -> None:
        real = getattr(os, name)

        def call(descriptor: int, *arguments: Any) -> Any:
            path = Path(f"/proc/self/fd/{descriptor}").readlink()
            outcome = real(descriptor, *arguments)
            calls.append((name, path.name if path.is_file() else "folder", os.fstat(descriptor).st_size))
            return outcome

        monkeypatch.setattr(os, name, call)

    spool = open_spool(folder, durability=durability)
    spool.append([entry()])
    drain(spool)
    for name in ("write", "fsync", "fdatasync"):
        spy(name)
    spool.append([entry()])
    spool.append([entry()])
    (file,) = segments(folder)
    first, second = (size for name, _, size in calls if name == "write")
    writes = [("write", file.name, first), ("write", file.name, second)]
    if durability == "process":
        assert calls == writes
        return
    synced = [("fdatasync", file.name, first), ("fdatasync", file.name, second)]
    # The name of a new file is on the disk before anything is said to be in it.
    assert [call[:2] for call in calls[:1]] == [("fsync", "folder")]
    assert calls[1:] == [writes[0], synced[0], writes[1], synced[1]]
