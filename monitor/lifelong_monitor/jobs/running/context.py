"""The context of a long job beside the store: progress, log lines, checkpoints, a work folder and a device."""

import logging
import math
import os
import shutil
import threading
from collections import deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.background import BackgroundThread
from lifelong_core.runtime.redaction import redact
from lifelong_core.store import Job, Store
from lifelong_core.store.jobs.following import MOST_LINES
from lifelong_core.values.documents import FrozenDocument
from lifelong_core.values.errors import LifelongError, NotFoundError, UnavailableError
from lifelong_monitor.jobs.running.limits import disk_error, make_work_folder

DEVICE_VARIABLE = "LIFELONG_JOB_DEVICE"
"""Environment variable with the device of the slot that runs the job, an entry of `training_devices`."""
FLUSH_SECONDS = 1.0
"""Interval at which progress and log lines are written to the store."""
_LAST_WRITE_SECONDS = 5.0
"""Longest wait at the end of the work for the last lines."""

log = logging.getLogger(__name__)


class JobContext:
    """Reports on a job while it works; made by `open_context`.

    Progress and log lines are written by a thread: an outage of the database does not hold the work up.

    Args:
        store: of the job.
        job: the job, with the token of the claim.
        settings: of the monitor.
        folder: the work folder.
        device: auto, cpu, cuda or cuda:N.

    Attributes:
        folder: kept for the next attempt on this machine, and removed at the end of the job.
        device: auto, cpu, cuda or cuda:N.
    """

    def __init__(self, store: Store, job: Job, settings: Settings, *, folder: Path, device: str) -> None:
        self.folder = folder
        self.device = device
        self._store = store
        self._job = job
        self._settings = settings
        self._lock = threading.Lock()
        self._lines = deque[str](maxlen=MOST_LINES)
        self._progress: Mapping[str, Any] | None = None
        self._thread = BackgroundThread("job reports", self._write_repeatedly)

    def report(self, progress: FrozenDocument | Mapping[str, Any]) -> None:
        """Show this progress from now on; numbers that are not finite are left out."""
        document = progress.model_dump(mode="json") if isinstance(progress, FrozenDocument) else progress
        with self._lock:
            self._progress = {name: value for name, value in document.items() if _is_writable(value)}

    def log(self, text: str) -> None:
        """Append a text for people to the log of the job; it must not hold data of patients."""
        with self._lock:
            self._lines.append(redact(text))

    def checkpoint(self) -> bytes | None:
        """The state from which this attempt goes on; None: it begins anew.

        Raises:
            UnavailableError: the database or the artifacts do not answer.
        """
        try:
            return self._store.jobs.checkpoint(self._job)
        except NotFoundError as missing:
            self.log(f"the checkpoint is lost, beginning anew: {missing}")
            return None

    def check_space(self, needed: int) -> None:
        """Check that the disk of the work folder can take this many bytes.

        Raises:
            LifelongError: it has too little space left.
        """
        error = disk_error(self._settings, self.folder, needed=needed)
        if error is not None:
            raise error

    def save_checkpoint(self, content: bytes) -> None:
        """Store the state from which the next attempt goes on; in an outage, the former one stays.

        Raises:
            ConflictError: another process has claimed the job, or it has ended.
            LifelongError: the disk has too little space left.
        """
        error = disk_error(self._settings)
        if error is not None:
            raise error
        try:
            self._store.jobs.save_checkpoint(self._job, content)
        except UnavailableError as unavailable:
            self.log(f"this checkpoint was not stored: {unavailable}")

    def start(self) -> None:
        """Start the thread that writes progress and log lines."""
        self._thread.start()

    def close(self) -> None:
        """Write what is not written yet, unless the store hangs."""
        self._thread.close(_LAST_WRITE_SECONDS)

    def _write_repeatedly(self) -> None:
        while not self._thread.stopping.wait(FLUSH_SECONDS):
            self._write()
        self._write()

    def _write(self) -> None:
        with self._lock:
            lines, progress = list(self._lines), self._progress
            self._lines.clear()
            self._progress = None
        try:
            if progress is not None:
                self._store.jobs.report(self._job, progress)
            if lines:
                self._store.jobs.append_log(self._job, lines)
        except UnavailableError as error:
            log.warning("progress of the job %s is written later: %s", self._job.id, error)
            with self._lock:
                self._lines = deque([*lines, *self._lines], maxlen=MOST_LINES)
                self._progress = progress if self._progress is None else self._progress
        except LifelongError as error:  # the runner ends the process of a lost job
            log.warning("progress of the job %s was not written: %s", self._job.id, error)


@contextmanager
def open_context(
    store: Store, job: Job, settings: Settings | None = None
) -> Generator[JobContext, None, None]:
    """The context of a job for the block: its work folder exists, and its reports are written.

    Args:
        store: of the job.
        job: the job, with the token of the claim.
        settings: of the monitor; None: the settings of this process.
    """
    settings = settings or Settings.load()
    folder = make_work_folder(settings, store, job.id)
    device = os.environ.get(DEVICE_VARIABLE, "auto")
    context = JobContext(store, job, settings, folder=folder, device=device)
    context.start()
    try:
        yield context
    except UnavailableError:  # the job goes on
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    else:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        context.close()


def _is_writable(value: Any) -> bool:
    return not (isinstance(value, float) and not math.isfinite(value))
