"""Grouping of rows by class, group or cell."""

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.arrays import Floats, Integers


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


def independent_cases(data: LabeledLogits) -> Integers:
    """Samples of each class, shape (C,); samples of one class and one group count once."""
    if data.groups is None:
        return data.counts
    _, member = np.unique(data.groups, return_inverse=True)
    pairs = np.unique(np.column_stack([data.labels, member]), axis=0)
    return np.bincount(pairs[:, 0], minlength=data.classes).astype(np.int64)
