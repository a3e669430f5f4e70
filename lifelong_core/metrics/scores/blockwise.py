"""Large arrays in parts, so that intermediate results stay small."""

from collections.abc import Iterator

import numpy as np

from lifelong_core.values.arrays import Floats

BLOCK = 1 << 20
"""Values in memory at a time: 8 MB."""
COLUMNS_TOGETHER = 8
"""Columns that are copied at a time: as many float64 as a cache line holds."""


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Slices of the rows with at most `BLOCK` values each, at least one row.

    Examples:
        >>> [(part.start, part.stop) for part in blocks(3, BLOCK // 2)]
        [(0, 2), (2, 3)]
    """
    step = max(1, BLOCK // max(columns, 1))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def columns_of(values: Floats) -> Iterator[Floats]:
    """The columns of (N, C), each contiguous: a pass over a strided column reads nearly the whole array.

    Examples:
        >>> [column.tolist() for column in columns_of(np.array([[1.0, 2.0], [3.0, 4.0]]))]
        [[1.0, 3.0], [2.0, 4.0]]
    """
    for start in range(0, values.shape[1], COLUMNS_TOGETHER):
        yield from np.ascontiguousarray(values[:, start : start + COLUMNS_TOGETHER].T)
