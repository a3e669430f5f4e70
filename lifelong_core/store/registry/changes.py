"""Waiting for changes of the registry: told by PostgreSQL at once, found by asking now and then on SQLite."""

import os
import selectors
import threading
from typing import Any

from lifelong_core.store.engine.database import NETWORK, Database, prepare_session
from lifelong_core.store.registry.registry import CHANNEL

REOPEN_SECONDS = 1.0
"""A listener that has lost its connection tries again after this time."""


class Changes:
    """Waits until the registry may have changed. On SQLite that is the time given: asking is one cheap query there.

    One thread waits; `close` may come from another.
    """

    def __init__(self) -> None:
        self._changed = threading.Event()
        self._is_closed = False

    def wait(self, seconds: float) -> None:
        """Return when the registry has changed since the last call, at the latest after so many seconds."""
        if not self._is_closed:
            self._changed.wait(seconds)
            self._changed.clear()

    def close(self) -> None:
        """End a wait that is under way; none waits from now on."""
        self._is_closed = True
        self._changed.set()


class NotifiedChanges(Changes):
    """The same on PostgreSQL, where a thread of its own listens to what each change notifies.

    Without a connection it is the plain wait; the thread opens a new one as soon as it can.
    """

    def __init__(self, database: Database) -> None:
        super().__init__()
        _, self._options = database.engine.dialect.create_connect_args(database.url)
        self._ended, self._end = os.pipe()
        self._thread = threading.Thread(target=self._run, name="registry-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End a wait that is under way, and the thread as soon as it can: it may be connecting."""
        if not self._is_closed:
            # Before the rest: the thread closes the pipe when it sees that it is wanted no more.
            os.write(self._end, b".")
        super().close()

    def _run(self) -> None:
        import psycopg

        while not self._is_closed:
            try:
                self._listen()
            except (psycopg.Error, OSError):
                # What happened meanwhile was not heard; the caller asks by itself.
                _wait_for(self._ended, seconds=REOPEN_SECONDS)
        os.close(self._ended)
        os.close(self._end)

    def _listen(self) -> None:
        import psycopg

        # A server that is gone without a word is noticed; until then the caller's own questions find changes.
        usual = {"application_name": "lifelong listener", "connect_timeout": 5, **NETWORK}
        options: dict[str, Any] = {**usual, **self._options}
        with psycopg.connect(autocommit=True, **options) as connection:
            prepare_session(connection)
            connection.execute(f"LISTEN {CHANNEL}")
            # Whatever was changed before this moment was notified to nobody.
            self._changed.set()
            while not self._is_closed:
                _wait_for(connection.fileno(), self._ended)
                if any(True for _ in connection.notifies(timeout=0)):
                    self._changed.set()


def _wait_for(*descriptors: int, seconds: float | None = None) -> None:
    """Until one of them can be read. Unlike `select`, descriptors above 1023 will do: a busy service has them."""
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        selector.select(seconds)
