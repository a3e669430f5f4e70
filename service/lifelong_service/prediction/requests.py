"""Requests to the micro-batcher, one image or logits, and the model that answers them."""

import hashlib
import math
import time
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.entities.access import Token
from lifelong_core.entities.develop.rollouts import Rollout
from lifelong_core.entities.registry import Model
from lifelong_core.runtime.tracing import Parent, present_context
from lifelong_core.values.arrays import Logits
from lifelong_core.values.errors import LifelongError
from lifelong_core.values.mistaken_probabilities import (
    expect_logits,
    look_like_probabilities,
    may_sum_to_one_by_chance,
)

Role: TypeAlias = Literal["promoted", "canary", "shadow", "other"]
PROMOTED: Final[Role] = "promoted"
CANARY: Final[Role] = "canary"
SHADOW: Final[Role] = "shadow"
OTHER: Final[Role] = "other"
"""A model that the request names, and that is not the promoted one."""

ROWS_PER_SAMPLE: Final = 8
"""Rows of logits that count as one sample in a micro-batch: they take as long as a small image."""
MOST_BY_CHANCE = 4
"""Different rows in succession that may look like probabilities though they are logits on a grid: of two classes, of
deviation 1 to 2 and on steps of 0.1 or 1/16, 0.2 to 1.2 % of the rows do so."""


@dataclass(frozen=True)
class Route:
    """The model that answers a request.

    Attributes:
        model: the model.
        role: in which it answers.
        promoted: answers instead if a canary fails.
        rollout: the trial whose candidate answers, or decides about the same image afterwards; None: there is none.
        earlier: ids of the models that may have answered the request when it was sent before.
    """

    model: Model
    role: Role
    promoted: Model
    rollout: Rollout | None = None
    earlier: frozenset[int] = frozenset()

    def without_candidate(self) -> "Route":
        """The route of a request whose canary failed."""
        return Route(self.promoted, PROMOTED, self.promoted, None, self.earlier)


@dataclass(frozen=True)
class RequestContext:
    """Model, environment, group and request id of a prediction request, with its token and source.

    Attributes:
        model: reference `name` or `name@version`; None: the promoted model.
        environment: a valid name; a new one is created.
        group: key of dependent samples (patient, study), in clear text; it is hashed before it is stored.
        request_id: idempotency key of the client.
        token: token of the caller; None: there is none.
        source: address of the client; None: unknown.
        trace: context of the request's span; None: tracing is off.
        queued_at: when the request was permitted, in nanoseconds since 1970; 0: tracing is off.
    """

    model: str | None
    environment: str
    group: str | None
    request_id: str | None
    token: Token | None = None
    source: str | None = None
    trace: Parent = None
    queued_at: int = 0

    def sent_by(self, token: Token | None, source: str) -> "RequestContext":
        """The same context with the token and the address of its client, within the present trace."""
        trace = present_context()
        queued_at = 0 if trace is None else time.time_ns()
        return RequestContext(
            self.model, self.environment, self.group, self.request_id, token, source, trace, queued_at
        )


@dataclass(frozen=True)
class ImageRequest:
    """A request for the decision about one image.

    Attributes:
        context: model, environment and request id.
        image: encoded bytes.
        declared: width and height in the header; a decoded image of another size is refused.
        pixels: the model's input, if another process decoded the image for the model of `route`.
        route: the model that answers; None: the pipeline chooses.
        weight: number of samples that it counts as in a micro-batch; 0 with a fault, which costs no inference.
        fault: the reason why the image cannot be decoded.
        preparation_weight: number of samples that its decoding counts as; 0: it needs none before its micro-batch.
    """

    context: RequestContext
    image: bytes
    declared: tuple[int, int] | None = None
    pixels: NDArray[np.float32] | None = None
    route: Route | None = None
    weight: int = 1
    fault: LifelongError | None = None
    preparation_weight: int = 0

    @property
    def samples(self) -> int:
        """Always one."""
        return 1

    @property
    def groups(self) -> tuple[str | None, ...]:
        """The group of the only sample."""
        return (self.context.group,)

    def body_digest(self) -> bytes:
        """SHA-256 of the content without the request id: equal for repetitions."""
        return _digest(b"image", self.groups, self.image)


@dataclass(frozen=True)
class LogitsRequest:
    """A request for decisions about logits, shape (N, C).

    `row_groups` holds N groups; None: all rows have the group of the context.
    """

    context: RequestContext
    logits: Logits
    row_groups: tuple[str | None, ...] | None = None
    preparation_weight: ClassVar[int] = 0

    @property
    def samples(self) -> int:
        """N."""
        return len(self.logits)

    @property
    def weight(self) -> int:
        """N / `ROWS_PER_SAMPLE`, rounded up."""
        return math.ceil(self.samples / ROWS_PER_SAMPLE)

    @property
    def groups(self) -> tuple[str | None, ...]:
        """The group of each sample."""
        return self.row_groups if self.row_groups is not None else (self.context.group,) * len(self.logits)

    def body_digest(self) -> bytes:
        """SHA-256 of the content without the request id: equal for repetitions, also in another encoding."""
        return _digest(str(self.logits.shape).encode(), self.groups, self.logits.tobytes())


PredictionRequest: TypeAlias = ImageRequest | LogitsRequest


def _digest(kind: bytes, groups: tuple[str | None, ...], content: bytes) -> bytes:
    digest = hashlib.sha256()
    for part in (kind, repr(groups).encode(), content):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


class ProbabilityWatch:
    """Refuses probabilities; a few logits on a grid (quantised or rounded) that sum to 1 by chance are answered."""

    def __init__(self) -> None:
        self._rows: dict[str, set[bytes]] = {}

    def check(self, logits: Logits, client: str) -> None:
        """Make sure that the rows of a client are not, and do not go on to be, probabilities.

        Raises:
            InvalidInputError: every row looks like class probabilities, too exactly or too often for a chance.
        """
        if not look_like_probabilities(logits):
            self._rows.pop(client, None)
            return
        rows = self._rows.setdefault(client, set())
        if len(rows) <= MOST_BY_CHANCE:
            rows |= {row.tobytes() for row in logits[: MOST_BY_CHANCE + 1]}
        if max(len(rows), len(logits)) > MOST_BY_CHANCE or not may_sum_to_one_by_chance(logits):
            expect_logits(logits)
