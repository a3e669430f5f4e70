"""One JSON object per line on stderr."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

_LOGGERS = ("lifelong_service", "lifelong_core")


class JsonLines(logging.Formatter):
    """Time, level, logger and message; what was given as `extra={"details": {...}}`; the traceback, if any."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        line.update(getattr(record, "details", {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def configure_logging(level: int = logging.INFO) -> None:
    """Send our own loggers to stderr; idempotent. Other libraries' loggers stay as they are."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.propagate = False
        if not any(isinstance(handler.formatter, JsonLines) for handler in logger.handlers):
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(JsonLines())
            logger.addHandler(handler)
