"""The resources of a job on its machine: memory of its processes, disk space, and a work folder.

The work folder is kept for the next attempt on this machine, and removed at the end of the job.
"""

import os
import shutil
import tempfile
from pathlib import Path
from uuid import UUID

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Store
from lifelong_core.values.errors import LifelongError, NotFoundError

GIBIBYTE = 2**30
_KIBIBYTE = 1024
_SESSION = 3
"""Position of the session in /proc/PID/stat, behind the name of the program."""


def memory_of_session(session: int) -> int:
    """Bytes of memory that the processes of a session use together; pages that they share count once.

    Processes that end during the measurement do not count.
    """
    return sum(_memory_of(process) for process in _processes_of(session))


def disk_error(settings: Settings, folder: Path | None = None, *, needed: int = 0) -> LifelongError | None:
    """The error for too little free space on a disk; None: there is enough.

    Args:
        settings: of the monitor.
        folder: on the disk; None: the data directory.
        needed: bytes that are to be written there.
    """
    folder = (folder or settings.data_directory).resolve()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free >= settings.job_disk_bytes + needed:
        return None
    less = f" The decoded images need {needed / GIBIBYTE:.2g} GiB." if needed else ""
    return LifelongError(
        f"the disk of {folder} has {free / GIBIBYTE:.2g} GiB left; a training has to leave"
        f" {settings.job_disk_bytes / GIBIBYTE:.2g} GiB free.{less}",
        field="LIFELONG_JOB_DISK_BYTES",
        hint="Delete what is not needed there, or lower the limit of the monitor; then submit it again.",
    )


def _processes_of(session: int) -> list[Path]:
    processes: list[Path] = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - once a second, and faster
        folder = Path("/proc", name)
        if name.isdecimal() and _session_of(folder) == session:
            processes.append(folder)
    return processes


def _session_of(process: Path) -> int | None:
    try:
        return int((process / "stat").read_text(errors="replace").rpartition(")")[2].split()[_SESSION])
    except (OSError, IndexError, ValueError):
        return None


def _memory_of(process: Path) -> int:
    try:
        lines = (process / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * _KIBIBYTE for line in lines if line.startswith("Pss:"))


def make_work_folder(settings: Settings, store: Store, job_id: UUID) -> Path:
    """Make the work folder of a job, if it does not exist, and remove the folders of jobs that have ended.

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
