"""Turns of the workers of a machine: a bounded number of large images is decoded at once."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from lifelong_core.runtime.cores import usable_cores
from lifelong_core.store.spool.locks import FileLock, LockBusyError
from lifelong_core.values.errors import UnavailableError

LOOK_SECONDS: Final = 0.002
"""Time in seconds between two attempts to get a turn."""
PAUSE_SECONDS: Final = 2 * LOOK_SECONDS
"""Pause of a process after its turn, so that other processes get the next one."""


def usual_number() -> int:
    """Return half of the number of cores, at least one; the other half serves ordinary images."""
    return max(1, usable_cores() // 2)


class Turns:
    """Shares turns with all processes that use the same folder.

    The kernel ends the turn of a process that dies. If the folder cannot be used, turns are unlimited.

    Args:
        folder: on a local disk.
        number: number of simultaneous turns.
    """

    def __init__(self, folder: Path, *, number: int) -> None:
        self._locks = [FileLock(folder / f"decoding-{index}.lock") for index in range(number)]
        self._not_before = 0.0

    @contextmanager
    def turn(self, seconds: float) -> Iterator[None]:
        """Wait for a turn, and hold it within the block.

        Args:
            seconds: to wait at most.

        Raises:
            UnavailableError: no turn is free within this time.
        """
        time.sleep(max(0.0, self._not_before - time.monotonic()))
        deadline = time.monotonic() + seconds
        with ExitStack() as stack:
            while not self._take(stack):
                if time.monotonic() > deadline:
                    raise UnavailableError(
                        "other large images are being decoded.",
                        field="image",
                        hint="Try again later, or send images at a lower resolution.",
                    )
                time.sleep(LOOK_SECONDS)
            try:
                yield
            finally:
                self._not_before = time.monotonic() + PAUSE_SECONDS

    def _take(self, stack: ExitStack) -> bool:
        """Take a turn if one is free; return whether it was taken. The stack ends it."""
        for lock in self._locks:
            try:
                stack.enter_context(lock.hold(until=0))
            except LockBusyError:
                continue
            except OSError:  # a disk that is full or read-only
                return True
            return True
        return False
