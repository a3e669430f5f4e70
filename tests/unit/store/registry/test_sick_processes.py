"""What is wrong with workers and monitors."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from lifelong_core.entities.registry import ModelLoad, ServingWorker
from lifelong_core.store.registry.heartbeats import Heartbeat, MonitorProcess, Tick
from lifelong_core.store.registry.sick_processes import describe_sick

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
WORKER = ServingWorker(
    id="w",
    host="one",
    process=7,
    started_at=NOW - 60 * MINUTE,
    seen_at=NOW,
    revision=1,
    heads=MappingProxyType({}),
    models=MappingProxyType({}),
    is_lost=False,
)
TICK = Tick(NOW - MINUTE, NOW - MINUTE, NOW)
BEAT = Heartbeat("m", "one", 8, NOW - 60 * MINUTE, 60.0, "auto", {}, TICK, ())
MONITOR = MonitorProcess(BEAT, NOW, is_lost=False)


def sick(workers: list[ServingWorker], monitors: list[MonitorProcess]) -> list[str]:
    return describe_sick(workers, monitors, {1: "resnet@2"}, at=NOW)


def test_healthy_processes_are_not_named() -> None:
    assert sick([WORKER], [MONITOR]) == []


def test_missing_and_lost_processes_are_named_unless_replaced() -> None:
    assert [text.partition(";")[0] for text in sick([], [])] == [
        "No worker is running",
        "No monitor is running",
    ]
    lost = replace(WORKER, is_lost=True, seen_at=NOW - 5 * MINUTE)
    assert sick([WORKER, lost], [MONITOR]) == ["Worker 7 on one was seen last at 2026-03-04 11:55 UTC."]
    successor = replace(WORKER, started_at=NOW - 4 * MINUTE)
    assert sick([successor, lost], [MONITOR]) == []
    gone = replace(MONITOR, is_lost=True, seen_at=NOW - 5 * MINUTE)
    assert sick([WORKER], [MONITOR, gone]) == ["Monitor 8 on one was seen last at 2026-03-04 11:55 UTC."]


def test_a_graph_that_does_not_load_and_a_monitor_that_is_late_or_failed_are_named() -> None:
    failing = replace(WORKER, models=MappingProxyType({1: ModelLoad(None, "no such file")}))
    assert sick([failing], [MONITOR]) == ["Worker 7 on one cannot load resnet@2: no such file"]
    late = replace(MONITOR, heartbeat=replace(BEAT, tick=replace(TICK, finished_at=NOW - 9 * MINUTE)))
    assert sick([WORKER], [late]) == ["Monitor 8 on one has made no tick since 2026-03-04 11:51 UTC."]
    failed = replace(MONITOR, heartbeat=replace(BEAT, tick=replace(TICK, problem="no database")))
    assert sick([WORKER], [failed]) == ["The last tick of monitor 8 on one failed: no database"]
