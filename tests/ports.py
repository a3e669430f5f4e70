"""Free ports of this machine, which no other process of tests and no outgoing connection takes before they are used."""

import fcntl
import functools
import itertools
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PORTS = range(15_000, 32_000)
"""Below the ports of outgoing connections."""
_BLOCK = 200


def free_port() -> int:
    """Return a port that nothing listens on, at any address of this machine, and no other process of tests gets."""
    for port in itertools.islice(_own_ports(), _BLOCK):
        with suppress(OSError), _listener(port):
            return port
    raise AssertionError(f"all {_BLOCK} ports of this process are in use")


def _listener(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


@functools.cache
def _own_ports() -> Iterator[int]:
    """The ports of a block, again and again; a lock keeps the block until this process ends."""
    folder = Path(tempfile.gettempdir()) / "lifelong-test-ports"
    folder.mkdir(exist_ok=True)
    for begin in _PORTS[::_BLOCK]:
        file = (folder / str(begin)).open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        _locks.append(file)
        return itertools.cycle(range(begin, begin + _BLOCK))
    raise AssertionError(f"other processes of tests hold all ports from {_PORTS.start} to {_PORTS.stop}")


_locks: list[object] = []
