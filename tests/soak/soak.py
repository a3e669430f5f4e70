"""A complete installation under long load (predictions, labels, scrapes, jobs, cycles, swaps), and its memory."""

import http.client
import itertools
import json
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import numpy as np
import psutil

from lifelong_core.design import ProblemFingerprint, recommend
from lifelong_core.store import Cycle
from tests import tools
from tests.faults.world import MODEL, World
from tests.integration.installation import COSTS, image
from tests.integration.monitors import Monitor
from tests.integration.processes import Service
from tests.soak.memory import Sample, growth, weigh

ENVIRONMENTS = ("clinic-a", "clinic-b", "clinic-c", "clinic-d")
PREVALENCES = ((1 / 3, 1 / 3, 1 / 3), (0.85, 0.1, 0.05))
CLASSES = 3
ROWS = 20
LABELLED_ROWS = 5
"""Number of labelled rows of each request."""
SCRAPE_SECONDS = 2.0
_MOST_REPEATS = 20
LEAKING = (sys.executable, "-m", "tests.soak.leaking_monitor")
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Plan:
    """Duration and size of a soak.

    Attributes:
        seconds: duration of the load; on a slow machine it lasts until the cycles after the warm-up are complete, and
            one is a swap.
        warm_up_seconds: part of it in which caches and windows fill.
        cycles: cycles of an environment that the warm-up has at least, and the time after it.
        cycle_seconds: time between two cycles of a population.
        shift_seconds: time between two changes of the class mix of an environment; longer where requests are late.
        request_seconds: time between two requests of an environment.
        window_samples: samples of a window, which must be full after the warm-up.
        has_leak: whether a second, leaking monitor runs.
    """

    seconds: float
    warm_up_seconds: float
    cycle_seconds: float
    shift_seconds: float
    request_seconds: float
    window_samples: int
    cycles: int = 6
    has_leak: bool = False


QUICK = Plan(
    seconds=45,
    warm_up_seconds=21,
    cycle_seconds=1,
    shift_seconds=12,
    request_seconds=0.25,
    window_samples=400,
    has_leak=True,
)


def plan_of(minutes: float) -> Plan:
    """Return the plan of a long soak; a sixth of it, at most five minutes, is warm-up."""
    return Plan(
        seconds=60 * minutes,
        warm_up_seconds=min(300, 10 * minutes),
        cycle_seconds=3,
        shift_seconds=60,
        request_seconds=0.5,
        window_samples=2000,
    )


@dataclass
class Soaked:
    """Measurements of a soak.

    Attributes:
        memory: memory of the monitor, of each worker and of the leaking monitor, if any.
        cycles: number of cycles with a window, by outcome.
        requests: number of requests with the answer 200.
        failures: other answers, and broken connections.
        warm_at: end of the warm-up, in seconds.
        until: end of the load, in seconds.
    """

    memory: dict[str, list[Sample]] = field(default_factory=dict)
    cycles: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    failures: list[str] = field(default_factory=list)
    warm_at: float = 0.0
    until: float = 0.0

    def growth(self) -> dict[str, float]:
        """Relative growth of the kept memory of each process after the warm-up."""
        return {
            name: growth(samples, after=self.warm_at, until=self.until)
            for name, samples in self.memory.items()
        }


def soak(folder: Path, plan: Plan, *, say: Callable[[Soaked, float], None] = lambda *_: None) -> Soaked:
    """Run an installation on SQLite under load.

    Args:
        folder: an empty one.
        plan: duration and size.
        say: called after each measurement of memory, with all measurements and the seconds since the load began.
    """
    soaked = Soaked()
    with World("sqlite", folder, None) as world:
        _attach_recommendation(world)
        world.start_service()
        settings = {
            "cycle_interval_seconds": plan.cycle_seconds,
            "quantifier": "auto",
            "window_samples": plan.window_samples,
            "validation_samples": plan.window_samples,
        }
        world.start_monitor(**settings)
        monitors = {"monitor": world.monitor}
        with _leaking(world, settings, is_wanted=plan.has_leak) as leaking:
            if leaking is not None:
                monitors["leaking monitor"] = leaking
            began = time.monotonic()
            with _load(world.service, list(monitors.values()), plan, soaked):
                _watch(world, monitors, plan, soaked, say, began)
        for environment in ENVIRONMENTS:
            for cycle in _cycles(world, environment):
                soaked.cycles[cycle.outcome] = soaked.cycles.get(cycle.outcome, 0) + 1
    return soaked


