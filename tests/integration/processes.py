"""The service as users run it: real processes on a free port, with load from threads and a clean end."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.ports import free_port

PATIENCE_SECONDS = 150.0
"""For what must happen at all, also on a busy machine."""


def eventually(happened: Callable[[], Any], what: str) -> Any:
    """The first true value that `happened` gives."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (result := happened()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)
    return result


def lives(process: psutil.Process) -> bool:
    """Whether it still runs; what its new parent has not collected yet does not."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@dataclass(frozen=True)
class Reply:
    """What one request got, and when (seconds of the monotonic clock)."""

    status: int
    headers: dict[str, str]
    content: bytes
    sent_at: float
    received_at: float

    @property
    def body(self) -> Any:
        return json.loads(self.content)

    @property
    def worker(self) -> str:
        return self.headers["x-lifelong-worker"]


class Connection:
    """One keep-alive connection; the kernel decides which worker is at its other end."""

    def __init__(self, port: int, token: str | None) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> Reply:
        """Send one request and read the whole answer."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        began = time.monotonic()
        self._connection.request(method, path, body, {**self._headers, **named})
        response = self._connection.getresponse()
        content = response.read()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, found, content, began, time.monotonic())

    def post_json(self, path: str, document: Any) -> Reply:
        """Send a JSON document."""
        return self.send("POST", path, json.dumps(document).encode(), Content_Type="application/json")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass
class Service:
    """A service that was started; `token` is sent with every request."""

    process: subprocess.Popen[bytes]
    port: int
    token: str | None
    log: Path
    started_at: float = field(default_factory=time.monotonic)

    def connect(self, token: str | None = "") -> Connection:
        """A new connection; with `token=None` it carries none."""
        return Connection(self.port, self.token if token == "" else token)

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> Reply:
        """One request on a connection of its own."""
        with self.connect() as connection:
            return connection.send(method, path, body, **headers)

    def wait_until_ready(self) -> float:
        """Seconds from the start until /readyz answered 200."""

        def ready() -> bool:
            assert self.process.poll() is None, f"the service ended:\n{self.last_words()}"
            with suppress(OSError, http.client.HTTPException):
                return self.send("GET", "/readyz").status == 200
            return False

        eventually(ready, "the service to become ready")
        return time.monotonic() - self.started_at

    def wait_for_workers(self, count: int = 2) -> None:
        """Until that many workers have answered: the first one is ready alone."""
        self.wait_until_ready()
        seen: set[str] = set()

        def answered() -> bool:
            seen.add(self.send("GET", "/readyz").worker)
            return len(seen) == count

        eventually(answered, f"{count} workers to answer")

    def processes(self) -> list[psutil.Process]:
        """The parent and all that it has started, workers included."""
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def workers(self) -> list[psutil.Process]:
        """The processes that answer requests."""
        found: list[psutil.Process] = []
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):  # it has ended by now
                if "_bentoml_impl.worker.service" in process.cmdline():
                    found.append(process)
        return found

    def kill(self) -> None:
        """SIGKILL to the parent and all workers, as if the power had gone."""
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()

    def terminate(self) -> int:
        """SIGTERM to the parent; its exit status."""
        self.process.terminate()
        return self.process.wait(PATIENCE_SECONDS)

    def last_words(self) -> str:
        """The end of what it printed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])


@contextmanager
def running_service(
    folder: Path,
    token: str | None = None,
    *,
    command: Sequence[str] = (sys.executable, "-m", "lifelong_service"),
    environment: Mapping[str, str] | None = None,
    port: int | None = None,
    **settings: object,
) -> Iterator[Service]:
    """`python -m lifelong_service` with a data directory in `folder`; every process of it is gone afterwards.

    Args:
        folder: working directory; the data directory is `folder / "data"` unless the settings say otherwise.
        token: bearer token of the connections.
        command: another command line.
        environment: more environment variables.
        port: where it listens; None: a free one.
        settings: as the fields of Settings; None: the default of the product.
    """
    port = port or free_port()
    # On a busy machine a client may pause for longer than a service usually keeps its connection.
    values = {
        "data_directory": folder / "data",
        "port": port,
        "workers": 2,
        "keep_alive_seconds": 60,
    } | settings
    # As where a user installs it: without bytecode each process compiles 500 modules.
    variables = variables_of(values) | {"PYTHONDONTWRITEBYTECODE": ""} | dict(environment or {})
    log = folder / "service.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Service(process, port, token, log)
    finally:
        # The session, not the process: workers outlive a parent that was killed.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        eventually(lambda: not _is_alive(process.pid), "all processes of the service to end")
        for metrics in Path("/dev/shm").glob(f"lifelong-*-{port}"):
            shutil.rmtree(metrics)


def variables_of(settings: Mapping[str, object]) -> dict[str, str]:
    """The environment of a process with these settings, as the fields of Settings; None: the default of the product."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LIFELONG_")}
    given = {name: value for name, value in settings.items() if value is not None}
    return kept | {f"LIFELONG_{name.upper()}": str(value) for name, value in given.items()}


def _is_alive(group: int) -> bool:
    """Whether a process of this group can still write files."""
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getpgid(process.pid) == group and lives(process):
                return True
    return False


def sockets_of(service: Service) -> set[str]:
    """Where another process could reach it: listening TCP ports, UDP ports and named Unix sockets."""
    found: set[str] = set()
    for process in service.processes():
        for one in process.net_connections("inet"):
            if one.status == psutil.CONN_LISTEN or one.type == socket.SOCK_DGRAM:
                found.add(f"{one.laddr.ip}:{one.laddr.port}")  # pyright: ignore[reportAttributeAccessIssue]
        found.update(str(one.laddr) for one in process.net_connections("unix") if one.laddr)
    return found


class Load:
    """Threads that send requests until they are stopped, on connections that they renew, so that both workers get some.

    Args:
        service: to whom.
        request: sends one request on a connection and gives what is to be kept of it.
        threads: how many send at once.
        per_connection: requests on one connection.
    """

    def __init__(
        self,
        service: Service,
        request: Callable[[Connection], Any],
        *,
        threads: int = 6,
        per_connection: int = 10,
    ) -> None:
        self._service = service
        self._request = request
        self._per_connection = per_connection
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]
        self.results: list[Any] = []
        self.faults: list[Exception] = []

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with self._service.connect() as connection:
                    for _ in range(self._per_connection):
                        self.results.append(self._request(connection))
                        if self._stop.is_set():
                            return
            except (OSError, http.client.HTTPException) as fault:
                self.faults.append(fault)
                if not self._stop.is_set() and self._service.process.poll() is not None:
                    return
