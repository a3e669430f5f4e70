"""Writes the head and the body of an answer at once: two system calls and two packets become one."""

import asyncio
from collections.abc import Iterable
from typing import Any

LARGE_BYTES = 65_536
"""Size above which copying a body costs more than a system call, and the memory of its copy for each slow reader."""


class JoinedWrites:
    """A transport that holds the first write of an answer until the next one, or until the event loop goes on.

    It has the interface of asyncio.Transport, but does not inherit it: the methods there raise NotImplementedError, so
    that those that are not here would not reach the transport of the connection.

    Args:
        transport: of the connection.
        loop: its event loop.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""
        self._flushing: asyncio.Handle | None = None
        self.is_closing = transport.is_closing
        self.get_extra_info = transport.get_extra_info
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Hold the data, or write it together with what is held; drop it if the transport is closing."""
        # A closing transport still sends what is written while its buffer is not empty.
        if self.is_closing():
            return
        if self._flushing is None:
            self._held = bytes(data)
            self._flushing = self._loop.call_soon(self._flush)
            return
        self._flushing.cancel()
        self._flushing = None
        held, self._held = self._held, b""
        if len(data) > LARGE_BYTES:
            self._transport.write(held)
            self._transport.write(data)
        else:
            self._transport.write(held + data)

    def close(self) -> None:
        """Write what is held, then close."""
        self._flush_now()
        self._transport.close()

    def writelines(self, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
        """Write the pieces as one."""
        self.write(b"".join(pieces))

    def write_eof(self) -> None:
        """Write what is held, then close the direction to the client."""
        self._flush_now()
        self._transport.write_eof()

    def get_write_buffer_size(self) -> int:
        """Bytes that the client has not read yet."""
        return self._transport.get_write_buffer_size() + len(self._held)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _flush_now(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
            self._flush()

    def _flush(self) -> None:
        self._flushing = None
        if self._held and not self._transport.is_closing():
            self._transport.write(self._held)
        self._held = b""
