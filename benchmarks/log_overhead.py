"""Cost of the prediction log for the service: the real one and one with the log switched off, in turns."""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.requests import Generator
from lifelong_core.store import DEFAULT_ENVIRONMENT, Store
from tests.databases import PostgreSQL, database
from tests.integration.installation import CLASS_NAMES, install
from tests.integration.processes import Service, running_service

MODEL = "linear"
CONNECTIONS = 16
RATE = 500.0
"""Requests per second at which latency and processor time are measured."""
GOAL = 0.05
"""Of the throughput: the log should cost less."""
REPOSITORY = Path(__file__).resolve().parents[1]
SWITCHED_OFF = (sys.executable, "-m", "benchmarks.unlogged_service")
ARMS = ("logged", "unlogged")


class Arm:
    """One of the two services, under load."""

    def __init__(self, service: Service, *, is_keyed: bool) -> None:
        self._service = service
        self._rng = np.random.default_rng(0)
        self._is_keyed = is_keyed
        headers = {"Authorization": f"Bearer {service.token}", "Content-Type": "application/json"}
        self._generator = Generator(service.port, "/v1/logits", headers, self._body, connections=CONNECTIONS)

    def measure(self, seconds: float, rate: float | None) -> dict[str, float]:
        """Throughput, latency in milliseconds, and processor time of the workers per request in microseconds."""
        before = self._processor_seconds()
        measured = self._generator.run(seconds, rate=rate)
        spent = self._processor_seconds() - before
        p50, p99 = np.quantile(measured.latencies, (0.5, 0.99)) * 1000
        return {
            "per_second": measured.per_second,
            "p50_ms": float(p50),
            "p99_ms": float(p99),
            "processor_microseconds": spent / len(measured.latencies) * 1e6,
            "faults": float(measured.faults),
        }

    def _processor_seconds(self) -> float:
        times = [worker.cpu_times() for worker in self._service.workers()]
        return sum(one.user + one.system for one in times)

    def _body(self) -> bytes:
        document: dict[str, Any] = {"logits": [self._rng.normal(size=len(CLASS_NAMES)).tolist()]}
        if self._is_keyed:
            document["request_id"] = os.urandom(12).hex()
        return json.dumps(document).encode()


def measure_overhead(kind: str, server: PostgreSQL, *, is_quick: bool) -> dict[str, Any]:
    """Both services run at once and are measured by turns, so that each pair of figures comes from the same machine."""
    repeats, seconds = (2, 1.5) if is_quick else (8, 6.0)
    figures: dict[str, Any] = {}
    with both_services(kind, server) as (services, logged_rows):
        for is_keyed in (False, True):
            arms = {name: Arm(service, is_keyed=is_keyed) for name, service in services.items()}
            for arm in arms.values():
                arm.measure(seconds / 2, None)
            for load, rate in (("saturation", None), (f"{RATE:g}_per_second", RATE)):
                pairs: dict[str, list[dict[str, float]]] = {name: [] for name in ARMS}
                for number in range(repeats):
                    for name in ARMS if number % 2 == 0 else ARMS[::-1]:
                        pairs[name].append(arms[name].measure(seconds, rate))
                figures[f"{load} {'keyed' if is_keyed else 'plain'}"] = compared(pairs)
        figures["rows_logged"] = logged_rows()
    return figures


@contextmanager
def both_services(
    kind: str, server: PostgreSQL
) -> Iterator[tuple[dict[str, Service], Callable[[], dict[str, int]]]]:
    """The real service and the one without a log, each with a database of its own, and how many rows are in these."""
    with ExitStack() as stack:
        stores: dict[str, Store] = {}
        services: dict[str, Service] = {}
        for name in ARMS:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            url = stack.enter_context(database(kind, folder, server, migrated=False))
            installation = install(folder, url)
            stores[name] = stack.enter_context(installation.store())
            command = SWITCHED_OFF if name == "unlogged" else (sys.executable, "-m", "lifelong_service")
            environment = {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])}
            services[name] = stack.enter_context(
                running_service(
                    folder, installation.token, command=command, environment=environment, database_url=url
                )
            )
        for service in services.values():
            service.wait_for_workers()
        yield services, lambda: {name: _rows(store) for name, store in stores.items()}


def _rows(store: Store) -> int:
    model = store.models.get(MODEL)
    return store.predictions.count_between(model.id, DEFAULT_ENVIRONMENT, 0, 2**62)


def compared(pairs: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Medians of both, and what the log costs: median and spread over the pairs."""
    medians = {
        f"{name}_{figure}": float(np.median([one[figure] for one in measured]))
        for name, measured in pairs.items()
        for figure in measured[0]
    }

    def lost(cost: Callable[[float, float], float], figure: str) -> list[float]:
        both = zip(pairs["logged"], pairs["unlogged"], strict=True)
        found = [cost(with_log[figure], without[figure]) for with_log, without in both]
        return [float(value) for value in np.quantile(found, (0.5, 0, 1))]

    return medians | {
        "throughput_lost": lost(lambda logged, unlogged: 1 - logged / unlogged, "per_second"),
        "processor_microseconds_added": lost(
            lambda logged, unlogged: logged - unlogged, "processor_microseconds"
        ),
        "goal": GOAL,
    }


def show_overhead(database: str, figures: dict[str, Any]) -> None:
    print(f"service, {database:20}{'requests/s':>16}{'p50 ms':>14}{'p99 ms':>16}  lost (least, most)")
    print(f"rows logged: {figures['rows_logged']}")
    for case, one in figures.items():
        if case == "rows_logged":
            continue
        lost, least, most = (100 * share for share in one["throughput_lost"])
        cells = (
            f"{one[f'logged_{name}']:.1f} / {one[f'unlogged_{name}']:.1f}"
            for name in ("per_second", "p50_ms", "p99_ms")
        )
        print(f"{case:26}{''.join(f'{cell:>17}' for cell in cells)}  {lost:.1f} % ({least:.1f}, {most:.1f})")
