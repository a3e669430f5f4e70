"""Functions that wait for events in another thread or process."""

import time
from collections.abc import Callable
from typing import Any

LONG = 30.0
"""Seconds that no test waits for if all is well."""


def eventually(happened: Callable[[], Any]) -> Any:
    """What it gives once that is true."""
    deadline = time.monotonic() + LONG
    while not (result := happened()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return result