def _attach_recommendation(world: World) -> None:
    """Attach a recommendation, so that realised metrics are computed and validations are possible."""
    fingerprint = ProblemFingerprint(
        number_of_classes=CLASSES,
        class_scores_available=True,
        decision_rule="argmax",
        unequal_severity=True,
        costs_available=True,
        costs=COSTS,
        unequal_interest=False,
        prevalences_representative=True,
        class_imbalance=False,
        predictive_values="unimportant",
        calibration_assessment=False,
        dependent_cases=False,
        invalid_outputs=False,
    )
    world.store.recommendations.attach("skin", recommend(fingerprint), actor="soak")


@contextmanager
def _leaking(world: World, settings: Mapping[str, object], *, is_wanted: bool) -> Iterator[Monitor | None]:
    if not is_wanted:
        yield None
        return
    # The other monitor runs the cycles.
    changes = {"cycle_interval_seconds": 3600, "environment": {"PYTHONPATH": str(REPOSITORY)}}
    monitor = world.another_monitor(command=LEAKING, **(dict(settings) | changes))
    try:
        yield monitor
    finally:
        monitor.kill()


def _watch(
    world: World,
    monitors: Mapping[str, Monitor | None],
    plan: Plan,
    soaked: Soaked,
    say: Callable[[Soaked, float], None],
    began: float,
) -> None:
    """Measure the memory of all processes until the time is over."""
    processes = {name: psutil.Process(monitor.process.pid) for name, monitor in monitors.items() if monitor}
    processes |= {f"worker {number}": one for number, one in enumerate(world.service.workers(), 1)}
    measured = plan.seconds - plan.warm_up_seconds
    warm_cycles = 0
    while True:
        soaked.until = seconds = time.monotonic() - began
        if not soaked.warm_at and seconds >= plan.warm_up_seconds:
            warm_cycles = len(_cycles(world, ENVIRONMENTS[0]))
            soaked.warm_at = seconds if warm_cycles >= plan.cycles else 0.0
        is_long_enough = soaked.warm_at and seconds >= soaked.warm_at + measured
        if (
            is_long_enough
            and len(_cycles(world, ENVIRONMENTS[0])) >= warm_cycles + plan.cycles
            and _has_swapped(world)
        ):
            return
        for name, process in processes.items():
            sample = weigh([process], seconds)
            if sample is None:
                soaked.failures.append(f"{name} has ended after {seconds:.0f} s")
                return
            soaked.memory.setdefault(name, []).append(sample)
        say(soaked, seconds)
        time.sleep(min(5.0, plan.seconds / 100))


def _has_swapped(world: World) -> bool:
    return any(
        cycle.outcome == "swap" for environment in ENVIRONMENTS for cycle in _cycles(world, environment)
    )


def _cycles(world: World, environment: str) -> list[Cycle]:
    return world.store.cycles.list(world.model.id, environment, limit=10_000)


