"""Ctrl-C and SIGTERM end the demo at any moment; nothing interrupts its cleanup."""

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

AGAIN_SECONDS = 1.0
"""Time until an interruption that had no effect is repeated."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible() -> Generator[None, None, None]:
    """Within the block, both signals raise KeyboardInterrupt or SystemExit, again and again until it is left.

    Once is not enough: an exception that is raised while an object is finalised is lost. After the block both signals
    are ignored, so that an impatient second Ctrl-C leaves no process behind.
    """
    exceptions: list[BaseException] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        if not exceptions:
            exceptions.append(KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number))
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
        raise exceptions[0]

    for number in (*_SIGNALS, signal.SIGALRM):
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
