"""The thread that parses large bodies; after them, a worker returns free memory that the allocator would keep."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final, TypeVar

from lifelong_core.runtime.memory import give_back_free_memory

LARGE_BODY: Final = 4_000_000
"""Size in bytes of a body after which memory is released."""
LARGE_PARSED_BODY: Final = 100_000
"""The same for a body that is parsed to Python objects."""
PAUSE_SECONDS: Final = 0.5
"""Time from the first large body to the release, which covers all bodies of that time."""
SMALL_BODY = 16_384
"""Largest body in bytes that is parsed in the event loop; larger ones would delay other requests."""
Parsed = TypeVar("Parsed")

_PARSER = ThreadPoolExecutor(1, "parser")
"""Parses one large body at a time, because parsers hold the interpreter's lock, and always in the same thread, because
each thread keeps its largest memory."""


class MemoryRelease:
    """Releases memory after large bodies; one for each process, used in its event loop.

    Args:
        executor: runs the release.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._due_in: asyncio.AbstractEventLoop | None = None

    def note(self, received: int, *, is_parsed: bool) -> None:
        """Record the end of a request.

        Args:
            received: bytes of its body.
            is_parsed: whether the body was parsed to Python objects.
        """
        if received <= (LARGE_PARSED_BODY if is_parsed else LARGE_BODY):
            return
        loop = asyncio.get_running_loop()
        if self._due_in is loop:  # one that is scheduled in a closed loop never runs
            return
        self._due_in = loop
        loop.call_later(PAUSE_SECONDS, self._release)

    def _release(self) -> None:
        self._due_in = None
        self._executor.submit(give_back_free_memory)


MEMORY_RELEASE = MemoryRelease(_PARSER)
"""Notified of the end of every body."""


async def parse_in_turn(parse: Callable[[], Parsed], size: int) -> Parsed:
    """Return the result of `parse`: small bodies are parsed at once, others in a thread, one at a time.

    Args:
        parse: reads the body.
        size: size of the body in bytes.
    """
    if size <= SMALL_BODY:
        return parse()
    return await asyncio.get_running_loop().run_in_executor(_PARSER, parse)
