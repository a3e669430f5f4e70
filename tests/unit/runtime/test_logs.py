"""One format for all log lines of a process."""

import json
import logging
import subprocess
import sys
from datetime import datetime
from typing import Any

import pytest

from lifelong_core.runtime.logs import ConsoleFormatter, JsonFormatter

SPEAK = """
import logging, sys, threading, warnings
from lifelong_core.runtime.logs import configure_logging
library = logging.getLogger("library.part")
library.addHandler(logging.StreamHandler(sys.stdout))
library.propagate = False
configure_logging(sys.argv[1])
log = logging.getLogger("lifelong_service.some")
log.debug("not said")
log.info("said %d", 1, extra={"details": {"a": 1, "nan": float("nan"), "object": object}})
log.info("wrong %d", "arguments")
library.info("not said either")
library.warning("two\\nlines")
warnings.warn("old", DeprecationWarning, stacklevel=1)
try:
    1 / 0
except ZeroDivisionError:
    log.exception("caught")
thread = threading.Thread(target=lambda: [][1])
thread.start()
thread.join()
raise KeyError("at last")
"""


def spoken(log_format: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", SPEAK, log_format], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr.splitlines()


def test_every_line_is_a_json_object() -> None:
    lines: list[dict[str, Any]] = [json.loads(line, parse_constant=pytest.fail) for line in spoken("json")]
    found = [(line["level"], line["logger"], line["message"].split(":")[0]) for line in lines]
    assert found == [
        ("info", "lifelong_service.some", "said 1"),
        ("info", "lifelong_service.some", "wrong %d ('arguments',)"),
        ("warning", "library.part", "two\nlines"),
        ("warning", "py.warnings", "<string>"),
        ("error", "lifelong_service.some", "caught"),
        ("critical", "lifelong", "uncaught exception in a thread"),
        ("critical", "lifelong", "uncaught exception"),
    ]
    assert "'a': 1" in lines[0]["details"]
    assert ["ZeroDivisionError" in lines[4]["traceback"], "IndexError" in lines[5]["traceback"]] == [True] * 2
    assert lines[6]["traceback"].endswith("KeyError: 'at last'")
    for line in lines:
        assert datetime.fromisoformat(line["time"]).utcoffset().total_seconds() == 0
        assert line["process"] > 0


def test_the_console_has_a_line_for_each_event() -> None:
    lines = [line for line in spoken("console") if line[:3] == "202"]
    assert [line.split(" ", 2)[1] for line in lines] == [
        "INFO",
        "INFO",
        "WARNING",
        "WARNING",
        "ERROR",
        "CRITICAL",
        "CRITICAL",
    ]
    assert lines[0].endswith("lifelong_service.some: said 1 (a=1, nan=nan, object=<class 'object'>)")
    assert lines[2].endswith("library.part: two lines")


@pytest.mark.parametrize("formatter", [JsonFormatter(), ConsoleFormatter()])
def test_a_line_commands_no_terminal(formatter: logging.Formatter) -> None:
    hostile = "a\x1b]52;c;YQ==\x07\r\x9b2J\u202e"
    try:
        raise ValueError(hostile)
    except ValueError:
        trouble = sys.exc_info()
    record = logging.LogRecord("library", logging.WARNING, "x.py", 1, "%s", (hostile,), trouble)
    record.details = {"name": hostile}
    line = formatter.format(record)
    assert not set("\x1b\x07\r\x9b\u202e") & set(line)
    assert line.count("52;c;YQ==") == 3


@pytest.mark.parametrize("formatter", [JsonFormatter(), ConsoleFormatter()])
def test_no_line_holds_a_secret(formatter: logging.Formatter) -> None:
    secret = "Qgeheim4711Z"
    try:
        raise ValueError(f"postgresql://me:{secret}@host/db")
    except ValueError:
        trouble = sys.exc_info()
    record = logging.LogRecord(
        "library", logging.WARNING, "x.py", 1, "GET %s", (f"/v1/predict?token={secret}",), trouble
    )
    record.details = {
        "url": f"s3://KEY:{secret}@bucket",
        "error": ValueError(f"password={secret}"),
        "more": [{"header": f"Bearer {secret}"}],
        "token": "gateway",
    }
    line = formatter.format(record)
    assert secret not in line
    assert "ValueError: postgresql://me:***@host/db" in line
    assert "gateway" in line
