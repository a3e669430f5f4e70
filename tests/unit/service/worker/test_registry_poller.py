"""Snapshots: new heads at once, graphs when they are loaded, and never a promoted model that cannot answer."""

import json
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.entities.develop.rollouts import Rollout
from lifelong_core.entities.heads import HeadRecord
from lifelong_core.entities.registry import Model, Registry, Task
from lifelong_core.store.registry.changes import Changes
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError, UnavailableError
from lifelong_service import metrics
from lifelong_service.graphs.classifier import Classifier
from lifelong_service.process import launch
from lifelong_service.worker.registry_poller import RegistryPoller
from lifelong_service.worker.serving_state import ServingState, describe_damage
from lifelong_service.worker.worker import Worker
from tests.unit.service.conftest import Service, png
from tests.unit.service.waiting import eventually

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HEAD = PostProcessingHead(1.0, [0, 0], [[0, 1], [1, 0]], [0.5, 0.5], ("no", "yes"))


def model(identifier: int) -> Model:
    return Model(
        id=identifier,
        task_id=1,
        name="m",
        version=identifier,
        kind="onnx",
        artifact="digest",
        preprocessing=None,
        calibration_set_id=None,
        created_at=NOW,
    )


def registry(revision: int, models: int, promoted: int, versions: dict[int, int] | None = None) -> Registry:
    """Models 1..`models` of one task, each with the default head of the version given (1 without)."""
    heads = {
        (identifier, None): HeadRecord(
            model_id=identifier,
            version=(versions or {}).get(identifier, 1),
            head=HEAD,
            created_at=NOW,
            created_by="test",
        )
        for identifier in range(1, models + 1)
    }
    return Registry(
        revision,
        MappingProxyType(
            {
                1: Task(
                    id=1,
                    name="t",
                    class_names=("no", "yes"),
                    costs=np.zeros((2, 2)),
                    promoted_model_id=promoted,
                    created_at=NOW,
                )
            }
        ),
        MappingProxyType({identifier: model(identifier) for identifier in range(1, models + 1)}),
        MappingProxyType(heads),
        frozenset({"default"}),
    )


class Graph(str):
    """Stands for a loaded graph."""

    provider = "CPUExecutionProvider"
    unused_gpu = None
    preprocessing_digest = "ab" * 32


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
        return cast("Classifier", Graph(f"graph {wanted.id} of {task.name}"))


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def poller(source: Source) -> Iterator[RegistryPoller]:
    made = RegistryPoller(source.fetch, source.load, serving=ServingState(), seconds=60)
    made.start()
    yield made
    source.gate.set()
    made.close()


def settle(poller: RegistryPoller) -> Any:
    """Poll until nothing is being loaded."""
    for future in [*poller._loading.values()]:
        future.exception(timeout=10)
    poller.poll()
    return poller.serving.snapshot


def test_everything_is_loaded_before_the_worker_begins(poller: RegistryPoller) -> None:
    assert poller.serving.problem is None
    assert poller.serving.snapshot.classifier(model(1)) == "graph 1 of t"


def test_nothing_is_published_when_nothing_changed(poller: RegistryPoller) -> None:
    before = poller.serving.snapshot
    poller.poll()
    assert poller.serving.snapshot is before


def test_heads_do_not_wait_for_graphs(poller: RegistryPoller, source: Source) -> None:
    source.gate.clear()
    source.current = registry(2, models=2, promoted=2, versions={1: 5})
    poller.poll()
    snapshot = poller.serving.snapshot
    assert snapshot.registry.heads[1, None].version == 5
    # The promoted model is not loaded yet, so the one before it goes on.
    assert snapshot.registry.resolve_model(None).id == 1
    with pytest.raises(UnavailableError, match="being loaded"):
        snapshot.classifier(model(2))
    source.gate.set()
    assert settle(poller).registry.resolve_model(None).id == 2


