"""Quarantine: rows that no estimate can use are left out of windows and counted; the log keeps them."""

from collections.abc import Sequence

import numpy as np

from lifelong_core.store.engine.columns import unpack_logit_rows
from lifelong_core.values.arrays import Logits, Mask


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
