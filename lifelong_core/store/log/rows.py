"""Predictions from rows of the log; encoding of prediction ids."""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lifelong_core.store.engine.columns import Row, read_record, unpack_logits
from lifelong_core.store.log.records import Prediction


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
