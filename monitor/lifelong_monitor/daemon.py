"""The long-running process: opens the store, ticks on schedule, runs jobs beside the ticks, and stops on a signal."""

import logging
import os
import signal
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from types import FrameType

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.memory import give_back_free_memory
from lifelong_core.store import Job, Store
from lifelong_core.values.errors import ConfigurationError, LifelongError
from lifelong_monitor.cycle.due_times import due_before, interval_of
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.heartbeat import HeartbeatThread
from lifelong_monitor.jobs.running.runner import JobRunner
from lifelong_monitor.notifications.delivery import NotificationThread, attempt_counter, senders_of
from lifelong_monitor.schedule.tick import Ticker

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
"""A tick that failed as a whole is tried again after this time, or at the next tick if that is sooner."""
GRACE_SECONDS = 5.0
"""A running cycle has this time to reach a safe place to stop; without a commit it changes nothing."""
CLOCK_SECONDS = 1.0
"""Time between two checks whether the machine's clock was set, and the smallest step that counts."""
_TICK = "tick"


class Daemon:
    """Runs ticks until a signal or `stop`."""

    def __init__(self, settings: Settings, exporter: Exporter) -> None:
        self._settings = settings
        self._exporter = exporter
        self._interval = interval_of(settings.cycle_interval_seconds)
        self._stopping = threading.Event()
        self._stopping_jobs = threading.Event()
        """of the newest runner: one that was not opened completely stops while the daemon goes on"""
        self._idle = threading.Event()
        self._idle.set()
        self._ticker: Ticker | None = None
        self._jobs: JobRunner | None = None
        self._heartbeat: HeartbeatThread | None = None
        self._senders = senders_of(exporter.registry, settings.notifications)
        self._attempts = attempt_counter(exporter.registry, settings.notifications)
        self._notifications: NotificationThread | None = None
        self._store: Store | None = None
        self._failure: ConfigurationError | None = None
        self._scheduler = BackgroundScheduler(
            timezone=UTC, executors={"default": ThreadPoolExecutor(max_workers=1)}
        )

    def run(self) -> None:
        """Tick until stopped.

        Raises:
            ConfigurationError: the database has no schema, or that of another version, or cannot be used at all.
        """
        self._scheduler.start()
        self._schedule(datetime.now(UTC))
        self._watch_clock()
        self._shut_down()
        if self._failure is not None:
            raise self._failure

    @property
    def store(self) -> Store | None:
        """The store, once it is open."""
        return self._store

    def stop(self, signal_number: int = 0, frame: FrameType | None = None) -> None:  # noqa: ARG002 - signal handler
        """Leave the running cycle at the next safe place and return from `run`."""
        self._stopping.set()
        self._stopping_jobs.set()

    def stop_on_signals(self) -> None:
        """Stop the daemon on SIGTERM and SIGINT; call it in the main thread."""
        signal.signal(signal.SIGTERM, self.stop)
        signal.signal(signal.SIGINT, self.stop)

    def _watch_clock(self) -> None:
        """Until the daemon is stopped, reschedule the next tick when the clock is set."""
        offset = _clock_offset()
        while not self._stopping.wait(CLOCK_SECONDS):
            before, offset = offset, _clock_offset()
            # A tick that runs now schedules the next one by the new clock itself.
            if abs(offset - before) > CLOCK_SECONDS and self._idle.is_set():
                log.warning(
                    "the clock was set by %+.0f s; the next tick comes by the new one",
                    offset - before,
                )
                self._schedule(self._next_tick(datetime.now(UTC)))

    def _tick(self) -> None:
        self._idle.clear()
        started, again_in = time.monotonic(), None
        # The scheduler logs the traceback of an unexpected error.
        problem: str | None = "it ended by an unexpected error; the monitor's log has the traceback."
        try:
            ticker = None if self._stopping.is_set() else self._ticker or self._open()
            if ticker is not None:
                now = datetime.now(UTC)
                due_at = due_before(now, self._interval)
                if self._heartbeat is not None:
                    self._heartbeat.tick_started(due_at, is_round=ticker.is_round(due_at))
                again_in = ticker.tick(now, due_at)
            problem = None
        except LifelongError as error:
            problem = str(error)
            log.warning("this tick failed, trying again soon: %s", error)
        finally:
            # Only a tick schedules the next one: whatever fails here, that one must come.
            try:
                self._finish_tick(time.monotonic() - started, problem)
            finally:
                try:
                    self._schedule_next(problem, again_in)
                finally:
                    self._idle.set()

    def _finish_tick(self, seconds: float, problem: str | None) -> None:
        """Report the end of a tick and release its memory; an error of a report is logged."""
        try:
            if problem is not None:
                self._exporter.count_tick_error()
            elif seconds > self._interval.total_seconds() and not self._stopping.is_set():
                log.warning(
                    "this tick took %.1f s, longer than LIFELONG_CYCLE_INTERVAL_SECONDS;"
                    " those that came due meanwhile are left out",
                    seconds,
                )
            if self._heartbeat is not None and self._ticker is not None:
                self._heartbeat.tick_finished(self._ticker.visits, problem)
            # Large windows and summaries take much memory, which is not needed between two ticks.
            give_back_free_memory()
        except Exception:  # the ticks outlive any error of a report
            log.exception("the end of a tick could not be reported")

    def _open(self) -> Ticker | None:
        """Open the store and return its ticker; None: the daemon must stop, because a retry cannot help."""
        try:
            store = Store.from_settings(self._settings)
        except ConfigurationError as error:
            self._failure = error
            self._stopping.set()
            return None
        # A failed start closes what was started: the next tick opens everything again.
        with ExitStack() as opened:
            opened.callback(store.close)
            ticker = Ticker(store, self._settings, self._exporter, stopping=self._stopping.is_set)
            jobs = self._new_jobs(store, ticker)
            opened.callback(jobs.join, GRACE_SECONDS)
            opened.callback(self._stopping_jobs.set)
            jobs.start()
            heartbeat = HeartbeatThread(store, self._settings)
            heartbeat.start()
            notifications = NotificationThread(store, self._settings, self._senders, self._attempts)
            notifications.start()
            opened.pop_all()
        self._notifications = notifications
        self._store, self._ticker, self._jobs, self._heartbeat = store, ticker, jobs, heartbeat
        return ticker

    def _new_jobs(self, store: Store, ticker: Ticker) -> JobRunner:
        """A runner with a stop event of its own, which `stop` sets, too."""
        self._stopping_jobs = threading.Event()
        # `stop` may have set the event of the runner before.
        if self._stopping.is_set():
            self._stopping_jobs.set()
        return JobRunner(
            store,
            self._settings,
            self._exporter.jobs,
            stopping=self._stopping_jobs,
            on_success=partial(self._note_job, ticker),
        )

    def _note_job(self, ticker: Ticker, job: Job) -> None:
        """Show the cycle of a job at once, also where no tick is due before the next round."""
        if ticker.note_job(job) and self._idle.is_set():
            self._schedule(datetime.now(UTC))

    def _schedule_next(self, problem: str | None, again_in: float | None) -> None:
        """Set the time of the next tick: soon after a failed one."""
        now = datetime.now(UTC)
        if problem is None:
            self._schedule(self._next_tick(now, again_in))
        else:
            self._schedule(now + min(self._interval, timedelta(seconds=RETRY_SECONDS)))

    def _next_tick(self, now: datetime, again_in: float | None = None) -> datetime:
        """Return the next multiple of the interval, or an earlier time to look for news or to finish work."""
        waits = [wait for wait in (self._settings.poll_seconds, again_in) if wait is not None]
        at = [now + timedelta(seconds=wait) for wait in waits]
        return min([due_before(now, self._interval) + self._interval, *at])

    def _schedule(self, at: datetime) -> None:
        """Set the time of the next tick. A tick sets that of the one after it: none comes due while one runs."""
        self._scheduler.add_job(
            self._tick,
            DateTrigger(at),
            id=_TICK,
            replace_existing=True,
            # The thread is busy for a moment after a tick has set the time of the next one, which then waits for it.
            max_instances=2,
            # A late tick still judges the newest window.
            misfire_grace_time=None,
        )

    def _shut_down(self) -> None:
        gone_at = time.monotonic() + GRACE_SECONDS
        # A shutdown while the scheduler hands over a tick fails at the removal of that tick. Paused, it hands over no
        # other, and `get_jobs` waits until it has handed over this one.
        self._scheduler.pause()
        self._scheduler.get_jobs()
        self._scheduler.shutdown(wait=False)
        in_the_middle: list[str] = []
        if not self._idle.wait(GRACE_SECONDS):
            in_the_middle.append("a cycle; it had written nothing")
        if self._jobs is not None and not self._jobs.join(max(0.0, gone_at - time.monotonic())):
            in_the_middle.append("a job; another monitor takes it over")
        if self._heartbeat is not None and not self._heartbeat.close(gone_at - time.monotonic()):
            in_the_middle.append("deleting the heartbeat; doctor reports this monitor as lost")
        if self._notifications is not None and not self._notifications.close(gone_at - time.monotonic()):
            in_the_middle.append("a notification; it is sent again")
        if in_the_middle:
            log.warning("stopping in the middle of %s", ", and of ".join(in_the_middle))
            logging.shutdown()
            # Their threads cannot be stopped otherwise, and would keep the process alive.
            os._exit(0)
        if self._ticker is not None:
            self._ticker.close()


def _clock_offset() -> float:
    """Seconds by which the time of day is ahead of the monotonic clock."""
    return time.time() - time.monotonic()
