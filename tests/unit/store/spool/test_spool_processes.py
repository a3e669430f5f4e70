"""Several processes on one spool."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

from lifelong_core.store.spool.locks import FileLock, LockBusyError
from lifelong_core.store.spool.spool import Spool
from tests.unit.store.spool.waiting import open_spool

SWARM = Path(__file__).with_name("swarm.py")


def run_swarm(folder: Path, *options: str, writers: int, kills: int) -> None:
    command = [sys.executable, "-W", "error", str(SWARM), str(folder), str(writers), str(kills), *options]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (process.stderr, process.returncode) == ("", 0)
    assert process.stdout == f"{[0] * writers}\n"


def check_swarm(folder: Path) -> None:
    """Every append that returned is delivered once, in the order of its process; at most one that did not, is too."""
    delivered: dict[int, list[int]] = defaultdict(list)
    for line in (folder / "delivered").read_text().splitlines():
        writer, number = map(int, line.split())
        delivered[writer].append(number)
    acknowledged = {int(path.stem): path.read_text().split() for path in folder.glob("*.acknowledged")}
    assert sum(len(numbers) for numbers in acknowledged.values()) > 100
    for writer, numbers in acknowledged.items():
        last = int(numbers[-1]) if numbers else 0
        assert delivered[writer] == list(range(len(delivered[writer])))
        assert last <= len(delivered[writer]) <= last + 3
    state = Spool(folder / "spool", maximum_bytes=1).state()
    assert state.predictions == 0
    # Only who is killed leaves a torn tail.
    assert state.damaged_records <= len(acknowledged)


def test_appends_that_returned_are_delivered_once_in_order_whoever_is_killed(tmp_path: Path):
    run_swarm(tmp_path, writers=4, kills=20)
    check_swarm(tmp_path)


def test_the_check_of_the_swarm_can_fail(tmp_path: Path):
    def run_and_check() -> None:
        run_swarm(tmp_path, "without-lock", writers=4, kills=5)
        check_swarm(tmp_path)

    with pytest.raises(AssertionError):
        run_and_check()


FORKING = """
import os, sys, threading, time
from pathlib import Path
from lifelong_core.store.spool.spool import Spool
from tests.unit.store.samples import entry

spool = Spool(Path(sys.argv[1]), maximum_bytes=10**6)
spool.append([entry("before")])
is_held = threading.Event()

def hold():
    with spool._locked():
        is_held.set()
        sys.stdin.readline()

threading.Thread(target=hold, daemon=True).start()
is_held.wait()
child = os.fork()
if child == 0:
    print(os.getpid(), flush=True)
time.sleep(60)
"""
"""A process forks while one of its threads holds the spool."""


def test_a_forked_child_holds_no_lock_of_its_parent(tmp_path: Path):
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING, str(tmp_path / "spool")]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, cwd=Path(__file__).parents[4]
    ) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        try:
            lock = FileLock(tmp_path / "spool" / "lock")
            with pytest.raises(LockBusyError), lock.hold(until=0):
                pass
            parent.kill()
            parent.wait()
            with lock.hold(until=0):
                os.kill(child, 0)
            assert open_spool(tmp_path / "spool").state().predictions == 1
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_forked_child_appends_although_a_thread_of_its_parent_was_about_to(tmp_path: Path):
    spool = open_spool(tmp_path / "spool")
    with spool._mutex:
        child = os.fork()
        if child == 0:
            os._exit(0 if spool.is_empty() and spool._mutex.acquire(timeout=0) else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_a_lock_whose_file_was_replaced_is_taken_anew(tmp_path: Path):
    """Or two would hold it: one the file that is gone, one the new one."""
    path = tmp_path / "lock"
    waits = threading.Event()
    is_in_place: list[bool] = []

    def wait() -> None:
        waits.set()
        with FileLock(path).hold(until=time.monotonic() + 10) as descriptor:
            is_in_place.append(os.path.samestat(os.fstat(descriptor), path.stat()))

    thread = threading.Thread(target=wait)
    with FileLock(path).hold(until=0):
        thread.start()
        waits.wait()
        time.sleep(0.02)
        path.unlink()
        path.touch()
    thread.join()
    assert is_in_place == [True]
