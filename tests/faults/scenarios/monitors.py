"""Faults of a monitor: another monitor takes over, and serving is not affected."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise

import numpy as np

from tests.faults.trial import Outcome, Scale, quantile, under_load
from tests.faults.world import CYCLE_SECONDS, LEASE_SECONDS, World

_HUNG = """
import sys
from lifelong_core.store import Store
from lifelong_core.store.registry.registry import bump_revision
with Store.open(sys.argv[1], sys.argv[2]) as store, store.database.write() as connection:
    bump_revision(connection)
    print("hung", flush=True)
    sys.stdin.read()
"""
"""A monitor that hangs in the transaction of a swap, just before it commits."""


def two_monitors(world: World, scale: Scale) -> Outcome:
    """Two monitors run; repeatedly the older one is killed at a random moment, and a new one is started."""
    with under_load(world, "two_monitors", scale) as trial:
        assert world.monitor is not None
        pair = [world.monitor, world.another_monitor()]
        try:
            trial.wait_for_cycles(1)
            for number in range(scale.count(50, 2)):
                trial.load.prevalence = ((0.8, 0.1, 0.1), (0.1, 0.1, 0.8))[number % 2]
                pair[1].wait_until_it_watches()
                world.wait(scale.of(LEASE_SECONDS + 2 * CYCLE_SECONDS, 2))
                with trial.fault():
                    pair.pop(0).kill()
                    pair.append(world.another_monitor())
                    # The remaining monitor takes over.
                    trial.wait_for_cycles(1)
            due = sorted(cycle.due_at for cycle in trial.cycles())
            longest = max((after - before for before, after in pairwise(due)), default=timedelta(0))
            trial.figures["longest_seconds_without_a_cycle"] = longest.total_seconds()
            return trial.conclude()
        finally:
            for monitor in pair:
                monitor.kill()


def sick_monitor(world: World, scale: Scale) -> Outcome:
    """The monitor is stopped, killed, or hangs in the transaction of a swap; serving is not affected."""
    with under_load(world, "sick_monitor", scale) as trial:
        healthy: list[float] = []
        sick: dict[str, list[float]] = {"stopped": [], "hung": [], "killed": []}
        repeats, seconds = scale.count(5, 1), scale.of(10, 1)

        def p99() -> float:
            began = time.monotonic()
            time.sleep(seconds)
            return quantile([a.seconds for a in trial.load.answers if a.due_at >= began], 0.99) or float(
                "nan"
            )

        faults = {"stopped": _stopped, "hung": _hung, "killed": _killed}
        for _ in range(repeats):
            for name, fault in faults.items():
                world.ready()
                assert world.monitor is not None
                world.monitor.wait_until_it_watches()
                healthy.append(p99())
                with trial.fault(), fault(world):
                    sick[name].append(p99())
        trial.figures["p99_ms_healthy"] = float(np.median(healthy))
        for name, values in sick.items():
            trial.figures[f"p99_ms_{name}"] = float(np.median(values))
            trial.figures[f"p99_ratio_{name}"] = float(np.median(values) / np.median(healthy))
        trial.figures["p99_ms_healthy_spread"] = [float(min(healthy)), float(max(healthy))]
        return trial.conclude(is_hidden=True)


@contextmanager
def _stopped(world: World) -> Iterator[None]:
    assert world.monitor is not None
    world.monitor.process.send_signal(signal.SIGSTOP)  # it holds its lease and its connections
    yield
    world.monitor.process.send_signal(signal.SIGCONT)


@contextmanager
def _killed(world: World) -> Iterator[None]:
    world.stop_monitor()
    yield


@contextmanager
def _hung(world: World) -> Iterator[None]:
    settings = world.settings
    with subprocess.Popen(
        [sys.executable, "-c", _HUNG, world.url, settings.resolved_artifacts_url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"hung\n"
        yield
        process.send_signal(signal.SIGKILL)
