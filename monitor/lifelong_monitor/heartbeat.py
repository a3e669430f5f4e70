"""The heartbeat of this monitor: a row in the database with its state and its newest tick.

A thread of its own writes it: the row shows the start of a tick that hangs, and a database that hangs does not stop
the ticks.
"""

import logging
import os
import socket
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

from lifelong_core.configuration.monitor_settings import monitor_settings
from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.background import BackgroundThread
from lifelong_core.store import Heartbeat, Store, Tick, Visit
from lifelong_core.values.errors import UnavailableError

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 20.0
"""Longest time between two heartbeats, whatever the interval of the ticks; a third of what makes a monitor lost."""
LEAST_SECONDS = 1.0
"""Shortest time between two heartbeats, however fast ticks follow each other."""
_PAUSE_FACTOR = 10
"""Pause between two heartbeats, as a multiple of the time that one takes: thousands of visits make a megabyte."""


class HeartbeatThread:
    """Writes a heartbeat at intervals, and soon after the start and the end of a tick.

    Args:
        store: open.
        settings: of this process.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._state = Heartbeat(
            id=str(uuid4()),
            host=socket.gethostname(),
            process=os.getpid(),
            started_at=datetime.now(UTC),
            interval_seconds=settings.cycle_interval_seconds,
            mode=settings.policy.mode,
            environment_modes=settings.environment_modes,
            tick=None,
            visits=(),
            settings=monitor_settings(settings),
        )
        self._before = self._state
        """before the newest tick"""
        self._is_quiet = False
        """whether the newest tick is reported only if it did something"""
        self._changed = threading.Event()
        self._problem: str | None = None
        self._thread = BackgroundThread("heartbeat", self._run)
        self._stopping = self._thread.stopping

    def start(self) -> None:
        """Write the first heartbeat and start the thread: other monitors see this one before its first cycle."""
        self._write()
        self._thread.start()

    def tick_started(self, due_at: datetime, *, is_round: bool = True) -> None:
        """Report that a tick has started: of a round soon, of a look with the next heartbeat if it still runs then."""
        self._before, self._is_quiet = self._state, not is_round
        self._report(replace(self._state, tick=Tick(due_at, datetime.now(UTC), None)), soon=is_round)

    def tick_finished(self, visits: tuple[Visit, ...], problem: str | None = None) -> None:
        """Report that the tick has ended.

        Args:
            visits: the newest one of each population.
            problem: why the tick failed as a whole; None: it did not.
        """
        tick, before = self._state.tick, self._before
        if tick is None:
            raise RuntimeError("no tick has started.")
        was_well = before.tick is not None and before.tick.problem is None
        if self._is_quiet and was_well and problem is None and visits is before.visits:
            # It found nothing to do, as most do that only look for news.
            self._state = before
            return
        self._report(
            replace(
                self._state,
                tick=replace(tick, finished_at=datetime.now(UTC), problem=problem),
                visits=visits,
            )
        )

    def close(self, seconds: float) -> bool:
        """Stop and delete the row; return whether that was done within this time."""
        self._stopping.set()
        self._changed.set()
        return self._thread.join(max(0.0, seconds))

    def _report(self, state: Heartbeat, *, soon: bool = True) -> None:
        # One reference assignment: the thread reads the old state or the new one, never a mixture.
        self._state = state
        if soon:
            self._changed.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._changed.clear()
            written_at = time.monotonic()
            self._write()
            taken = time.monotonic() - written_at
            self._changed.wait(HEARTBEAT_SECONDS)
            least = max(LEAST_SECONDS, _PAUSE_FACTOR * taken)
            self._stopping.wait(max(0.0, least - (time.monotonic() - written_at)))
        try:
            self._store.monitors.forget(self._state.id)
        except UnavailableError as error:
            log.warning("the heartbeat could not be deleted; doctor reports this monitor as lost: %s", error)

    def _write(self) -> None:
        problem = None
        try:
            self._store.monitors.record_heartbeat(self._state)
        except UnavailableError as error:
            problem = str(error)
        except Exception as error:  # the thread outlives any fault; it is logged once
            problem = repr(error)
            if self._problem != problem:
                log.exception("the heartbeat could not be written")
        else:
            if self._problem is not None:
                log.info("the heartbeat is written again")
        if problem is not None and self._problem is None:
            log.warning("the heartbeat could not be written, trying again: %s", problem)
        self._problem = problem
