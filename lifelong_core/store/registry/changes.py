"""Waits for changes of the registry: PostgreSQL notifies at once, SQLite is polled."""

import os
import selectors
import threading
from typing import Any

from lifelong_core.store.engine.database import NETWORK, Database, prepare_session
from lifelong_core.store.registry.registry import CHANNEL

REOPEN_SECONDS = 1.0
"""A listener without a connection tries again after this time."""


class Changes:
    """Waits until the registry may have changed. On SQLite this is a fixed time: the caller's query is cheap there.

    One thread waits; another may call `close`.
    """

    def __init__(self) -> None:
        self._changed = threading.Event()
        self._is_closed = False

    def wait(self, seconds: float) -> None:
        """Return when the registry has changed since the last call, or after this time."""
        if not self._is_closed:
            self._changed.wait(seconds)
            self._changed.clear()

    def close(self) -> None:
        """End the present wait; later calls return at once."""
        self._is_closed = True
        self._changed.set()


class NotifiedChanges(Changes):
    """Waits on PostgreSQL, where a background thread listens to notifications of changes.

    Without a connection it waits as `Changes`; the thread reconnects as soon as it can.
    """

    def __init__(self, database: Database) -> None:
        super().__init__()
        _, self._options = database.engine.dialect.create_connect_args(database.url)
        self._ended, self._end = os.pipe()
        self._thread = threading.Thread(target=self._run, name="registry-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the present wait, and the thread as soon as it can: it may be connecting."""
        if not self._is_closed:
            # Before `super().close`, after which the thread closes the pipe.
            os.write(self._end, b".")
        super().close()

    def _run(self) -> None:
        import psycopg

        while not self._is_closed:
            try:
                self._listen()
            except (psycopg.Error, OSError):
                # Notifications were lost; the caller's own query finds the change.
                _wait_for(self._ended, seconds=REOPEN_SECONDS)
        os.close(self._ended)
        os.close(self._end)

    def _listen(self) -> None:
        import psycopg

        # Keepalives detect a server that disappeared; until then the caller's own queries find changes.
        usual = {"application_name": "lifelong listener", "connect_timeout": 5, **NETWORK}
        options: dict[str, Any] = {**usual, **self._options}
        with psycopg.connect(autocommit=True, **options) as connection:
            prepare_session(connection)
            connection.execute(f"LISTEN {CHANNEL}")
            # Changes before LISTEN were not notified.
            self._changed.set()
            while not self._is_closed:
                _wait_for(connection.fileno(), self._ended)
                if any(True for _ in connection.notifies(timeout=0)):
                    self._changed.set()


def _wait_for(*descriptors: int, seconds: float | None = None) -> None:
    """Wait until a descriptor is readable. Unlike `select`, it takes descriptors above 1023."""
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        selector.select(seconds)
