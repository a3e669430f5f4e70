"""A network path to a PostgreSQL server that can drop every packet, like a cut cable."""

import ctypes
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

import sqlalchemy as sa

_HERE = "127.0.0.1"
_ATTACH_FILTER, _DETACH_FILTER = 26, 27
"""SO_ATTACH_FILTER and SO_DETACH_FILTER of Linux, which Python's socket module lacks."""
_KEEP_NOTHING = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
"""A packet filter of one instruction, return 0: no byte of a packet is kept."""
_FILTER = struct.pack("HL", 1, ctypes.addressof(_KEEP_NOTHING))


class Network:
    """Forwards connections to a port of this machine. Use it as a context manager.

    The system does not acknowledge dropped packets: they are retransmitted, connections stay open at both ends, and new
    ones are not answered. Afterwards each end learns which connections the other has closed.

    Attributes:
        port: port that accepts connections.

    Args:
        server_port: port to which they are forwarded.
    """

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._listener = socket.create_server((_HERE, 0))
        self.port: int = self._listener.getsockname()[1]
        self._ends: list[socket.socket] = []
        self._is_swallowing = False
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, name="network", daemon=True).start()

    def url(self, database_url: str) -> str:
        """Return the URL of the same database through this network."""
        url = sa.make_url(database_url).difference_update_query(["host", "port"])
        return url.set(host=_HERE, port=self.port).render_as_string(hide_password=False)

    @contextmanager
    def swallowing(self) -> Iterator[None]:
        """Drop all packets in both directions during the block."""
        self._swallow(True)
        try:
            yield
        finally:
            self._swallow(False)

    def close(self) -> None:
        """End all connections."""
        self._end(self._listener, *self._ends)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _swallow(self, is_swallowing: bool) -> None:
        with self._lock:
            self._is_swallowing = is_swallowing
            for one in (self._listener, *self._ends):
                self._filter(one)

    def _filter(self, end: socket.socket) -> None:
        if self._is_swallowing:
            attach_filter(end)
        else:
            with suppress(FileNotFoundError):  # it has none
                end.setsockopt(socket.SOL_SOCKET, _DETACH_FILTER, 0)

    def _accept(self) -> None:
        while self._listener.fileno() >= 0:
            with suppress(OSError):  # the listener is closed, or the client has closed the connection
                client, _ = self._listener.accept()
                self._lead_on(client)

    def _lead_on(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection((_HERE, self._server_port))
        except OSError:
            client.close()
            return
        with self._lock:
            self._ends += client, server
            # It may have got a filter from the listener.
            for end in (client, server):
                self._filter(end)
                _ask_often(end)
        for pair in ((client, server), (server, client)):
            threading.Thread(target=self._forward, args=pair, name="network", daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                target.sendall(data)
        self._end(source, target)

    def _end(self, *ends: socket.socket) -> None:
        with self._lock:
            self._ends = [one for one in self._ends if one not in ends]
            for one in ends:
                # Shutdown wakes waiting threads, which closing alone does not.
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()


def attach_filter(end: socket.socket) -> None:
    """Drop every packet that arrives at a socket.

    Raises:
        OSError: the system or the user lacks the permission.
    """
    end.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, _FILTER)


def _ask_often(end: socket.socket) -> None:
    """Enable frequent keep-alive probes: the other side answers with a reset if it has closed the connection."""
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 127)):
        end.setsockopt(socket.IPPROTO_TCP, option, value)
