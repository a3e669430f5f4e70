"""The work folder of a job: kept for its next attempt on this machine, removed at the end of the job."""

import shutil
import tempfile
from pathlib import Path
from uuid import UUID

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Store
from lifelong_core.values.errors import NotFoundError


def make_work_folder(settings: Settings, store: Store, job_id: UUID) -> Path:
    """Make the work folder of a job, if it does not exist, and remove those of jobs that have ended.

    It is below the folder for temporary files where the data directory cannot be written, as on a node of a Ray
    cluster.

    Raises:
        UnavailableError: the database does not answer.
    """
    try:
        return _make(_folders_in(settings.data_directory), store, job_id)
    except OSError:
        return _make(Path(tempfile.gettempdir()) / "lifelong-jobs", store, job_id)


def remove_work_folder(settings: Settings, job_id: UUID) -> None:
    """Remove the work folder of a job, if there is one."""
    shutil.rmtree(_folders_in(settings.data_directory) / str(job_id), ignore_errors=True)


def remove_ended(settings: Settings, store: Store) -> None:
    """Remove the work folders of jobs that have ended elsewhere, or whose monitor was killed.

    Raises:
        UnavailableError: the database does not answer.
    """
    _remove_ended(_folders_in(settings.data_directory), store)


def _folders_in(data_directory: Path) -> Path:
    return data_directory.resolve() / "jobs"


def _make(folders: Path, store: Store, job_id: UUID) -> Path:
    _remove_ended(folders, store)
    folder = folders / str(job_id)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _remove_ended(folders: Path, store: Store) -> None:
    for folder in sorted(folders.iterdir()) if folders.is_dir() else ():
        if not _goes_on(store, folder.name):
            shutil.rmtree(folder, ignore_errors=True)


def _goes_on(store: Store, name: str) -> bool:
    try:
        return store.jobs.get(UUID(name)).finished_at is None
    except (NotFoundError, ValueError):
        return False
