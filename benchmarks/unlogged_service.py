"""The service with its prediction log switched off, only to measure what the log costs: there is no such setting.

`python -m benchmarks.unlogged_service` starts it as `python -m lifelong_service` starts the real one.
"""

import os
import sys
from collections.abc import Collection, Sequence
from typing import Any

from lifelong_core.settings import Settings
from lifelong_core.store.records import LogEntry
from lifelong_service.launch import CHECKER, PARENT, command, environment, start_checker
from lifelong_service.prediction_log import PredictionLog

REAL = "lifelong_service.service:Lifelong"
UNLOGGED = "benchmarks.unlogged_service:Lifelong"


def _append(_: PredictionLog, entries: Sequence[LogEntry]) -> tuple[bool, ...]:
    return (True,) * len(entries)


def _find(_: PredictionLog, keys: Collection[Any]) -> dict[Any, Any]:  # noqa: ARG001 - the signature is the log's
    return {}


def __getattr__(name: str) -> Any:
    """The BentoML service, for the processes that import this module to serve it."""
    if name != "Lifelong":
        raise AttributeError(name)
    PredictionLog.append = _append
    PredictionLog.find = _find
    from lifelong_service.service import Lifelong

    return Lifelong


def main() -> None:
    """Start it; does not return."""
    settings = Settings.load()
    needed = environment(settings) | {
        CHECKER: str(start_checker(settings)),
        PARENT: str(os.getpid()),
    }
    arguments = command(settings)
    arguments[arguments.index(REAL)] = UNLOGGED
    os.execve(arguments[0], arguments, os.environ | needed)


if __name__ == "__main__":
    sys.exit(main())
