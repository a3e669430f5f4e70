"""Calls with a deadline: the caller returns in time, and a hanging call does not delay later ones."""

import contextlib
import gc
import threading
import time
from collections.abc import Iterator

import pytest

from lifelong_core.runtime import deadline
from lifelong_core.runtime.deadline import DeadlineThread
from lifelong_core.values.errors import UnavailableError


@pytest.fixture
def thread() -> Iterator[DeadlineThread]:
    made = DeadlineThread("test")
    made.start()
    yield made
    made.close()


def test_results_and_errors_come_back(thread: DeadlineThread) -> None:
    def divide() -> float:
        raise ZeroDivisionError

    assert thread.call(lambda: 7, 1) == 7
    with pytest.raises(ZeroDivisionError):
        thread.call(divide, 1)
    assert thread.call(threading.current_thread, 1).name == "test"
    assert not thread.is_stuck


def test_a_call_that_hangs_is_left_and_later_ones_fail_at_once_until_it_ends(thread: DeadlineThread) -> None:
    gate, ended = threading.Event(), threading.Event()
    made: list[int] = []

    def hang() -> None:
        gate.wait(10)
        made.append(1)
        ended.set()

    with pytest.raises(UnavailableError, match="in time"):
        thread.call(hang, 0.05)
    assert thread.is_stuck
    for _ in range(3):
        with pytest.raises(UnavailableError, match="before"):
            thread.call(lambda: made.append(2), 10)
    gate.set()
    ended.wait(10)
    while thread.is_stuck:
        time.sleep(0.001)
    thread.call(lambda: made.append(3), 1)
    assert made == [1, 3], "what was refused is not made later either"


def test_who_is_told_to_hurry_does_not_wait_long(
    thread: DeadlineThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "SLICE_SECONDS", 0.02)
    gate = threading.Event()
    threading.Timer(0.05, thread.hurry).start()
    began = time.monotonic()
    with pytest.raises(UnavailableError):
        thread.call(lambda: gate.wait(20), 20)
    assert time.monotonic() - began < 5
    gate.set()


def test_nothing_of_a_call_stays_behind(thread: DeadlineThread) -> None:
    class Batch:
        pass

    def living() -> int:
        return sum(type(one) is Batch for one in gc.get_objects())

    def fail(batch: Batch) -> None:
        raise ValueError(str(batch))

    gc.disable()
    try:
        for work in (str, fail):
            batch = Batch()
            with contextlib.suppress(ValueError):
                thread.call(lambda work=work, batch=batch: work(batch), 1)
            del batch
        assert thread.call(lambda: None, 1) is None
        assert living() == 0
    finally:
        gc.enable()
