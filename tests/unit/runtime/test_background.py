"""Background threads start, stop, and report whether they have ended."""

import logging
import threading

import pytest

from lifelong_core.runtime.background import BackgroundThread, RepeatingThread

LONG = 10.0


def test_a_thread_runs_until_it_is_closed() -> None:
    began = threading.Event()

    def run() -> None:
        began.set()
        thread.stopping.wait(LONG)

    thread = BackgroundThread("probe", run)
    assert not thread.is_alive
    thread.start()
    assert began.wait(LONG)
    assert thread.is_alive
    assert thread.close(LONG)
    assert not thread.is_alive


def test_the_thread_is_a_daemon_with_its_name() -> None:
    seen: list[tuple[str, bool]] = []

    def run() -> None:
        current = threading.current_thread()
        seen.append((current.name, current.daemon))

    thread = BackgroundThread("probe", run)
    thread.start()
    assert thread.join(LONG)
    assert seen == [("probe", True)]


def test_a_thread_that_was_never_started_has_ended() -> None:
    thread = BackgroundThread("probe", lambda: None)
    assert thread.close()
    assert thread.stopping.is_set()


def test_closing_does_not_wait_longer_than_its_limit() -> None:
    gate = threading.Event()
    thread = BackgroundThread("probe", lambda: gate.wait(LONG))
    thread.start()
    assert not thread.close(0.01)
    assert thread.is_alive
    gate.set()
    assert thread.join(LONG)


def test_joining_does_not_ask_for_the_end() -> None:
    thread = BackgroundThread("probe", lambda: thread.stopping.wait(LONG))
    thread.start()
    assert not thread.join(0.01)
    assert not thread.stopping.is_set()
    assert thread.close(LONG)


def test_threads_share_a_stop_event() -> None:
    stopping = threading.Event()
    threads = [BackgroundThread(name, lambda: stopping.wait(LONG), stopping=stopping) for name in "ab"]
    for thread in threads:
        thread.start()
    assert threads[0].close(LONG)
    assert threads[1].join(LONG)


def test_a_repeating_thread_pauses_before_each_call() -> None:
    calls: list[int] = []
    enough = threading.Event()

    def work() -> None:
        calls.append(len(calls))
        if len(calls) == 3:
            enough.set()

    thread = RepeatingThread("probe", work, seconds=0.001)
    thread.start()
    assert enough.wait(LONG)
    assert thread.close(LONG)
    count = len(calls)
    assert not thread.is_alive
    assert len(calls) == count

    never = RepeatingThread("probe", lambda: calls.append(-1), seconds=LONG)
    never.start()
    assert never.close(LONG)
    assert -1 not in calls


def test_a_repeating_thread_outlives_an_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    again = threading.Event()
    calls: list[None] = []

    def work() -> None:
        calls.append(None)
        if len(calls) > 1:
            again.set()
            return
        raise ValueError("only once")

    thread = RepeatingThread("probe", work, seconds=0.001)
    thread.start()
    assert again.wait(LONG)
    assert thread.close(LONG)
    assert [record.getMessage() for record in caplog.records] == ["the thread probe goes on after an error"]
