"""The work folder of a job: empty at the start of each attempt, removed at its end."""

import shutil
import tempfile
from pathlib import Path
from uuid import UUID

from lifelong_core.errors import NotFoundError
from lifelong_core.settings import Settings
from lifelong_core.store import Store


def make_work_folder(settings: Settings, job_id: UUID) -> Path:
    """Make the empty work folder of a job; below the folder for temporary files where the data directory cannot be
    written, as on a node of a Ray cluster."""
    try:
        return _make_empty(_folders_in(settings.data_directory) / str(job_id))
    except OSError:
        return _make_empty(Path(tempfile.gettempdir()) / "lifelong-jobs" / str(job_id))


def remove_work_folder(settings: Settings, job_id: UUID) -> None:
    """Remove the work folder of a job, if there is one."""
    shutil.rmtree(_folders_in(settings.data_directory) / str(job_id), ignore_errors=True)


def remove_left_folders(settings: Settings, store: Store) -> None:
    """Remove the work folders of jobs that do not run, which a killed monitor left behind.

    Raises:
        UnavailableError: the database does not answer.
    """
    folders = _folders_in(settings.data_directory)
    for folder in sorted(folders.iterdir()) if folders.is_dir() else []:
        try:
            is_running = store.jobs.get(UUID(folder.name)).state == "running"
        except (NotFoundError, ValueError):
            is_running = False
        if not is_running:
            shutil.rmtree(folder, ignore_errors=True)


def _folders_in(data_directory: Path) -> Path:
    return data_directory / "jobs"


def _make_empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
