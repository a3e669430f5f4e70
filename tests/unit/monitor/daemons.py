"""A monitor in a thread of the test, and functions that wait for its results."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lifelong_core.configuration.settings import Settings
from lifelong_monitor.daemon import Daemon
from lifelong_monitor.exporter.exporter import Exporter


@contextmanager
def running(settings: Settings, exporter: Exporter | None = None) -> Iterator[None]:
    """The monitor runs until the block ends."""
    process = Daemon(settings, exporter or Exporter(cycle_interval_seconds=settings.cycle_interval_seconds))
    thread = threading.Thread(target=process.run)
    thread.start()
    try:
        yield
    finally:
        process.stop()
        thread.join(timeout=20)
        assert not thread.is_alive()


def until(happened: Callable[[], Any], *, seconds: float = 60) -> Any:
    """What it gives once that is true, within so many seconds if all is well."""
    deadline = time.monotonic() + seconds
    while not (result := happened()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return result
