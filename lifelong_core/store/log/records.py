"""Predictions, requests, windows and labels from rows of the log; packed ids; and quarantine.

Quarantine: rows that no estimate can use are left out of windows and counted; the log keeps them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, Self, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lifelong_core.store.engine.columns import Row, read_record, unpack_logit_rows, unpack_logits
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, Integers, Logits, Mask

Population: TypeAlias = tuple[int, str]
"""Model id and environment."""
LabelOutcome: TypeAlias = Literal["stored", "unchanged", "corrected", "unknown"]


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
    """Key by which a repeated request is recognised."""

    model_id: int
    environment: str
    request_id: str


@dataclass(frozen=True)
class LogEntry:
    """The predictions of one request, logged atomically."""

    predictions: tuple[Prediction, ...]
    request: RequestKey | None = None
    body_digest: bytes = b""
    token_id: int | None = None
    """id of the token of the request; None: no token"""


@dataclass(frozen=True)
class StoredRequest:
    """A logged request: its key, the digest of its body, and its predictions."""

    key: RequestKey
    body_digest: bytes
    predictions: tuple[Prediction, ...]

    def age(self) -> tuple[bool, UUID | None]:
        """A key that sorts the oldest request first, and one whose predictions are erased last."""
        first = self.predictions[0].id if self.predictions else None
        return first is None, first


@dataclass(frozen=True, order=True)
class LogPosition:
    """A position in commit order; all rows before it are final.

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
    """shape (N,): a key per sample, its own id without a group; None if no sample has a group."""
    log_position: int
    """Rows committed at or after this commit order are left out; reading up to it again returns the same window."""
    quarantined: int = 0
    """Number of rows that were read and left out as unusable."""


@dataclass(frozen=True)
class NewLabel:
    """The true class of a logged prediction."""

    prediction_id: UUID
    label: int
    source: str = ""
    propensity: float | None = None
    """probability in (0, 1] with which the prediction was chosen for labelling; None: unknown"""


@dataclass(frozen=True)
class LabelRevision:
    """One change of the label of a prediction."""

    prediction_id: UUID
    revision: int
    """counts up from 1, the first label"""
    previous_label: int | None
    """None: there was no label"""
    label: int
    propensity: float | None
    """of the label since this revision; None: unknown"""
    source: str
    actor: str
    """name of the token or person"""
    recorded_at: datetime


@dataclass(frozen=True, eq=False)
class LabelledPredictions(ArrayValue):
    """Labelled predictions, newest last; row i of every array is one prediction."""

    ids: tuple[UUID, ...]
    labels: Integers
    decisions: Integers
    head_versions: Integers
    logits: Logits
    groups: NDArray[np.generic] | None = None
    """as those of a `Window`"""
    propensities: Floats | None = None
    """shape (N,), in (0, 1]: probability with which each was chosen for labelling; NaN: unknown; None: all unknown"""
    quarantined: int = 0
    """number of rows left out because their number of logits is not the number of classes"""

    def select(self, rows: Integers) -> Self:
        """The predictions at these indices."""
        names = ("labels", "decisions", "head_versions", "logits", "groups", "propensities")
        found = {name: getattr(self, name) for name in names}
        return replace(
            self,
            ids=tuple(self.ids[int(row)] for row in rows),
            **{name: None if values is None else values[rows] for name, values in found.items()},
        )


def prediction_of(row: Row) -> Prediction:
    """The prediction of a row of `predictions`."""
    return read_record(row, Prediction, logits=unpack_logits(row.logits))


def join_ids(ids: list[UUID]) -> bytes:
    """Encode prediction ids, 16 bytes each."""
    return b"".join(prediction_id.bytes for prediction_id in ids)


def split_ids(blob: bytes) -> list[UUID]:
    """Decode the ids of `join_ids`."""
    return [UUID(bytes=blob[start : start + 16]) for start in range(0, len(blob), 16)]


def group_keys(ids: Sequence[UUID], groups: Sequence[bytes | None]) -> NDArray[np.generic]:
    """Return a key for each prediction in hexadecimal, shape (N,): the hash of its group, else its id."""
    pairs = zip(ids, groups, strict=True)
    return np.array(
        [identity.hex if group is None else bytes(group).hex() for identity, group in pairs], dtype=np.str_
    )


def usable_rows(blobs: Sequence[bytes], *, classes: int) -> tuple[Logits, Mask]:
    """Return the logits of the usable rows, and the mask of those rows.

    Rows are unusable if they have another number of classes (from another model of this name), a value that is not
    finite, or equal logits only (no information on the class).

    Args:
        blobs: N rows of logits in the encoding of the log.
        classes: number of classes of the model.

    Returns:
        Logits of the usable rows, shape (K, classes), and the mask, shape (N,), with K true values.
    """
    mask = np.array([len(blob) for blob in blobs], dtype=np.int64) == 4 * classes
    fitting = unpack_logit_rows([blobs[index] for index in np.flatnonzero(mask).tolist()], classes=classes)
    sound = np.isfinite(fitting).all(axis=1) & (fitting != fitting[:, :1]).any(axis=1)
    mask[mask] = sound
    return fitting[sound], mask
