"""A complete installation for faults: database, service with two workers, and a monitor, all real processes."""

import itertools
import random
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import LogPosition, Model, Prediction, Store, group_hash, load_group_key
from lifelong_core.store.spool.contents import SpoolState
from lifelong_core.store.spool.spool import Spool
from tests import tools
from tests.databases import database, locked
from tests.faults.network import Network
from tests.faults.postgresql import MortalPostgreSQL
from tests.integration.installation import Installation, install
from tests.integration.monitors import Monitor, start_monitor
from tests.integration.processes import Service, eventually, lives, running_service
from tests.ports import free_port

MODEL = "linear"
CYCLE_SECONDS = 1.0
LEASE_SECONDS = 2.0
QUANTIFIER = "PACC"
_PAGE = 5000


class World:
    """An installation, used as a context manager, which removes it completely.

    Args:
        kind: kind of the database, sqlite or postgresql.
        folder: an empty folder on a local disk.
        server: server of the database, for PostgreSQL.
        seed: seed of the times of the faults.
    """

    def __init__(self, kind: str, folder: Path, server: MortalPostgreSQL | None, *, seed: int = 0) -> None:
        self.kind = kind
        self.folder = folder
        self.server = server
        self.random = random.Random(seed)
        self.port = free_port()
        self._stack = ExitStack()
        self._service_stack = ExitStack()
        self._monitors = itertools.count()
        self._read_up_to: LogPosition | None = None
        self._service: Service | None = None
        self._later: list[Callable[[], None]] = []
        self.monitor: Monitor | None = None

    def __enter__(self) -> "World":
        with ExitStack() as stack:
            data = self.folder / "data"
            data.mkdir(exist_ok=True)
            self.url = stack.enter_context(database(self.kind, data, self.server, migrated=False))  # type: ignore[arg-type]
            self._way = self.url
            self.installation: Installation = install(self.folder, self.url)
            self.store: Store = stack.enter_context(self.installation.store())
            stack.callback(self.stop_service)
            stack.callback(self.stop_monitor)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # --- the service

    def start_service(self, **arguments: Any) -> None:
        """Restart the service on the same port, and wait for both workers; arguments as of `running_service`."""
        self.begin_service(**arguments)
        self.service.wait_for_workers()

    def begin_service(self, **arguments: Any) -> None:
        """Restart the service on the same port, without waiting until it is ready."""
        self.stop_service()
        # One token sends the load of all scenarios, each in a separate environment.
        settings = {"maximum_new_environments_per_hour": 1000, "keep_alive_seconds": None, **arguments}
        running = running_service(
            self.folder, self.installation.token, port=self.port, database_url=self._way, **settings
        )
        self._service = self._service_stack.enter_context(running)

    def replace_killed_parent(self) -> list[psutil.Process]:
        """Kill the parent alone, and start the service again at once, while its workers still listen.

        Returns:
            Those of the workers that run when two new ones answer.
        """
        orphans = self.service.workers()
        self.service.process.kill()
        self.service.process.wait()
        # They detect the end of their parent, answer their requests, and end.
        with self._service_stack:
            self._service_stack = ExitStack()
            self.begin_service()

            def has_workers() -> bool:
                if self.service.process.poll() is not None and not tools.has_deadlines():
                    self.begin_service()  # the old workers held the port for longer than a start waits
                return len(self.service.workers()) == 2

            eventually(has_workers, "two new workers")
            self.service.wait_for_workers()
            return [process for process in orphans if lives(process)]

    def stop_service(self) -> None:
        """Kill all remaining processes of the service, also workers, which hold the port after their parent ends."""
        if self._service is not None and self._service.process.poll() is None:
            self._service.kill()
        self._service_stack.close()
        self._service = None

    @property
    def service(self) -> Service:
        """The running service."""
        assert self._service is not None
        return self._service

    def ready(self, *, workers: int = 2) -> None:
        """Wait until this many workers (0, 1 or 2) answer and a monitor runs."""
        if self.monitor is None or not self.monitor.runs:
            self.start_monitor()
        if workers and self._service is None:
            self.begin_service()
        if workers == 1:
            self.service.wait_until_ready()
        elif workers:
            self.wait_for_workers()

    def wait_for_workers(self) -> list[psutil.Process]:
        """Wait until two workers answer; return them."""
        eventually(lambda: len(self.service.workers()) == 2, "two workers")
        self.service.wait_for_workers()
        return self.service.workers()

    def readyz(self) -> dict[str, Any]:
        """Return the readiness answer of one worker."""
        return self.service.send("GET", "/readyz").body

    # --- the monitor

    def start_monitor(self, **arguments: Any) -> None:
        """Restart the installation's own monitor; arguments as of `another_monitor`."""
        self.stop_monitor()
        self.monitor = self.another_monitor(**arguments)

    def another_monitor(self, **arguments: Any) -> Monitor:
        """Start an additional monitor, which the caller ends; arguments as of `start_monitor`."""
        settings = {
            "database_url": self._way,
            "cycle_interval_seconds": CYCLE_SECONDS,
            "lease_seconds": LEASE_SECONDS,
            "quantifier": QUANTIFIER,
            "window_samples": 600,
            "policy__unusual_traffic": "report",
        }
        log = f"monitor-{next(self._monitors)}.log"
        return start_monitor(self.folder, log=log, **(settings | arguments))

    def stop_monitor(self) -> None:
        """Kill the installation's own monitor."""
        if self.monitor is not None:
            self.monitor.kill()
        self.monitor = None

    def later(self, check: Callable[[], None]) -> None:
        """Postpone a check that has to wait for the monitor."""
        self._later.append(check)

    def settle(self) -> None:
        """Run the postponed checks, without faults."""
        if self._later:
            self.ready(workers=0)
        while self._later:
            self._later.pop(0)()

    # --- the database

    @contextmanager
    def database_away(self) -> Iterator[None]:
        """Stop PostgreSQL, or lock the SQLite file by a writer, during the block."""
        if self.server is not None:
            self.server.stop()
            try:
                yield
            finally:
                self.server.start()
            return
        with locked(self.settings.data_directory / "lifelong.db"):
            yield

    @contextmanager
    def behind_network(self) -> Iterator[Network]:
        """Restart service and monitor with PostgreSQL behind this network, until the end of the block."""
        assert self.server is not None
        assert self.server.port is not None
        with Network(self.server.port) as network:
            self._way = network.url(self.url)
            try:
                self.start_service()
                self.start_monitor()
                yield network
            finally:
                self.stop_service()
                self.stop_monitor()
                self._way = self.url

    # --- state of the installation

    @property
    def settings(self) -> Settings:
        return self.installation.settings

    @property
    def model(self) -> Model:
        """The served model."""
        return self.store.models.get(MODEL)

    def spool(self) -> SpoolState:
        """State of the spool of this machine, read without the service."""
        spool = Spool(self.settings.resolved_spool_directory, maximum_bytes=self.settings.maximum_spool_bytes)
        try:
            return spool.state()
        finally:
            spool.close()

    def read_log(self, position: LogPosition | None) -> list[Prediction]:
        """Every row of the log after a position, each exactly once if the store is correct."""
        rows: list[Prediction] = []
        while True:
            page, position = self.store.predictions.read_since(position, limit=_PAGE)
            rows += page
            if not page:
                self._read_up_to = position
                return rows

    def end_of_log(self) -> LogPosition | None:
        """Position after all committed rows."""
        self.read_log(self._read_up_to)
        return self._read_up_to

    def group_hash(self, group: str) -> bytes:
        """Hash of a group in the log."""
        return self.group_hashes({group})[group]

    def group_hashes(self, groups: Collection[str]) -> dict[str, bytes]:
        """Hashes of groups in the log."""
        key = load_group_key(self.settings.resolved_group_key_file, create=False)
        return {group: group_hash(key, group) for group in groups}

    def wait(self, longest: float) -> None:
        """Wait for a random time, at most `longest` seconds."""
        time.sleep(self.random.uniform(0, longest))


def patiently(happened: Callable[[], bool], seconds: float) -> float | None:
    """Wait until the condition holds; return the seconds, or None after the time limit."""
    began = time.monotonic()
    while not happened():
        if time.monotonic() - began > seconds:
            return None
        time.sleep(0.05)
    return time.monotonic() - began
