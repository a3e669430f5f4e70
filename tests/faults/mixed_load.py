"""Load of images and logits from clients of which some disconnect in mid-request and send it again."""

import itertools
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPConnection
from io import BytesIO
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlencode

import numpy as np
from PIL import Image

from lifelong_core.images import preprocess
from tests.faults.load import CLASSES, Load, Request
from tests.integration.installation import GREY
from tests.unit.service.onnx_graphs import EDGE, linear_weights

MIXED_PERIOD: Final = 400
"""The kinds of requests repeat after this many."""
_IMAGES_EVERY: Final = 4
ImageKind: TypeAlias = Literal["small", "large", "costly"]
_BLOCKS: Final[Mapping[ImageKind, int]] = {"small": 24, "large": 48, "costly": 24}
"""Edges in pixels of the EDGE x EDGE grey squares of an image. Small images are decoded within their batch, large ones
before it in threads, costly ones (TIFF) in the process for it. JPEG keeps such squares exactly."""
_COSTLY: Final = (20, 240)
"""Places in the period of costly images: a worker decodes one at a time."""
_LONG_ROWS: Final = 500
"""Rows of a long request: its answer is larger than the buffers of the kernel."""
_LONG: Final = 50
"""Place in the period of the long request."""
_RECEIVE_BYTES: Final = 4096
_PIECES: Final = 10
"""Pieces of the answer that a slow client reads before it leaves."""
_PAUSE_SECONDS: Final = 0.1
"""Pause of a slow client after each piece."""
_MOST_WAITED_SECONDS: Final = 0.02
"""A client that leaves before the answer waits for up to this time: the request is read, queued, or being decided."""
_TIMEOUT_SECONDS: Final = 5.0
WAYS_TO_LEAVE: Final = ("while_sending", "while_waiting", "while_reading")
_Leave: TypeAlias = Callable[[socket.socket, bytes, bytes, float], None]
"""Sends the head and the body of a request, or a part, on a socket; waits for these seconds before it returns."""


class MixedLoad(Load):
    """A load of images and logits, of which a fifth are begun first by a client that disconnects in mid-request.

    A quarter are images, and one of 400 is a long request. Of the images a third are large, and one in 50 is costly.
    Arguments as of `Load`.

    Attributes:
        disconnected: number of disconnections of each kind.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.disconnected: Counter[str] = Counter()
        self._turns = itertools.count()

    def _request(self, number: int) -> Request:
        place = number % MIXED_PERIOD
        if place % _IMAGES_EVERY == 0:
            return self._image_request(number)
        return self._logits_request(number, _LONG_ROWS) if place == _LONG else super()._request(number)

    @staticmethod
    def image_kind(number: int) -> ImageKind:
        """Kind of the image of the request with this number."""
        place = number % MIXED_PERIOD
        if place in _COSTLY:
            return "costly"
        return "large" if place // _IMAGES_EVERY % 3 == 0 else "small"

    def _image_request(self, number: int) -> Request:
        """An image of grey squares that are unique to the request."""
        kind = self.image_kind(number)
        block = np.ones((_BLOCKS[kind], _BLOCKS[kind]), np.uint8)
        squares = np.random.default_rng((self._seed, number)).integers(0, 256, (EDGE, EDGE), dtype=np.uint8)
        image = Image.fromarray(np.kron(squares, block))
        file = BytesIO()
        file_format = "TIFF" if kind == "costly" else "JPEG"
        image.save(file, file_format, quality=95)
        logits = preprocess(image, GREY).reshape(1, -1) @ linear_weights(CLASSES)
        group = self._group(number)
        parameters = {"environment": self._environment, "request_id": self._id(number)}
        if group is not None:
            parameters["group"] = group
        path = f"/v1/predict?{urlencode(parameters)}"
        media_type = f"image/{file_format.lower()}"
        return Request(self._id(number), path, media_type, file.getvalue(), logits, group, is_image=True)

    def _send(self, connection: HTTPConnection, number: int, due_at: float) -> HTTPConnection:
        leave = self._way_to_leave(number)
        if leave is not None:
            with suppress(OSError):
                self._begin(self._request(number), leave)
                self.disconnected[leave.__name__.strip("_")] += 1
            connection, due_at = self._renewed(connection), time.monotonic()
        return super()._send(connection, number, due_at)

    def _way_to_leave(self, number: int) -> _Leave | None:
        place = number % MIXED_PERIOD
        if place == _LONG:
            return _while_reading
        return {1: _while_sending, 5: _while_waiting, 8: _while_sending, 4: _while_waiting}.get(place % 20)

    def _begin(self, request: Request, leave: _Leave) -> None:
        """Send the request on a connection that ends too early, by a regular end or by a reset in turn."""
        lines = [f"POST {request.path} HTTP/1.1", f"Host: 127.0.0.1:{self._port}"]
        lines += [f"{name}: {value}" for name, value in self._headers(request).items()]
        lines += [f"Content-Length: {len(request.body)}", "", ""]
        turn = next(self._turns)
        with socket.socket() as client:
            client.settimeout(_TIMEOUT_SECONDS)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
            if turn % 2:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.connect(("127.0.0.1", self._port))
            leave(client, "\r\n".join(lines).encode(), request.body, _MOST_WAITED_SECONDS * (turn % 10) / 9)


def _while_sending(client: socket.socket, head: bytes, body: bytes, seconds: float) -> None:
    """Leave after half of the body."""
    client.sendall(head + body[: len(body) // 2])
    time.sleep(seconds)


def _while_waiting(client: socket.socket, head: bytes, body: bytes, seconds: float) -> None:
    """Leave after the whole request."""
    client.sendall(head + body)
    time.sleep(seconds)


def _while_reading(client: socket.socket, head: bytes, body: bytes, seconds: float) -> None:
    """Read the answer slowly, and leave before its end."""
    client.sendall(head + body)
    for _ in range(_PIECES):
        if not client.recv(_RECEIVE_BYTES):
            return
        time.sleep(_PAUSE_SECONDS)
    time.sleep(seconds)
