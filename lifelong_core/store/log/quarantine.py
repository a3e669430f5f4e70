"""Which rows of the log can be judged. The others are left out, row by row, and counted; the log keeps them."""

from collections.abc import Sequence

import numpy as np

from lifelong_core.arrays import Logits, Mask
from lifelong_core.store.engine.columns import unpack_logit_rows


def usable_rows(blobs: Sequence[bytes], *, classes: int) -> tuple[Logits, Mask]:
    """The rows that say something of a class, and which they are.

    Left out are rows with another number of classes (another model wrote under this name), with a value that is not
    finite, and with equal logits only (a model that answers without having looked).

    Args:
        blobs: N rows of logits as the log holds them.
        classes: of the model.

    Returns:
        Logits of the usable rows, shape (K, classes), and a mask, shape (N,), with K of them true.
    """
    mask = np.array([len(blob) for blob in blobs], dtype=np.int64) == 4 * classes
    fitting = unpack_logit_rows([blobs[index] for index in np.flatnonzero(mask).tolist()], classes=classes)
    sound = np.isfinite(fitting).all(axis=1) & (fitting != fitting[:, :1]).any(axis=1)
    mask[mask] = sound
    return fitting[sound], mask
