"""What one request asks of the micro-batcher."""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lifelong_core.arrays import Logits
from lifelong_core.errors import LifelongError
from lifelong_core.store.access.records import Token

ANONYMOUS = "anonymous"
"""The actor of requests without a token."""


@dataclass(frozen=True)
class RequestContext:
    """To whom a prediction belongs and how a repetition of its request is recognised.

    Attributes:
        model: reference `name` or `name@version`; None: the promoted one.
        environment: a legal name, created when it is new.
        group: what makes predictions dependent (patient, study), in the clear: it is hashed before it is stored.
        request_id: the client's key of the request.
        token: with which the request came; None: without one.
        source: address from which it came; None: not known.
    """

    model: str | None
    environment: str
    group: str | None
    request_id: str | None
    token: Token | None = None
    source: str | None = None


@dataclass(frozen=True)
class ImageRequest:
    """Decide about one image.

    Attributes:
        address: to whom it belongs.
        image: its bytes.
        declared: width and height by its header, on which the decision to decode it in the serving process rests.
        pixels: the model's input, when the image was decoded elsewhere; the address then names the model's version.
        weight: as how many samples it counts in a micro-batch.
        fault: why the image cannot be decoded.
    """

    address: RequestContext
    image: bytes
    declared: tuple[int, int] | None = None
    pixels: NDArray[np.float32] | None = None
    weight: int = 1
    fault: LifelongError | None = None

    @property
    def samples(self) -> int:
        """Always one."""
        return 1

    @property
    def groups(self) -> tuple[str | None, ...]:
        """The group of the only sample."""
        return (self.address.group,)

    def body_digest(self) -> bytes:
        """SHA-256 over all that the request says beside its key: a repetition must say the same."""
        return _digest(b"image", self.groups, self.image)


@dataclass(frozen=True)
class LogitsRequest:
    """Decide about logits of shape (N, C); `row_groups` holds N groups, or is None when all share the address's."""

    address: RequestContext
    logits: Logits
    row_groups: tuple[str | None, ...] | None = None

    @property
    def samples(self) -> int:
        """N."""
        return len(self.logits)

    @property
    def weight(self) -> int:
        """N: each row counts as a sample of a micro-batch."""
        return self.samples

    @property
    def groups(self) -> tuple[str | None, ...]:
        """The group of each sample."""
        return self.row_groups if self.row_groups is not None else (self.address.group,) * len(self.logits)

    def body_digest(self) -> bytes:
        """SHA-256 over all that the request says beside its key, whatever the encoding of the logits was."""
        return _digest(str(self.logits.shape).encode(), self.groups, self.logits.tobytes())


def _digest(kind: bytes, groups: tuple[str | None, ...], content: bytes) -> bytes:
    digest = hashlib.sha256()
    for part in (kind, repr(groups).encode(), content):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()