def trial(registry: Registry, candidate: int) -> Registry:
    rollout = Rollout(
        id=1,
        task_id=1,
        model_id=candidate,
        stage="canary",
        share=0.5,
        started_at=NOW,
        started_by="test",
        changed_at=NOW,
    )
    return replace(registry, rollouts=MappingProxyType({1: rollout}))


def test_a_candidate_is_used_when_it_is_loaded(poller: RegistryPoller, source: Source) -> None:
    source.gate.clear()
    source.current = trial(registry(2, models=2, promoted=1), candidate=2)
    poller.poll()
    assert poller.serving.current().registry.rollouts == {}
    source.gate.set()
    assert settle(poller).registry.rollouts == source.current.rollouts
    # Its promotion needs no further load.
    source.current = registry(3, models=2, promoted=2)
    poller.poll()
    assert poller.serving.current().registry.resolve_model(None).id == 2


def test_a_candidate_that_cannot_be_loaded_is_not_used(
    poller: RegistryPoller, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    source.broken.add(2)
    source.current = trial(registry(2, models=2, promoted=1), candidate=2)
    poller.poll()
    snapshot = settle(poller)
    assert snapshot.registry.rollouts == {}
    assert "broken graph" in snapshot.failures[2]
    assert metrics.REGISTRY.get_sample_value("lifelong_failed_models") == 1
    assert "cannot load a model" in [record.getMessage() for record in caplog.records]


def test_the_graph_of_a_released_model_is_dropped_when_its_successor_answers(
    poller: RegistryPoller, source: Source
) -> None:
    first = weakref.ref(poller.serving.current().classifier(model(1)))
    source.gate.clear()
    # Two promotions at once: model 2 is what a roll-back restores, and model 1 still answers.
    released = replace(registry(2, models=3, promoted=3), released=frozenset({1}))
    source.current = released
    poller.poll()
    assert poller.serving.current().registry.resolve_model(None).id == 1
    assert first() is not None
    source.gate.set()
    snapshot = settle(poller)
    assert set(snapshot.classifiers) == {2, 3}
    del snapshot
    assert first() is None
    with pytest.raises(ConflictError, match="released") as refused:
        poller.serving.current().classifier(model(1))
    assert "lifelong models shadow m@1" in (refused.value.hint or "")
    # As the candidate of a trial it is needed again.
    source.current = replace(trial(registry(3, models=3, promoted=3), candidate=1), released=frozenset())
    poller.poll()
    assert set(settle(poller).classifiers) == {1, 2, 3}


def test_every_change_of_the_head_that_answers_a_place_is_counted_and_logged(
    poller: RegistryPoller, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "lifelong_service")

    def serve(revision: int, heads: dict[str | None, int]) -> tuple[float, list[str]]:
        """How many changes are counted, and those that are logged."""
        records = {
            (1, environment): HeadRecord(
                model_id=1, version=version, head=HEAD, created_at=NOW, created_by="test"
            )
            for environment, version in heads.items()
        }
        source.current = replace(registry(revision, models=1, promoted=1), heads=MappingProxyType(records))
        caplog.clear()
        before = counted()
        poller.poll()
        logged = [record for record in caplog.records if record.getMessage() == "took over heads"]
        return counted() - before, [place for record in logged for place in record.details["heads"]]  # type: ignore[attr-defined]

    def counted() -> float:
        return metrics.REGISTRY.get_sample_value("lifelong_head_swaps_seen_total") or 0

    assert serve(2, {None: 1, "site-a": 2}) == (1, ["m@1 site-a: 1 -> 2"])
    assert serve(3, {None: 1, "site-a": 3}) == (1, ["m@1 site-a: 2 -> 3"])
    assert serve(4, {None: 1, "site-a": 3, "site-b": 1}) == (0, [])  # the default head, now held as its own
    assert serve(5, {None: 1}) == (1, ["m@1 site-a: 3 -> 1"])
    assert serve(6, {None: 4}) == (1, ["m@1 *: 1 -> 4"])


def test_the_first_head_of_a_model_is_no_problem_and_no_swap(
    poller: RegistryPoller, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    source.current = replace(registry(2, models=1, promoted=1), heads=MappingProxyType({}))
    settle(poller)
    before = metrics.REGISTRY.get_sample_value("lifelong_head_swaps_seen_total")
    source.current = registry(3, models=1, promoted=1)
    poller.poll()
    assert metrics.REGISTRY.get_sample_value("lifelong_head_swaps_seen_total") == before
    assert poller.serving.problem is None
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_a_model_that_is_gone_while_it_is_loaded_keeps_nothing_from_being_served(
    poller: RegistryPoller, source: Source
) -> None:
    """The database was restored meanwhile."""
    source.gate.clear()
    source.current = registry(2, models=2, promoted=1)
    poller.poll()
    source.current = registry(1, models=1, promoted=1, versions={1: 3})
    source.gate.set()
    for future in [*poller._loading.values()]:
        future.exception(timeout=10)
    poller.poll()
    assert poller.serving.snapshot.registry.heads[1, None].version == 3
    assert not poller._loading


LOADING_FOR_EVER = """
import threading
from lifelong_service.worker.model_loader import GraphLoader

begun = threading.Event()
loader = GraphLoader(lambda model, task: begun.set() or threading.Event().wait())
loader.submit(None, None)
begun.wait()
"""


def test_storage_that_hangs_keeps_no_process_from_ending() -> None:
    subprocess.run([sys.executable, "-c", LOADING_FOR_EVER], check=True, timeout=60)


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
    assert poller.serving.problem is not None
    assert "gone." in poller.serving.problem
    assert poller.serving.snapshot is not None, "what was known is still served"
    source.current = current
    poller.poll()
    assert poller.serving.problem is None


def test_a_store_that_comes_back_as_another_one_is_taken_over_whatever_its_revision(
    poller: RegistryPoller, source: Source
) -> None:
    """A backup was restored: its revision may be smaller, or by chance the same."""
    for revision in (1, 5, 9):
        source.current = registry(5, models=1, promoted=1, versions={1: 5})
        poller.poll()
        source.current = UnavailableError("gone.")
        poller.poll()
        source.current = registry(revision, models=1, promoted=1, versions={1: 3})
        poller.poll()
        assert poller.serving.snapshot.registry.heads[1, None].version == 3
        assert poller.serving.revision == revision


def recalling(source: Source, kept: Registry | Exception, **options: Any) -> RegistryPoller:
    """A poller that starts without its store."""
    source.current = UnavailableError("gone.")

    def recall() -> Registry:
        if isinstance(kept, Exception):
            raise kept
        return kept

    return RegistryPoller(
        source.fetch, source.load, serving=ServingState(), seconds=60, recall=recall, **options
    )


def test_without_the_store_what_was_kept_is_served_until_the_store_is_back(source: Source) -> None:
    told: list[int] = []
    kept = registry(7, models=1, promoted=1, versions={1: 4})
    poller = recalling(source, kept, published=lambda registry: told.append(registry.revision))
    poller.start()
    assert poller.serving.snapshot.registry == kept
    assert poller.serving.snapshot.classifier(model(1)) == "graph 1 of t"
    assert poller.serving.problem is not None
    told.clear()
    source.current = registry(7, models=1, promoted=1, versions={1: 4})
    poller.poll()
    assert (poller.serving.problem, told) == (None, [7]), "the same as before, which can be told now"
    source.current = registry(3, models=1, promoted=1, versions={1: 2})
    poller.poll()
    poller.close()
    assert poller.serving.snapshot.registry.heads[1, None].version == 2


def test_a_store_that_cannot_be_understood_keeps_no_worker_from_starting(source: Source) -> None:
    kept = cast("Registry", source.current)
    source.current = KeyError("a row that nobody can read")
    poller = RegistryPoller(
        source.fetch, source.load, serving=ServingState(), seconds=0.01, recall=lambda: kept
    )
    poller.start()
    try:
        assert poller.serving.revision == kept.revision
        assert "KeyError: 'a row that nobody can read'" in str(poller.serving.problem)
    finally:
        poller.close()


def test_what_was_kept_and_is_damaged_is_not_served(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    poller = recalling(source, UnavailableError("the registry cache is damaged."))
    with caplog.at_level("WARNING"):
        source.gate.set()
        poller.start()
    poller.close()
    assert poller.serving.snapshot is None
    messages = [record.message for record in caplog.records]
    assert messages.count("the cached registry cannot be used") == 1


def test_a_store_that_hangs_keeps_nobody_waiting(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifelong_service.worker.registry_poller.POLL_TIMEOUT_SECONDS", 0.05)
    gate = threading.Event()
    kept = registry(7, models=1, promoted=1)
    current = registry(8, models=1, promoted=1)
    poller = RegistryPoller(
        lambda _: (gate.wait(10), current)[1],
        source.load,
        serving=ServingState(),
        seconds=60,
        recall=lambda: kept,
    )
    poller.start()
    poller.poll(timeout_seconds=0.05)
    assert poller.serving.revision == 7
    assert poller.serving.problem is not None
    assert "not" in poller.serving.problem
    gate.set()
    deadline = time.monotonic() + 10
    while poller.serving.revision != 8:
        assert time.monotonic() < deadline
        poller.poll()
    poller.close()


def damaged(revision: int, reason: str = "head 2 is damaged") -> Registry:
    """Both places of model 1 have a head that cannot be served."""
    heads = MappingProxyType[tuple[int, str | None], HeadRecord]({})
    reasons = MappingProxyType[tuple[int, str | None], str]({(1, None): reason, (1, "b"): reason})
    return replace(registry(revision, models=1, promoted=1), heads=heads, damaged=reasons)


def damaged_places() -> float:
    return metrics.REGISTRY.get_sample_value("lifelong_damaged_heads") or 0.0


def test_a_damaged_head_leaves_the_last_good_one_of_its_place_in_force(
    poller: RegistryPoller, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    source.current = damaged(2)
    poller.poll()
    snapshot = poller.serving.snapshot
    assert snapshot.registry.head_for(model(1), "a").version == 1
    with pytest.raises(UnavailableError, match="head 2 is damaged"):
        snapshot.registry.head_for(model(1), "b")
    assert damaged_places() == 2
    assert describe_damage(snapshot.registry) == [
        "m@1 *: head 2 is damaged; the last good head 1 goes on",
        "m@1 b: head 2 is damaged; there is no good one, requests get 503",
    ]
    # Said once, however often the registry changes.
    source.current = damaged(3)
    poller.poll()
    assert [record.message for record in caplog.records].count("a head cannot be served") == 2
    source.current = registry(4, models=1, promoted=1, versions={1: 3})
    poller.poll()
    assert damaged_places() == 0


def test_a_worker_that_starts_with_a_damaged_head_has_the_last_good_one_from_the_disk(source: Source) -> None:
    source.current = damaged(9)
    kept = registry(7, models=1, promoted=1, versions={1: 4})
    poller = RegistryPoller(
        source.fetch, source.load, serving=ServingState(), seconds=60, recall=lambda: kept
    )
    poller.start()
    assert poller.serving.revision == 9
    assert poller.serving.snapshot.registry.head_for(model(1), "a").version == 4
    assert poller.serving.snapshot.classifier(model(1)) == "graph 1 of t"
    poller.close()


def test_a_model_whose_default_head_is_damaged_is_loaded_for_its_environments(source: Source) -> None:
    whole = registry(1, models=1, promoted=1)
    own = MappingProxyType({(1, "a"): whole.heads[1, None]})
    reasons = MappingProxyType[tuple[int, str | None], str]({(1, None): "head 2 is damaged"})
    source.current = replace(whole, heads=own, damaged=reasons)
    poller = RegistryPoller(source.fetch, source.load, serving=ServingState(), seconds=60)
    poller.start()
    poller.close()
    assert poller.serving.snapshot.classifier(model(1)) == "graph 1 of t"


def test_a_head_that_was_mended_by_hand_is_found_although_the_revision_stayed(
    poller: RegistryPoller, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.current = damaged(2)
    poller.poll()
    source.current = registry(2, models=1, promoted=1, versions={1: 2})
    poller.poll()
    assert damaged_places() == 2, "it is not asked for at every poll"
    monkeypatch.setattr(poller, "_ask_for_all_at", 0.0)
    poller.poll()
    assert damaged_places() == 0
    assert poller.serving.snapshot.registry.heads[1, None].version == 2


def test_a_change_that_is_told_is_taken_over_at_once(source: Source) -> None:
    changes = Changes()
    poller = RegistryPoller(
        source.fetch, source.load, serving=ServingState(), seconds=60, changes=lambda: changes
    )
    poller.start()
    source.current = registry(2, models=1, promoted=1, versions={1: 5})
    changes._changed.set()  # as a listener does
    deadline = time.monotonic() + 10
    while poller.serving.revision != 2:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    poller.close()


def test_models_without_a_head_are_not_loaded(source: Source) -> None:
    loaded: list[int] = []
    source.current = replace(registry(1, models=2, promoted=1), heads=MappingProxyType({}))
    poller = RegistryPoller(
        source.fetch, lambda wanted, _: loaded.append(wanted.id), serving=ServingState(), seconds=60
    )  # type: ignore[func-returns-value]
    poller.start()
    poller.close()
    assert loaded == []


@pytest.mark.parametrize("alive", [True, False])
def test_a_worker_whose_parent_died_before_it_looked_is_an_orphan(source: Source, alive: bool) -> None:
    stopped = threading.Event()
    parent = os.getppid() if alive else os.getpid()  # the latter is certainly not the parent
    poller = RegistryPoller(
        source.fetch,
        source.load,
        serving=ServingState(),
        seconds=0.001,
        stop=lambda _: stopped.set(),
        parent=parent,
    )
    poller.start()
    found = stopped.wait(0.2 if alive else 10)
    poller.close()
    assert found is not alive


def test_a_worker_with_a_fault_ends_once_with_its_reason(source: Source) -> None:
    reasons: list[str] = []
    fault: list[str | None] = [None]
    poller = RegistryPoller(
        source.fetch,
        source.load,
        serving=ServingState(),
        seconds=0.001,
        stop=reasons.append,
        fault=lambda: fault[0],
    )
    poller.start()
    time.sleep(0.05)
    assert reasons == []
    fault[0] = "the GPU fails"
    eventually(lambda: reasons)
    time.sleep(0.05)
    poller.close()
    assert reasons == ["the GPU fails"]


def test_the_parent_is_the_one_that_the_starter_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(launch.PARENT, raising=False)
    assert launch.parent_process() == os.getppid()
    monkeypatch.setenv(launch.PARENT, "4321")
    assert launch.parent_process() == 4321
    worker = Worker(Settings())
    assert worker.poller._parent == 4321


@pytest.fixture
def cache(settings: Settings) -> Path:
    return settings.registry_cache_file


@pytest.fixture
def file(settings: Settings) -> Iterator[Path]:
    """The database; wherever a test has moved it, it is back at the end."""
    path = settings.data_directory / "lifelong.db"
    yield path
    if (moved := path.with_suffix(".moved")).exists():
        moved.replace(path)


def move_away(file: Path) -> None:
    file.replace(file.with_suffix(".moved"))


def bring_back(file: Path) -> None:
    file.with_suffix(".moved").replace(file)


def kept(service: Service, cache: Path) -> None:
    """Wait until the disk holds what the service serves."""
    eventually(
        lambda: (
            cache.exists()
            and json.loads(cache.read_text())["registry"]["revision"] == service.store.revision()
        )
    )


def predict(service: Service, scope: str = "predict") -> Any:
    return service.client.post("/v1/predict", content=png(), headers=service.header(scope))


def test_heads_models_and_tokens_come_from_the_disk_and_the_database_takes_over(
    registered: None, serve: Callable[..., Service], cache: Path, file: Path
) -> None:
    kept(serve(), cache)
    move_away(file)
    written = cache.stat().st_ino
    service = serve()
    ready = service.client.get("/readyz")
    assert ready.status_code == 200, ready.text
    assert ready.json()["degraded"]
    for path in ("/v1/predict", "/v1/predict?model=table"):
        answer = service.client.post(path, content=png(), headers=service.header("predict"))
        assert answer.status_code == 200, answer.text
    assert predict(service, "read").status_code == 403
    unknown = service.client.post("/v1/predict", content=png(), headers={"Authorization": "Bearer ll_x"})
    assert (unknown.status_code, unknown.json()["error"]["field"]) == (503, "Authorization")
    assert cache.stat().st_ino == written, "another worker may know more by now"
    assert service.client.get("/v1/admin/models").status_code == 503

    bring_back(file)
    eventually(lambda: service.logged() == 2)
    eventually(lambda: service.client.get("/readyz").json()["degraded"] == [])
    _, secret = service.store.tokens.create("fresh", ["read"], actor="test")  # type: ignore[list-item]
    header = {"Authorization": f"Bearer {secret}"}
    assert service.client.get("/v1/admin/models", headers=header).status_code == 200
    assert predict(service).status_code == 200


def test_a_token_that_was_revoked_before_the_outage_stays_revoked(
    registered: None, serve: Callable[..., Service], cache: Path, file: Path
) -> None:
    first = serve()
    first.store.tokens.revoke("predict-token", actor="test")
    kept(first, cache)
    move_away(file)
    assert predict(serve()).status_code == 503  # unknown here, and nobody can be asked
    assert predict(serve(), "admin").status_code == 200


def test_a_damaged_cache_is_not_served_and_the_worker_says_so(
    registered: None, serve: Callable[..., Service], cache: Path, file: Path
) -> None:
    kept(serve(), cache)
    move_away(file)
    text = cache.read_text()
    cache.write_text(text.replace("linear", "lineor", 1))
    service = serve()
    answer = service.client.get("/readyz")
    assert answer.status_code == 503
    assert "checksum" in " ".join(answer.json()["reasons"])
    assert predict(service).status_code == 503


def test_a_cache_that_cannot_be_written_hurts_nobody(
    registered: None, serve: Callable[..., Service], cache: Path
) -> None:
    cache.mkdir()
    service = serve()
    assert service.client.get("/readyz").status_code == 200
    assert predict(service).status_code == 200


def test_a_damaged_head_is_named_and_the_last_good_one_goes_on(
    service: Service, serve: Callable[..., Service], cache: Path
) -> None:
    good = predict(service).json()["head_version"]
    kept(service, cache)
    store = service.store
    record = store.heads.publish(
        "linear", store.heads.get("linear", good).head, environment=None, actor="test"
    )
    own = store.heads.publish("linear", record.head, environment="site-b", actor="test")
    with store.database.write() as connection:
        heads = tables.heads
        connection.execute(
            sa.update(heads).where(heads.c.version.in_([record.version, own.version])).values(document="{")
        )
        connection.execute(sa.update(tables.registry_revision).values(revision=1000))
    # The one that saw them whole keeps them; one that starts has the last good ones from the disk, if there are any.
    named = eventually(lambda: service.client.get("/readyz").json()["damaged_heads"])
    assert len(named) == 2
    assert predict(service).json()["head_version"] in (good, record.version)
    second = serve()
    ready = second.client.get("/readyz")
    assert (ready.status_code, len(ready.json()["damaged_heads"])) == (200, 2)
    assert predict(second).status_code == 200
    assert "lifelong_damaged_heads 2.0" in second.client.get("/metrics").text
    listed = second.client.get("/v1/admin/models/linear/heads").json()
    assert sorted(listed["damaged"]) == [str(record.version), str(own.version)]

    cache.unlink()
    third = serve()
    answer = predict(third)
    assert answer.status_code == 503
    assert f"head {record.version} is damaged" in answer.json()["error"]["message"]
    assert third.client.get("/v1/admin/models/linear").status_code == 200
    third.store.heads.publish("linear", record.head, environment=None, actor="test")
    eventually(lambda: predict(third).status_code == 200)
