"""One log format for a whole process: its own messages, those of libraries, warnings and uncaught exceptions.

Every event is one line on standard error. As JSON it is an object with `time` (UTC), `level`, `logger`, `process` (the
process id) and `message`; `details` holds the values of the event, `traceback` that of an exception. Passwords and
tokens are masked.
"""

import json
import logging
import os
import sys
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, TypeAlias, cast

from lifelong_core.runtime.redaction import redact
from lifelong_core.values.control_characters import escape_controls

LogFormat: TypeAlias = Literal["json", "console"]

_OURS = ("lifelong", "lifelong_core", "lifelong_service", "lifelong_monitor")


def configure_logging(log_format: LogFormat | None) -> None:
    """Configure all loggers of this process to write in one format; another call configures all of them again.

    Args:
        log_format: None: `console` where standard error is a terminal, else `json`.
    """
    if log_format is None:
        log_format = "console" if sys.stderr.isatty() else "json"
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else ConsoleFormatter())
    for logger in list(logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            logger.handlers.clear()
            logger.propagate = True
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(logging.WARNING)
    for name in _OURS:
        logging.getLogger(name).setLevel(logging.INFO)
    # Our own messages replace those of BentoML on start and end.
    logging.getLogger("bentoml").setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
    logging.raiseExceptions = (
        False  # a message that cannot be formatted must not print a traceback between the log lines
    )
    sys.excepthook = _log_exception
    threading.excepthook = _log_exception_of_thread
    sys.unraisablehook = _log_unraisable


def early_format() -> LogFormat | None:
    """The log format until the settings are read: that of the environment, if valid; None: not set."""
    found = os.environ.get("LIFELONG_LOG_FORMAT")
    return found if found in ("json", "console") else None


class JsonFormatter(logging.Formatter):
    """Formats each record as one JSON object; `details` comes from `extra={"details": {...}}`."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": redact(_message(record)),
        }
        if details := getattr(record, "details", None):
            line["details"] = _redacted_values(details)
        if traceback := _traceback(self, record):
            line["traceback"] = traceback
        try:
            return json.dumps(line, default=lambda value: redact(str(value)), allow_nan=False)
        except (TypeError, ValueError):  # NaN, or keys that are not texts
            return json.dumps({**line, "details": redact(repr(details))})


class ConsoleFormatter(logging.Formatter):
    """Formats each record as a readable line, with a traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        details: dict[str, object] = getattr(record, "details", None) or {}
        message = " ".join(redact(_message(record)).split("\n"))
        shown = {name: redact(str(value)) for name, value in details.items()}
        named = ", ".join(f"{name}={value}" for name, value in shown.items()).replace("\n", " ")
        line = f"{_time(record)} {record.levelname} {record.name}: {message}" + (
            f" ({named})" if named else ""
        )
        text = "\n".join(filter(None, (line, _traceback(self, record))))
        return escape_controls(text, keep_lines=True)


def _time(record: logging.LogRecord) -> str:
    text = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        return f"{record.msg} {record.args}"


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    return redact(formatter.formatException(record.exc_info)) if record.exc_info else ""


def _redacted_values(details: Any) -> Any:
    """Details with secrets masked in their texts; keys are our own names and hold no secret."""
    if isinstance(details, str):
        return redact(details)
    if isinstance(details, dict):
        values = cast("dict[Any, Any]", details)
        return {name: _redacted_values(value) for name, value in values.items()}
    if isinstance(details, list | tuple):
        return [_redacted_values(value) for value in cast("Sequence[Any]", details)]
    return details


def _log_exception(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger("lifelong").critical("uncaught exception", exc_info=(kind, error, traceback))


def _log_exception_of_thread(arguments: threading.ExceptHookArgs) -> None:
    error = arguments.exc_value
    if error is None or isinstance(error, SystemExit):
        return
    name = arguments.thread.name if arguments.thread is not None else "unknown"
    logging.getLogger("lifelong").critical(
        "uncaught exception in a thread", exc_info=error, extra={"details": {"thread": name}}
    )


def _log_unraisable(arguments: "sys.UnraisableHookArgs") -> None:
    logging.getLogger("lifelong").error(
        "an exception was ignored",
        exc_info=arguments.exc_value,
        extra={"details": {"object": repr(arguments.object)[:200]}},
    )
