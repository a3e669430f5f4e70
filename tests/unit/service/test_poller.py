"""Snapshots: heads at once, graphs when they are loaded, and never a promoted model that cannot answer."""

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pytest

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.errors import InvalidInputError, UnavailableError
from lifelong_core.settings import Settings
from lifelong_core.store.records import HeadRecord, Model, Registry, Task
from lifelong_service import launch
from lifelong_service.inference import Classifier
from lifelong_service.poller import RegistryPoller
from lifelong_service.worker import Worker

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HEAD = PostProcessingHead(1.0, [0, 0], [[0, 1], [1, 0]], [0.5, 0.5], ("no", "yes"))


def model(identifier: int) -> Model:
    return Model(identifier, 1, "m", identifier, "onnx", "digest", None, None, NOW)


def registry(revision: int, models: int, promoted: int, versions: dict[int, int] | None = None) -> Registry:
    """Models 1..`models` of one task, each with the default head of the version given (1 without)."""
    heads = {
        (identifier, None): HeadRecord(identifier, (versions or {}).get(identifier, 1), HEAD, NOW, "test")
        for identifier in range(1, models + 1)
    }
    return Registry(
        revision,
        MappingProxyType({1: Task(1, "t", ("no", "yes"), np.zeros((2, 2)), promoted, NOW)}),
        MappingProxyType({identifier: model(identifier) for identifier in range(1, models + 1)}),
        MappingProxyType(heads),
        frozenset({"default"}),
    )


class Source:
    """A registry that the test changes, and graphs that load when the test lets them."""

    def __init__(self) -> None:
        self.current: Registry | Exception = registry(1, models=1, promoted=1)
        self.gate = threading.Event()
        self.gate.set()
        self.broken: set[int] = set()

    def fetch(self, known: int | None) -> Registry | None:
        if isinstance(self.current, Exception):
            raise self.current
        return None if known == self.current.revision else self.current

    def load(self, wanted: Model, task: Task) -> Classifier:
        self.gate.wait(10)
        if wanted.id in self.broken:
            raise InvalidInputError("broken graph.")
        return cast("Classifier", f"graph {wanted.id} of {task.name}")


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def poller(source: Source) -> Iterator[RegistryPoller]:
    made = RegistryPoller(source.fetch, source.load, seconds=60)
    made.start()
    yield made
    source.gate.set()
    made.close()


def settle(poller: RegistryPoller) -> Any:
    """Poll until nothing is being loaded."""
    for future in [*poller._loading.values()]:
        future.exception(timeout=10)
    poller.poll()
    return poller.snapshot


def test_everything_is_loaded_before_the_worker_begins(poller: RegistryPoller) -> None:
    assert poller.problem is None
    assert poller.snapshot is not None
    assert poller.snapshot.classifier(model(1)) == "graph 1 of t"


def test_nothing_is_published_when_nothing_changed(poller: RegistryPoller) -> None:
    before = poller.snapshot
    poller.poll()
    assert poller.snapshot is before


def test_heads_do_not_wait_for_graphs(poller: RegistryPoller, source: Source) -> None:
    source.gate.clear()
    source.current = registry(2, models=2, promoted=2, versions={1: 5})
    poller.poll()
    snapshot = poller.snapshot
    assert snapshot is not None
    assert snapshot.registry.heads[1, None].version == 5
    # The promoted model is not loaded yet, so the one before it goes on.
    assert snapshot.registry.resolve_model(None).id == 1
    with pytest.raises(UnavailableError, match="being loaded"):
        snapshot.classifier(model(2))
    source.gate.set()
    assert settle(poller).registry.resolve_model(None).id == 2


def test_an_unloadable_graph_is_reported_and_tried_again(
    poller: RegistryPoller, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.broken = {2}
    source.current = registry(2, models=2, promoted=2)
    poller.poll()
    snapshot = settle(poller)
    assert snapshot.registry.resolve_model(None).id == 1
    with pytest.raises(UnavailableError, match="broken graph"):
        snapshot.classifier(model(2))
    source.broken = set()
    poller.poll()
    assert 2 not in poller._loading, "it is not tried again at every poll"
    monkeypatch.setattr(poller, "_retry_at", {2: 0.0})
    poller.poll()
    assert settle(poller).registry.resolve_model(None).id == 2
    assert settle(poller).failures == {}


def test_an_unavailable_store_is_a_problem_until_it_is_back(poller: RegistryPoller, source: Source) -> None:
    current, source.current = source.current, UnavailableError("gone.")
    poller.poll()
    assert poller.problem is not None
    assert "gone." in poller.problem
    assert poller.snapshot is not None, "what was known is still served"
    source.current = current
    poller.poll()
    assert poller.problem is None


def test_models_without_a_head_are_not_loaded(source: Source) -> None:
    loaded: list[int] = []
    source.current = replace(registry(1, models=2, promoted=1), heads=MappingProxyType({}))
    poller = RegistryPoller(source.fetch, lambda wanted, _: loaded.append(wanted.id), seconds=60)  # type: ignore[func-returns-value]
    poller.start()
    poller.close()
    assert loaded == []


@pytest.mark.parametrize("alive", [True, False])
def test_a_worker_whose_parent_died_before_it_looked_is_an_orphan(source: Source, alive: bool) -> None:
    orphaned = threading.Event()
    parent = os.getppid() if alive else os.getpid()  # the latter is certainly not the parent
    poller = RegistryPoller(source.fetch, source.load, seconds=0.001, on_orphaned=orphaned.set, parent=parent)
    poller.start()
    found = orphaned.wait(0.2 if alive else 10)
    poller.close()
    assert found is not alive


def test_the_parent_is_the_one_that_the_starter_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(launch.PARENT, raising=False)
    assert launch.parent_process() == os.getppid()
    monkeypatch.setenv(launch.PARENT, "4321")
    assert launch.parent_process() == 4321
    worker = Worker(Settings())
    assert worker.poller._parent == 4321
