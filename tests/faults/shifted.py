"""Service and monitor with a wrong clock: a file holds the offset, and the clock jumps when the file changes.

`python -m tests.faults.shifted service` and `... monitor` start them like `python -m lifelong_service` and `python -m
lifelong_monitor`. Only the time of day is wrong, as after setting the clock of a machine: sleeping, deadlines and the
clock of PostgreSQL are right. (libfaketime 0.9.10 works for any process, but breaks sleeping.)
"""

import os
import sys
import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from types import ModuleType
from typing import Any

CLOCK = "FAULTS_CLOCK"
"""Environment variable with the path of the file; the file holds the offset of the clock in seconds."""
SERVICE = (sys.executable, "-m", "tests.faults.shifted", "service")
MONITOR = (sys.executable, "-m", "tests.faults.shifted", "monitor")
_SHIFTED = "tests.faults.shifted:Lifelong"
_WHO_ASKS = ("lifelong", "apscheduler")
"""Prefixes of the names of the modules with the shifted clock."""


class Clock:
    """The clock of all processes with the environment `variables`; it can be set while they run."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.variables = {CLOCK: str(file)}
        self.set(0.0)

    def set(self, ahead: float) -> None:
        """Set the offset to this many seconds ahead of the right time."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{ahead}\n")
        new.replace(self._file)


def ahead() -> float:
    """Return the present offset of this process's clock, in seconds."""
    return float(Path(os.environ[CLOCK]).read_text())


class _Kind(type):
    """Metaclass that keeps `isinstance(value, datetime)` true for real datetimes."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime)


class ShiftedDatetime(datetime, metaclass=_Kind):
    """Replacement of `datetime.datetime`."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + timedelta(seconds=ahead())


class ShiftedTime:
    """Replacement of the module `time`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time(self) -> float:
        return time.time() + ahead()

    def time_ns(self) -> int:
        return time.time_ns() + int(ahead() * 1e9)


def shift(modules: list[ModuleType]) -> int:
    """Replace the clock in these modules; return how many of them use one."""
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
    """Return the BentoML service, for processes that import it from this module."""
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
    from lifelong_core.configuration.settings import Settings
    from lifelong_service.process.launch import serve

    serve(Settings.load(), _SHIFTED)


if __name__ == "__main__":
    main()
