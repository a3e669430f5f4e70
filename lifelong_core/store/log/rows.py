"""Predictions from rows of the log, their packed ids, and quarantine.

Quarantine: rows that no estimate can use are left out of windows and counted; the log keeps them.
"""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lifelong_core.store.engine.columns import Row, read_record, unpack_logit_rows, unpack_logits
from lifelong_core.store.log.records import Prediction
from lifelong_core.values.arrays import Logits, Mask


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
