"""Disks that accept a part of the bytes, or none."""

import contextlib
import errno
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lifelong_core.store import LogEntry, RequestKey
from lifelong_core.store.spool import framing as writing
from lifelong_core.values.errors import UnavailableError
from tests import tools
from tests.unit.store.samples import entry
from tests.unit.store.spool.waiting import drain, filled, open_spool, segments


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@contextlib.contextmanager
def full_disk(part: float) -> Iterator[None]:
    """Takes a part of the first write, then nothing."""
    write = os.write
    calls = 0

    def take_a_part(descriptor: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls == 1 and part:
            return write(descriptor, data[: int(part * len(data)) or 1])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", take_a_part)
        yield


def check_failed_append(folder: Path, part: float, waiting: int) -> None:
    entries = [entry(f"r{i}") for i in range(waiting)]
    spool = filled(folder, entries)
    before = [(path, path.read_bytes()) for path in segments(folder)]
    failed, late = entry("failed"), entry("late")
    with full_disk(part), pytest.raises(UnavailableError, match=r"No space left on device.*Free some space"):
        spool.append([failed])
    assert [(path, path.read_bytes()) for path in segments(folder)] == before
    assert spool.is_empty() is (waiting == 0)
    assert spool.find([failed.request]) == {}
    for one in (failed, late):
        assert spool.append([one]) == (True,)
    assert drain(open_spool(folder)) == [*entries, failed, late]
    assert spool.state().damaged_records == 0


@pytest.mark.parametrize("part", [0, 1e-9, 0.5, 0.999])
@pytest.mark.parametrize("waiting", [0, 2])
def test_a_disk_that_is_full_leaves_nothing_of_a_failed_append(folder: Path, part: float, waiting: int):
    check_failed_append(folder, part, waiting)


def test_the_check_of_failed_appends_can_fail(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(writing.os, "ftruncate", lambda *_: None)
    with pytest.raises(AssertionError):
        check_failed_append(folder, 0.5, 2)


@pytest.mark.parametrize("first", [0, 1, 10])
def test_requests_are_found_also_when_no_new_segment_could_be_begun(folder: Path, first: int):
    """The segment before has its file of keys by then, and takes records all the same, also from others."""
    spool, other = (open_spool(folder, segment_bytes=1000) for _ in range(2))
    entries = [entry(f"r{i}") for i in range(5)]
    for one in entries:
        spool.append([one])
    with full_disk(0), pytest.raises(UnavailableError, match="No space"):
        spool.append([entry("large", predictions=9)])
    assert len(segments(folder)) == 1
    for writer in [spool] * first + [other] * 10 + [spool] * 10:
        entries.append(entry(f"r{len(entries)}"))
        assert writer.append(entries[-1:]) == (True,)
    for reader in (spool, other, open_spool(folder)):
        keys = [one.request for one in entries if one.request]
        assert set(reader.find(keys)) == set(keys)
    assert drain(spool) == entries


@pytest.mark.parametrize("waiting", [0, 2])
def test_where_nothing_can_be_taken_back_the_rest_is_a_torn_tail(
    folder: Path, waiting: int, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    entries = [entry() for _ in range(waiting)]
    spool = filled(folder, entries)
    failed, late = entry("failed"), entry("late")
    with full_disk(0.5), pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "ftruncate", fail)
        patch.setattr(Path, "unlink", fail)
        with pytest.raises(UnavailableError, match="No space"):
            spool.append([failed])
    for one in (failed, late):
        assert spool.append([one]) == (True,)
    assert drain(spool) == [*entries, failed, late]
    assert spool.state().damaged_records == 1


def test_what_is_taken_back_is_not_delivered_before(folder: Path):
    """Or the delivery would have passed the place where the next record comes."""
    spool = open_spool(folder, durability="power")
    first, failed, late = entry("first"), entry("failed"), entry("late")
    spool.append([first])
    taken: list[LogEntry] = []
    thread = threading.Thread(target=lambda: taken.extend(drain(open_spool(folder))))

    def fail(_: int) -> None:
        thread.start()
        thread.join(0.05)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        with pytest.raises(UnavailableError, match="Input/output error"):
            spool.append([failed])
    thread.join()
    spool.append([late])
    assert taken + drain(spool) == [first, late]


def test_a_full_disk_does_not_hold_up_the_delivery(folder: Path):
    entries = [entry(f"r{i}") for i in range(12)]
    spool = filled(folder, entries, segment_bytes=500)
    newest = segments(folder)[-1]
    newest.write_bytes(newest.read_bytes()[:-1])
    real = os.pwrite
    with full_disk(0), pytest.MonkeyPatch.context() as patch:

        def fail(*_: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr(os, "pwrite", fail)
        assert drain(open_spool(folder), limit=1) == entries[:-1]
    assert os.pwrite is real
    assert spool.is_empty()


def test_what_cannot_be_put_aside_is_not_forgotten(folder: Path):
    """Damage in the middle and refused entries were answered once; they wait for space."""
    entries = [entry(f"r{i}") for i in range(3)]
    spool = filled(folder, entries)
    data = bytearray(segments(folder)[0].read_bytes())
    data[20] ^= 1
    segments(folder)[0].write_bytes(data)
    with full_disk(0), pytest.raises(UnavailableError, match="No space"):
        drain(spool)
    assert drain(spool) == entries[1:]
    assert spool.state().damaged_records == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB."""
    tools.need(tools.SMALL_DISKS)
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_file_system_that_fills_up_and_gets_space_again(small_disk: Path):
    folder = small_disk / "spool"
    spool = open_spool(folder, segment_bytes=50_000)
    predictions = entry(predictions=210).predictions
    kept: list[LogEntry] = []
    reasons: set[str] = set()

    def fill(size: Callable[[int], int]) -> int:
        refused = 0
        for i in range(5000):
            one = LogEntry(predictions[: size(i)], RequestKey(1, "default", f"{len(kept)}-{i}"))
            try:
                spool.append([one])
            except UnavailableError as error:
                reasons.add(str(error))
                refused += 1
                if refused > 30:
                    break
            else:
                kept.append(one)
        return refused

    # Some too large for what is left, smaller ones still find room.
    assert fill(lambda i: 1 + 7 * (i % 30)) > 30
    taken: list[LogEntry] = []
    assert spool.deliver(taken.extend, limit=300) is not None
    # What stands before the delivered part leaves with its segment.
    while spool.state().bytes > 150_000:
        spool.deliver(taken.extend, limit=300)
    assert fill(lambda i: 1 + i % 5) > 30
    (reason,) = reasons
    assert "No space left" in reason
    assert taken + drain(open_spool(folder)) == kept
    assert (spool.state().damaged_records, spool.is_empty()) == (0, True)


def test_a_file_system_that_becomes_read_only(small_disk: Path):
    spool = open_spool(small_disk / "spool")
    first, second = entry("r1"), entry("r2")
    spool.append([first])

    def remount(mode: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{mode}", str(small_disk)], check=True)

    remount("ro")
    try:
        for call in (lambda: spool.append([second]), lambda: spool.deliver(pytest.fail)):
            with pytest.raises(UnavailableError, match="Read-only file system"):
                call()
        assert not spool.is_empty()
    finally:
        remount("rw")
    assert spool.append([second]) == (True,)

    def no_fail(_: Sequence[LogEntry]) -> None: ...

    assert drain(spool, write=no_fail) == [first, second]