@contextmanager
def _load(service: Service, monitors: Sequence[Monitor | None], plan: Plan, soaked: Soaked) -> Iterator[None]:
    stop = threading.Event()
    threads = [
        threading.Thread(target=_send, args=(service, plan, soaked, stop, number))
        for number in range(len(ENVIRONMENTS))
    ]
    addresses = [f"http://127.0.0.1:{monitor.port}/metrics" for monitor in monitors if monitor is not None]
    addresses.append(f"http://127.0.0.1:{service.port}/metrics")
    threads.append(threading.Thread(target=_scrape, args=(addresses, stop)))
    threads.append(threading.Thread(target=_administer, args=(service, plan, soaked, stop)))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _send(service: Service, plan: Plan, soaked: Soaked, stop: threading.Event, number: int) -> None:
    """Send predictions of one environment with a changing class mix, and labels of some of them."""
    environment, rng = ENVIRONMENTS[number], np.random.default_rng(number)
    picture = image("JPEG", 224)
    began = time.monotonic()
    for turn in itertools.count():
        if stop.wait(max(0.0, began + turn * plan.request_seconds - time.monotonic())):
            return
        phase = int(turn * plan.request_seconds / plan.shift_seconds) + number
        labels = rng.choice(CLASSES, size=ROWS, p=PREVALENCES[phase % len(PREVALENCES)])
        logits = (2 * np.eye(CLASSES)[labels] + rng.normal(size=(ROWS, CLASSES))).astype(np.float32)
        document = {
            "logits": logits.tolist(),
            "environment": environment,
            "request_id": f"{environment}-{turn}",
            "groups": [f"{environment}-{turn % 500}"] * ROWS,
        }
        answer = _request(service, soaked, "/v1/logits", json.dumps(document).encode(), "application/json")
        if answer is not None:
            known = zip(answer["predictions"][:LABELLED_ROWS], labels.tolist(), strict=False)
            told = {
                "labels": [{"prediction_id": one["prediction_id"], "label": label} for one, label in known]
            }
            _request(service, soaked, "/v1/feedback", json.dumps(told).encode(), "application/json")
        if number == 0:  # images have no class mix: a population without cycles for a long time
            _request(service, soaked, "/v1/predict?environment=camera", picture, "image/jpeg")


def _scrape(addresses: Sequence[str], stop: threading.Event) -> None:
    """Scrape metrics as Prometheus does; each scrape of the monitor takes a thread."""
    while not stop.wait(SCRAPE_SECONDS):
        for address in addresses:
            with suppress(OSError), urllib.request.urlopen(address, timeout=10) as answer:
                answer.read()


def _administer(service: Service, plan: Plan, soaked: Soaked, stop: threading.Event) -> None:
    """Request validations, and roll back heads as an operator does."""
    rng = np.random.default_rng(0)
    labels = np.tile(np.arange(CLASSES), 60)
    logits = (2 * np.eye(CLASSES)[labels] + rng.normal(size=(labels.size, CLASSES))).astype(np.float32)
    file = BytesIO()
    np.savez(file, logits=logits, labels=labels)
    rollback = json.dumps({"environment": ENVIRONMENTS[0], "to_version": 1}).encode()
    while not stop.wait(2 * plan.shift_seconds):
        path = f"/v1/admin/models/{MODEL}/validations"
        _request(service, soaked, path, file.getvalue(), "application/x-npz", expected=(202,))
        # 409: this head is already in force.
        path = f"/v1/admin/models/{MODEL}/heads/rollback"
        _request(service, soaked, path, rollback, "application/json", expected=(200, 409))


def _request(
    service: Service, soaked: Soaked, path: str, body: bytes, kind: str, *, expected: Sequence[int] = (200,)
) -> dict | None:
    try:
        reply = service.send("POST", path, body, Content_Type=kind)
        for _ in range(0 if tools.has_deadlines() else _MOST_REPEATS):
            if reply.status != http.client.SERVICE_UNAVAILABLE:
                break
            time.sleep(1)  # a busy machine, and the service says to send it again
            reply = service.send("POST", path, body, Content_Type=kind)
    except (OSError, http.client.HTTPException) as error:
        soaked.failures.append(f"{path}: {error!r}")
        return None
    if reply.status not in expected:
        soaked.failures.append(f"{path}: {reply.status} {reply.content[:200]!r}")
        return None
    soaked.requests += 1
    return reply.body
