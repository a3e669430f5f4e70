"""Periodic tasks use the newest value, survive every failure, and block no caller."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lifelong_core.store.registry.cache import RegistryCache
from lifelong_core.values.errors import UnavailableError
from lifelong_service.worker.periodic_tasks import PeriodicTask
from lifelong_service.worker.tasks import CacheKeeper
from tests.unit.service.waiting import LONG, eventually
from tests.unit.service.worker.test_registry_poller import registry


@pytest.fixture
def started() -> Iterator[Callable[[PeriodicTask[Any]], PeriodicTask[Any]]]:
    all_of_them: list[PeriodicTask[Any]] = []

    def start(task: PeriodicTask[Any]) -> PeriodicTask[Any]:
        all_of_them.append(task)
        task.start()
        return task

    yield start
    for task in all_of_them:
        task.close(LONG)


def test_the_newest_value_is_worked_on_and_none_twice_at_once(started: Any) -> None:
    done: list[int] = []
    gate = threading.Event()
    task = started(PeriodicTask("no", lambda value: (gate.wait(LONG), done.append(value)), seconds=60))
    for value in range(100):
        task.offer(value)
    gate.set()
    eventually(lambda: done[-1:] == [99])
    assert len(done) <= 3


def test_the_same_value_comes_up_again_and_again(started: Any) -> None:
    done: list[str] = []
    started(PeriodicTask("no", done.append, seconds=0.01)).offer("life")
    eventually(lambda: len(done) >= 3)


def test_a_failure_is_logged_once_and_tried_again(started: Any, caplog: pytest.LogCaptureFixture) -> None:
    tries: list[int] = []

    def work(value: int) -> None:
        tries.append(value)
        if len(tries) < 4:
            raise UnavailableError("the disk is full.")

    started(PeriodicTask("it cannot be kept", work, seconds=0.01)).offer(1)
    eventually(lambda: len(tries) >= 5)
    assert [record.message for record in caplog.records] == ["it cannot be kept"]


def test_a_mistake_of_ours_does_not_end_the_thread(started: Any, caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []

    def work(value: int) -> None:
        if value == 1:
            raise ZeroDivisionError
        done.append(value)

    task = started(PeriodicTask("it cannot be kept", work, seconds=60))
    task.offer(1)
    eventually(lambda: caplog.records)
    task.offer(2)
    eventually(lambda: done == [2])


def test_the_end_comes_last_and_is_not_waited_for_too_long() -> None:
    done: list[str] = []
    quick = PeriodicTask[str]("no", done.append, seconds=60, finish=lambda: done.append("farewell"))
    quick.start()
    quick.offer("life")
    eventually(lambda: done == ["life"])
    quick.close(LONG)
    assert done == ["life", "farewell"]

    gate = threading.Event()
    hanging = PeriodicTask[str]("no", lambda _: gate.wait(LONG), seconds=60)
    hanging.start()
    hanging.offer("life")
    began = time.monotonic()
    hanging.close(0.05)
    assert time.monotonic() - began < LONG / 2
    gate.set()


@pytest.fixture
def cache(tmp_path: Path) -> RegistryCache:
    return RegistryCache(tmp_path / "registry.json", database_url="sqlite:////somewhere/lifelong.db")


def test_the_cache_is_written_for_a_new_registry_only(cache: RegistryCache) -> None:
    keeper = CacheKeeper(cache, lambda: True)
    first = registry(1, models=1, promoted=1)
    keeper(first)
    before = cache.path.stat()
    keeper(first)
    assert cache.path.stat().st_ino == before.st_ino
    keeper(replace(first, revision=2))
    assert cache.revision() == 2


def test_what_another_process_or_a_hand_did_to_the_cache_is_repaired(cache: RegistryCache) -> None:
    mine = registry(7, models=1, promoted=1)
    keeper = CacheKeeper(cache, lambda: True)
    keeper(mine)
    # A worker that was slower than this one writes what it knew before; one that knows the same writes it again.
    for other in (registry(6, models=1, promoted=1), mine):
        cache.save(other)
        keeper(mine)
        assert cache.revision() == 7
    for damage in (lambda: cache.path.write_text("{"), cache.path.unlink):
        damage()
        keeper(mine)
        assert cache.load() == mine


def test_a_worker_that_does_not_know_the_present_leaves_the_cache_alone(cache: RegistryCache) -> None:
    current = True
    keeper = CacheKeeper(cache, lambda: current)
    mine = registry(6, models=1, promoted=1)
    keeper(mine)
    cache.save(registry(7, models=1, promoted=1))
    current = False
    keeper(mine)
    assert cache.revision() == 7
