"""Folds of a calibration set for cross-fitting."""

import numpy as np

from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.arrays import Integers


def stratified_folds(data: LabeledLogits, count: int) -> Integers:
    """Fold of each sample, 0..count-1 or fewer, shape (N,); the rest of every fold has samples of every class.

    Samples, or whole groups where the data have them, go to the folds class by class in their order. All samples are in
    fold 0, which means that cross-fitting is impossible, where a class has one sample or one fold would contain all
    samples of a class.
    """
    folds = np.zeros(data.samples, dtype=np.int64)
    if data.groups is None:
        usable = min(count, int(data.counts.min()))
        for k in range(data.classes):
            rows = np.flatnonzero(data.labels == k)
            folds[rows] = np.arange(rows.size) % usable
        return folds
    _, first, member = np.unique(data.groups, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    folds = rank[member] % count
    table = np.zeros((count, data.classes), dtype=np.int64)
    np.add.at(table, (folds, data.labels), 1)
    return np.zeros(data.samples, dtype=np.int64) if (table == data.counts).any() else folds


def crossfitting_folds(data: LabeledLogits, count: int = 5) -> Integers:
    """Folds like `stratified_folds`, with the largest number of folds, at most `count`, that the groups allow; shape
    (N,).
    """
    for tried in range(count, 1, -1):
        folds = stratified_folds(data, tried)
        if folds.any():
            return folds
    return np.zeros(data.samples, dtype=np.int64)
