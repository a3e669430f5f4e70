"""The confusion matrix, and the metrics that count its entries."""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.arrays import Integers, as_confusion, as_labels
from lifelong_core.errors import InvalidInputError


def confusion_matrix(
    labels: ArrayLike, decisions: ArrayLike, *, classes: int, decisions_count: int | None = None
) -> Integers:
    """How often class i was decided as j, shape (C, D) (thesis Def. 2.10).

    Args:
        labels: shape (N,), true classes 0..C-1.
        decisions: shape (N,), 0..D-1.
        classes: number of classes C.
        decisions_count: number of decisions D, C + 1 where abstaining is one; None: C.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> confusion_matrix([0, 0, 1, 1], [0, 1, 1, 1], classes=2).tolist()
        [[1, 1], [0, 2]]
    """
    columns = classes if decisions_count is None else decisions_count
    reference = as_labels(labels, classes=classes)
    decided = as_labels(decisions, classes=columns, field="decisions")
    if reference.shape != decided.shape:
        raise InvalidInputError(
            f"expected as many decisions as labels ({reference.size}), got {decided.size}.", field="decisions"
        )
    counts = np.bincount(reference * columns + decided, minlength=classes * columns)
    return counts.reshape(classes, columns).astype(np.int64)


def accuracy(confusion: ArrayLike) -> float:
    """Share of samples that were decided as their true class (thesis Def. 2.15); nan without any sample.

    Args:
        confusion: shape (C, D), rows true classes, columns decisions; abstaining counts as wrong.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> accuracy([[1, 1], [0, 2]])
        0.75
    """
    counts = as_confusion(confusion)
    total = counts.sum()
    return float(np.trace(counts) / total) if total > 0 else float("nan")
