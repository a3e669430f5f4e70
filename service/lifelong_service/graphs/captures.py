"""Captures of kernels as CUDA graphs, beside other threads that use the same GPU.

While ONNX Runtime captures, CUDA refuses copies and allocations to all other threads of the process, and the first
refused one ends the capture: both fail. So a capture waits for the runs of other graphs, and they wait for it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class CaptureError(Exception):
    """Kernels cannot be captured, or a replay does not compute what the graph computes."""


class SharedDevice:
    """A GPU that threads use together, or one of them alone.

    Attributes:
        failure: why this process cannot use it any more: it fails for every image. None: it works.
    """

    def __init__(self) -> None:
        self.failure: str | None = None
        self._changed = threading.Condition()
        self._users = 0
        self._is_taken = False

    @contextmanager
    def used(self) -> Iterator[None]:
        """Use the device in the block beside others; nothing is captured in the meantime."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_taken)
            self._users += 1
        try:
            yield
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Use the device in the block alone."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_taken)
            self._is_taken = True
            self._changed.wait_for(lambda: self._users == 0)
        try:
            yield
        finally:
            with self._changed:
                self._is_taken = False
                self._changed.notify_all()


DEVICE = SharedDevice()
"""The GPU of this process."""
