"""SIGTERM and SIGINT in the parent process during the whole start: no signal is lost, and no child process is left."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGINT)
REPEAT_SECONDS = 0.5
"""Time between two repetitions of a signal."""


@contextmanager
def hold_signals() -> Generator[None, None, None]:
    """Block signals until the end of the block."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def end_with_child(child: Callable[[], int | None]) -> None:
    """On a signal, end this process and its child, until BentoML's server handles signals itself.

    Args:
        child: returns its process id; None: the child has ended, and nothing is done. The server handles the signal
            soon, or is about to end: `insist` repeats the signal for it.
    """

    def end(number: int, _: FrameType | None) -> None:
        if (process := child()) is None:
            return
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        # The default action of a signal does not end process 1 of a container.
        os._exit(128 + number)

    for number in ENDING:
        signal.signal(number, end)


def end_at_once() -> None:
    """Restore the default handlers of the signals, in the child."""
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def insist() -> None:
    """Repeat the first signal until this process has ended.

    The supervisor of BentoML's workers drops a signal that arrives while it starts a worker.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread handles signals: BentoML runs inside another program
    reader, writer = socket.socketpair()
    writer.settimeout(0)
    # The signal number is also written to this file descriptor, whichever handler is installed.
    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_repeat, args=(reader,), name="signals", daemon=True).start()


def _repeat(reader: socket.socket) -> None:
    while not (numbers := set(reader.recv(64)).intersection(ENDING)):
        pass
    while True:
        time.sleep(REPEAT_SECONDS)
        os.kill(os.getpid(), min(numbers))
