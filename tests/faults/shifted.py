"""Service and monitor with a wrong clock: a file holds the offset, and the clock jumps when the file changes.

`python -m tests.faults.shifted service` and `... monitor` start them as `python -m lifelong_service` and `python -m
lifelong_monitor` do. Only the time of day is off, as on a machine whose clock was set: sleeping, deadlines and the
clock of PostgreSQL are not. (libfaketime 0.9.10 would do it for any process, but makes sleeping fail.)
"""

import os
import sys
import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from types import ModuleType
from typing import Any

CLOCK = "FAULTS_CLOCK"
"""Environment variable that names the file; it holds the seconds by which the clock is ahead."""
SERVICE = (sys.executable, "-m", "tests.faults.shifted", "service")
MONITOR = (sys.executable, "-m", "tests.faults.shifted", "monitor")
_SHIFTED = "tests.faults.shifted:Lifelong"
_WHO_ASKS = ("lifelong", "apscheduler")
"""Beginnings of the names of the modules for which the clock is off."""


class Clock:
    """The clock of all processes that are started with `variables`; it can be set while they run."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.variables = {CLOCK: str(file)}
        self.set(0.0)

    def set(self, ahead: float) -> None:
        """Let it be so many seconds ahead of the right time from now on."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{ahead}\n")
        new.replace(self._file)


def ahead() -> float:
    """By how many seconds the clock of this process is ahead now."""
    return float(Path(os.environ[CLOCK]).read_text())


class _Kind(type):
    """What is a datetime remains one."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime)


class ShiftedDatetime(datetime, metaclass=_Kind):
    """In the place of `datetime.datetime`."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + timedelta(seconds=ahead())


class ShiftedTime:
    """In the place of the module `time`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time(self) -> float:
        return time.time() + ahead()

    def time_ns(self) -> int:
        return time.time_ns() + int(ahead() * 1e9)


def shift(modules: list[ModuleType]) -> int:
    """Let these modules see the other clock, as far as they look at one; how many do."""
    shifted = 0
    for module in modules:
        for name, real, other in (("datetime", datetime, ShiftedDatetime), ("time", time, ShiftedTime())):
            if getattr(module, name, None) is real:
                setattr(module, name, other)
                shifted += 1
    return shifted


def _ours() -> list[ModuleType]:
    return [module for name, module in sys.modules.items() if name.startswith(_WHO_ASKS)]


def __getattr__(name: str) -> Any:
    """The BentoML service, for the processes that import this module to serve it."""
    if name != "Lifelong":
        raise AttributeError(name)
    from lifelong_service.service import Lifelong

    shift(_ours())
    return Lifelong


def main() -> None:
    if sys.argv[1] == "monitor":
        from lifelong_monitor.__main__ import main as run_monitor

        shift(_ours())
        sys.exit(run_monitor())
    from lifelong_core.settings import Settings
    from lifelong_service.process.launch import serve

    serve(Settings.load(), _SHIFTED)


if __name__ == "__main__":
    main()
