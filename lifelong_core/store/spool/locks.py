"""A lock between processes; the system releases it when its holder ends."""

import fcntl
import os
import random
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from lifelong_core.runtime.files import PRIVATE_FILE
from lifelong_core.store.files import make_folder

_RETRY_SECONDS = (0.0002, 0.001)

_held: set[int] = set()
"""Descriptors of the locks that this process holds; a forked child closes its copies, which would keep the locks."""


class LockBusyError(Exception):
    """Another process or thread holds the lock."""


class FileLock:
    """`flock` on a file that is opened for each use, so that threads exclude each other and replacement is detected.

    Args:
        path: of the file, created if missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def hold(self, *, until: float) -> Generator[int, None, None]:
        """Hold the lock in the block; yield the descriptor of its file.

        Args:
            until: end of the wait on the clock of time.monotonic; at least one attempt is made.

        Raises:
            LockBusyError: the lock was not free before `until`.
            OSError: the file cannot be created.
        """
        descriptor = self._acquire(until)
        _held.add(descriptor)
        try:
            yield descriptor
        finally:
            if descriptor in _held:
                _held.discard(descriptor)
                # Closing alone does not release the lock while a forked child has the descriptor, too.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
                os.close(descriptor)

    def _acquire(self, until: float) -> int:
        while True:
            descriptor = self._open()
            try:
                _wait_for(descriptor, until)
                if _is_in_place(descriptor, self._path):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            # The file was removed or replaced during the wait.
            os.close(descriptor)

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        except FileNotFoundError:
            make_folder(self._path.parent)
            return os.open(self._path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)


def _wait_for(descriptor: int, until: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= until:
                raise LockBusyError from error
            time.sleep(random.uniform(*_RETRY_SECONDS))  # noqa: S311 - jitter, not a secret
        else:
            return


def _is_in_place(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _let_go_in_child() -> None:
    while _held:
        os.close(_held.pop())


os.register_at_fork(after_in_child=_let_go_in_child)
