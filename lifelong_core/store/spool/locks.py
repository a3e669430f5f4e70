"""A lock between processes: held by one at a time, free again when its holder dies."""

import fcntl
import os
import random
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from lifelong_core.runtime.file_modes import PRIVATE_FILE
from lifelong_core.store.files import make_folder

_RETRY_SECONDS = (0.0002, 0.001)

_held: set[int] = set()
"""Descriptors of the locks that this process holds. A child that was forked meanwhile would go on holding them."""


class LockBusyError(Exception):
    """Somebody else holds the lock."""


class FileLock:
    """`flock` on a file, opened anew each time: so threads exclude each other, and a file that was replaced counts.

    Args:
        path: of the file, made if need be.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def hold(self, *, until: float) -> Generator[int, None, None]:
        """Hold the lock in the block; gives the descriptor of its file.

        Args:
            until: when to give up waiting, on the clock of time.monotonic; it is tried once in any case.

        Raises:
            LockBusyError: others held it all the time.
            OSError: the file cannot be made.
        """
        descriptor = self._acquire(until)
        _held.add(descriptor)
        try:
            yield descriptor
        finally:
            if descriptor in _held:
                _held.discard(descriptor)
                # Not by closing alone: a child that is just being forked has the descriptor too.
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
            # The file was removed or replaced while we waited.
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
