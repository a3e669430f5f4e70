"""What a job may use of its machine: memory of its processes, and space on the disk of the data directory."""

import os
import shutil
from pathlib import Path

from lifelong_core.configuration.settings import Settings
from lifelong_core.values.errors import LifelongError

GIBIBYTE = 2**30
_KIBIBYTE = 1024
_SESSION = 3
"""Position of the session in /proc/PID/stat, behind the name of the program."""


def memory_of_session(session: int) -> int:
    """Bytes of memory that the processes of a session use together; pages that they share count once.

    Processes that end meanwhile count nothing.
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
    found: list[Path] = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - once a second, and faster
        folder = Path("/proc", name)
        if name.isdecimal() and _session_of(folder) == session:
            found.append(folder)
    return found


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
