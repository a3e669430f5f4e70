"""The decoding process of a serving process, which may be killed at any moment.

All workers of a machine together decode a bounded number of large images at once.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

import numpy as np
from numpy.typing import NDArray

from lifelong_core.runtime.cores import usable_cores
from lifelong_core.store.spool.locks import FileLock, LockBusyError
from lifelong_core.values.errors import (
    InvalidInputError,
    LifelongError,
    PayloadTooLargeError,
    UnavailableError,
)
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.decoding import frames
from lifelong_service.decoding.child import ERRORS

PROCESSOR_SECONDS: Final = 1.5
"""Limit of processor time for one image; 16 million pixels as PNG take some 0.5 s."""
PATIENCE_SECONDS: Final = 4.0
"""Time limit of one image, also on a busy machine."""
TURN_SECONDS: Final = 4.0
"""Longest wait of an image for large images of other workers."""
STARTING_SECONDS: Final = 4.0
"""Additional time for the first image of a process; on a free core the process starts in half a second."""
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


class DecodingProcess:
    """Decodes images in a process that the first call starts. One call at a time; other threads wait.

    Args:
        maximum_pixels: largest number of pixels of one image.
        turns: turns for large images.
    """

    def __init__(self, *, maximum_pixels: int, turns: Turns) -> None:
        self._turns = turns
        self._limits = json.dumps({"maximum_pixels": maximum_pixels, "seconds": PROCESSOR_SECONDS})
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        # The kernel kills the process when the thread that started it ends, and threads of requests end when idle.
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="decoding-starter")

    def decode(
        self, image: bytes, preprocessing: Preprocessing, *, is_large: bool = True
    ) -> NDArray[np.float32]:
        """Return the model's input for one image, as `lifelong_core.images.model_input`.

        Args:
            image: encoded bytes.
            preprocessing: preprocessing of the model.
            is_large: whether it waits for a turn among the large images of all workers.

        Raises:
            InvalidInputError: the image cannot be decoded, or decoding it takes too long.
            PayloadTooLargeError: it is larger, or takes more memory, than the limits allow.
            UnavailableError: the machine is too busy, or the process cannot be started.
        """
        with self._lock, self._turns.turn(TURN_SECONDS) if is_large else contextlib.nullcontext():
            running = self._running()
            process = self._process = running or self._starter.submit(self._start).result()
            patience = PATIENCE_SECONDS if running else STARTING_SECONDS + PATIENCE_SECONDS
            timer = threading.Timer(patience, process.kill)
            timer.daemon = True
            timer.start()
            try:
                return _ask(process, image, preprocessing)
            except (EOFError, BrokenPipeError):
                raise _death(_end(process)) from None
            finally:
                timer.cancel()

    def close(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()
            _end(self._process)

    def _running(self) -> subprocess.Popen[bytes] | None:
        process = self._process
        if process is None or process.poll() is None:
            return process
        _end(process)
        return None

    def _start(self) -> subprocess.Popen[bytes]:
        # Free large blocks are returned to the system at once, so that the process stays small between images.
        environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(1 << 20), "OPENBLAS_NUM_THREADS": "1"}
        environment.pop("MALLOC_TOP_PAD_", None)
        command = [sys.executable, "-m", "lifelong_service.decoding.child", self._limits]
        try:
            return subprocess.Popen(  # noqa: S603 - our own module, no shell
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
        except OSError as error:
            raise UnavailableError(
                f"large images cannot be decoded now: {error}.", field="image", hint="Try again later."
            ) from error


def _ask(process: subprocess.Popen[bytes], image: bytes, preprocessing: Preprocessing) -> NDArray[np.float32]:
    requests, answers = cast("BinaryIO", process.stdin), cast("BinaryIO", process.stdout)
    frames.write_document(requests, {"preprocessing": preprocessing.model_dump(mode="json")})
    frames.write_frame(requests, image)
    answer = frames.read_document(answers)
    if "shape" in answer:
        return frames.read_array(answer["shape"], answers)
    error = answer["error"]
    raise ERRORS[error["code"]](error["message"], field=error["field"], hint=error["hint"])


def _end(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end of the process and close its pipes; return its exit status."""
    status = process.wait()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(BrokenPipeError):  # of unwritten data
            cast("BinaryIO", stream).close()
    return status


def _death(status: int) -> LifelongError:
    """Return the error for a client whose image was being decoded when the process ended."""
    if status == -signal.SIGPROF:
        return PayloadTooLargeError(
            f"decoding the image takes more than {PROCESSOR_SECONDS:g} s.",
            field="image",
            hint="Send it at a lower resolution, as PNG or baseline JPEG.",
        )
    if status in (-signal.SIGKILL, -signal.SIGTERM):
        return UnavailableError(
            "the image was not decoded in time: the machine is busy.", field="image", hint="Try again later."
        )
    return InvalidInputError(
        "the image crashes its decoder.", field="image", hint="Save it anew as PNG or baseline JPEG."
    )
