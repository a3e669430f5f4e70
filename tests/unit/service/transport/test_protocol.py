"""Socket options of a worker's connections."""

import socket

import pytest

from lifelong_service.transport import protocol


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux only")
def test_the_kernel_gives_up_answers_that_nobody_reads() -> None:
    with socket.socket() as connection:
        protocol._give_up_unread_answers(connection)
        seconds = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1000
    assert seconds == protocol.UNREAD_SECONDS


def test_a_unix_socket_has_no_such_option() -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        protocol._give_up_unread_answers(connection)
