"""The service without its prediction log, to measure the cost of the log; there is no such setting.

`python -m benchmarks.unlogged_service` starts it as `python -m lifelong_service` starts the real one.
"""

import sys
from collections.abc import Collection, Sequence
from typing import Any

from lifelong_core.configuration.settings import Settings
from lifelong_core.store.log.records import LogEntry
from lifelong_service.prediction.prediction_log import PredictionLog
from lifelong_service.process.launch import serve


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
    serve(Settings.load(), "benchmarks.unlogged_service:Lifelong")


if __name__ == "__main__":
    sys.exit(main())
