"""Runs the trainer for a job: on the device of its slot, in a folder of its own, from its last checkpoint."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

from lifelong_core.develop.training.progress import TrainingProgress
from lifelong_core.errors import LifelongError, NotFoundError, UnavailableError
from lifelong_core.settings import Settings
from lifelong_core.store import Job, Store

TrainingOutcome: TypeAlias = Any
"""`lifelong_core.develop.training.run.TrainingOutcome`"""

_FOLDER = "trainings"
_DEVICE = "LIFELONG_JOB_DEVICE"


class Reporting:
    """What a training tells while it runs; an outage of the database loses a line, not the training."""

    def __init__(self, store: Store, job: Job) -> None:
        self._store = store
        self._job = job

    @property
    def device(self) -> str:
        """Device of the slot that the runner gave to the job."""
        return os.environ.get(_DEVICE, "auto")

    def checkpoint(self) -> bytes | None:
        """What the former attempt saved last; None: the training begins anew."""
        return self._store.jobs.checkpoint(self._job)

    def on_checkpoint(self, content: bytes) -> None:
        """Save the state; the next one, where the store does not answer.

        Raises:
            ConflictError: another monitor has begun the job anew.
        """
        with suppress(UnavailableError):
            self._store.jobs.save_checkpoint(self._job, content)

    def on_progress(self, progress: TrainingProgress) -> None:
        """Show the progress; errors as of `on_checkpoint`."""
        with suppress(UnavailableError):
            self._store.jobs.report(self._job, progress.to_document())

    def log(self, line: str) -> None:
        """Add a line to the log of the job; errors as of `on_checkpoint`."""
        with suppress(UnavailableError):
            self._store.jobs.append_log(self._job, [line])


@contextmanager
def work_folder(store: Store, settings: Settings, job: Job) -> Generator[Path, None, None]:
    """A folder for decoded images on this machine; the next attempt of the job finds it again.

    It is deleted with the end of the training. Where the process is killed, the next training on this machine deletes
    it, unless its own job goes on.
    """
    folders = settings.data_directory.resolve() / _FOLDER
    remove_ended(store, folders)
    folder = folders / str(job.id)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        yield folder
    except UnavailableError:
        raise  # the job goes on
    except LifelongError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def remove_ended(store: Store, folders: Path) -> None:
    """Delete the folders of jobs that have ended."""
    for folder in folders.iterdir() if folders.is_dir() else ():
        with suppress(ValueError):
            if not _goes_on(store, UUID(folder.name)):
                shutil.rmtree(folder, ignore_errors=True)


def _goes_on(store: Store, identifier: UUID) -> bool:
    try:
        return store.jobs.get(identifier).finished_at is None
    except NotFoundError:
        return False
