"""Operations on rows: affine scores of logits, one-hot labels, sums by class, group or cell."""

import numpy as np
from numpy.typing import NDArray

from lifelong_core.values.arrays import Floats, Integers, Logits, centre_rows


def affine_scores(logits: Logits, temperature: float | Floats, bias: Floats) -> Floats:
    """Centred logits divided by the temperature, plus the bias, shape (N, C), float64.

    Centring matters only where the temperature differs between classes: it makes the result ignore a row's
    constant.
    """
    return centre_rows(logits) / temperature + bias


def one_hot(labels: np.ndarray, classes: int) -> Floats:
    """One-hot rows of labels, shape (N, C): 1 in the column of the row's label, else 0."""
    return (labels[:, np.newaxis] == np.arange(classes)).astype(np.float64)


def sort_into_runs(member: Integers | NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Order that puts the rows of each member index together, (N,), and the start of each run in it."""
    order = np.argsort(member, kind="stable")
    return order, np.flatnonzero(np.diff(member[order], prepend=-1))


def member_sums(values: Floats, member: Integers | NDArray[np.intp]) -> Floats:
    """Sum of the rows of each member index 0, 1, ..., without gaps; shape (members, ...)."""
    if member.size == 0:
        return values
    order, first = sort_into_runs(member)
    return np.add.reduceat(values[order], first, axis=0)
