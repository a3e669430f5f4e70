"""Rows of the prediction log, requests, windows and labels."""

from dataclasses import dataclass
from typing import Literal, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lifelong_core.arrays import Integers, Logits
from lifelong_core.deploy.values import ArrayValue

Population: TypeAlias = tuple[int, str]
"""Model id and environment."""


@dataclass(frozen=True, eq=False)
class Prediction(ArrayValue):
    """One row of the prediction log. `id` is a UUIDv7: it holds the time and orders the log by time."""

    id: UUID
    model_id: int
    environment: str
    head_version: int
    decision: int
    logits: Logits
    """shape (C,)"""
    group_hash: bytes | None = None


@dataclass(frozen=True)
class RequestKey:
    """The key that identifies a repeated request."""

    model_id: int
    environment: str
    request_id: str


@dataclass(frozen=True)
class LogEntry:
    """The predictions of one request, logged together or not at all."""

    predictions: tuple[Prediction, ...]
    request: RequestKey | None = None
    body_digest: bytes = b""
    token_id: int | None = None
    """of the token with which the request came; None: without one"""


@dataclass(frozen=True)
class StoredRequest:
    """What was answered to a request with this key, and to which body."""

    key: RequestKey
    body_digest: bytes
    predictions: tuple[Prediction, ...]


@dataclass(frozen=True, order=True)
class LogPosition:
    """A position in commit order. No row appears before it any more, so a reader misses none.

    Commit order is not id order, because ids are made before the commit.
    """

    commit_order: int
    id: UUID


@dataclass(frozen=True, eq=False)
class Window(ArrayValue):
    """The newest predictions of one population, oldest first, as read up to `log_position`."""

    ids: tuple[UUID, ...]
    logits: Logits
    groups: NDArray[np.generic] | None
    """shape (N,): a key per sample, predictions without a group are their own; None if none has a group."""
    log_position: int
    """Rows committed at or after this commit order were left out: reading again up to it gives the same window."""
    quarantined: int = 0
    """Rows that were read and left out because no estimate may use them."""


@dataclass(frozen=True)
class NewLabel:
    """The true class of a logged prediction."""

    prediction_id: UUID
    label: int
    source: str = ""


LabelOutcome: TypeAlias = Literal["stored", "unchanged", "corrected", "unknown"]


@dataclass(frozen=True, eq=False)
class LabelledPredictions(ArrayValue):
    """Predictions whose true class has become known, newest last; row i of every array is one prediction."""

    ids: tuple[UUID, ...]
    labels: Integers
    decisions: Integers
    head_versions: Integers
    logits: Logits
    groups: NDArray[np.generic] | None = None
    """as those of a `Window`"""
    quarantined: int = 0
    """how many more there are, which have another number of logits than the model has classes"""
