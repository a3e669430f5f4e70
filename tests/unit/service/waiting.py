"""Functions that wait for events in another thread or process."""

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine
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


def in_event_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine; it fails if it takes more than `LONG`."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **named), LONG))

    return run
