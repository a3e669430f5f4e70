"""Files through which the workers share their metrics.

The library maps them into memory with holes: on a full disk, a new series would end the process. Here they are in
memory (/dev/shm) where the machine has that, and space is reserved before it is used. Each worker has files under its
number, made before the first worker starts: a replaced worker needs no new ones and continues the counters.

The name of the folder is a new one with each start: other users can write to /dev/shm, too, and several services may
have one data directory and one port, each with an address of its own. The parent process locks its folder.
"""

import atexit
import fcntl
import logging
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from prometheus_client import values
from prometheus_client.mmap_dict import MmapedDict

from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.files import PRIVATE_FOLDER, reserve
from lifelong_core.values.errors import UnavailableError

logger = logging.getLogger(__name__)

FOLDER: Final = "_LIFELONG_METRICS"
"""Environment variable with the folder of the files."""
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the folder in it is ours, or not used
_KINDS: Final = ("counter", "histogram", "gauge_livesum", "gauge_livemax", "gauge_mostrecent")
"""As the library names its files. A test compares them with the metrics."""
_BYTES: Final = 1 << 16
_held: list[IO[bytes]] = []
"""Gauges of this worker, locked while it lives."""


class ReservedDict(MmapedDict):
    """A file of values that grows only into reserved space; until there is some, new series are not shown.

    Each series keeps its value in the process, too, so that it is complete when it is shown.
    """

    def read_value(self, key: str) -> tuple[float, float]:
        """Value and time of the series; 0 for one that is new."""
        return super().read_value(key) if self._has_room(key) else (0.0, 0.0)

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        """Keep the value of the series, if there is space."""
        if self._has_room(key):
            super().write_value(key, value, timestamp)

    def _has_room(self, key: str) -> bool:
        # Length, padding, value and time are less than 32 bytes.
        if key in self._positions or self._used + len(key.encode()) + 32 <= self._capacity:
            return True
        try:
            # The library extends it to the same size.
            reserve(self._f, 2 * self._capacity)  # pyright: ignore[reportArgumentType] - it is open
        except OSError:
            return False
        return True


def make_files(settings: Settings, workers: int) -> None:
    """Make the files of these workers, and name their folder in the environment of child processes.

    Raises:
        UnavailableError: neither memory nor the disk of the data directory has space.
    """
    home = settings.data_directory / "bentoml" / str(settings.port)
    try:
        home.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        try:
            folder = _filled(_MEMORY, "lifelong-metrics-", workers)
        except OSError:
            folder = _filled(home, "metrics-", workers)
    except OSError as error:
        raise UnavailableError(
            f"the metrics cannot be kept, neither in {_MEMORY} nor in {home}: {error.strerror}.",
            hint="Give the service a data directory that it can write to, on a disk with room.",
        ) from error
    os.environ[FOLDER] = str(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def share_metrics(worker: int) -> None:
    """Let the metrics that this process creates from now on be values in the files of the worker.

    Args:
        worker: its number; only one process has it at a time.
    """
    folder = os.environ["PROMETHEUS_MULTIPROC_DIR"] = os.environ[FOLDER]
    try:
        check_folder(Path(folder))
    except UnavailableError as error:
        logger.error("%s", error)  # noqa: TRY400 - the sentence says all; the worker serves without metrics
        return
    for file in Path(folder).glob(f"gauge_*_{worker}.db"):
        stream = file.open("r+b", buffering=0)
        fcntl.flock(stream, fcntl.LOCK_EX)
        _forget(stream)
        _held.append(stream)
    values.MmapedDict = ReservedDict  # pyright: ignore[reportPrivateImportUsage]
    values.ValueClass = values.MultiProcessValue(lambda: worker)


def check_folder(folder: Path) -> None:
    """Check that the folder of the files is still there.

    Raises:
        UnavailableError: it is missing, or of another user.
    """
    with suppress(OSError):
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
            return
    raise UnavailableError(
        f"the metrics are missing: {folder} was removed.",
        hint="Restart the service. If systemd removes the folder when a user logs out, run the service as a system"
        " user, or set RemoveIPC=no in logind.conf.",
    )


def forget_dead_workers(folder: Path) -> None:
    """Remove the gauges of workers that have ended, which would be summed until they are replaced."""
    for file in folder.glob("gauge_*.db"):
        with file.open("r+b", buffering=0) as stream, suppress(BlockingIOError):
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _forget(stream)


def _filled(place: Path, prefix: str, workers: int) -> Path:
    """Make a locked folder with files; remove those of services that have ended."""
    for old in place.glob(f"{prefix}*"):
        with suppress(OSError):  # it is of another user, or in use
            lock = _locked(old)
            try:
                shutil.rmtree(old)
            finally:
                os.close(lock)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
    try:
        _locked(folder)
        for worker in range(1, workers + 1):
            for kind in _KINDS:
                with (folder / f"{kind}_{worker}.db").open("xb") as file:
                    reserve(file, _BYTES)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _locked(folder: Path) -> int:
    """Lock a folder until the returned descriptor is closed, at the latest at the end of this process."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _forget(stream: IO[bytes]) -> None:
    """Set the length of the values to 0, as in a new file."""
    stream.write(bytes(8))
