import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.metrics.scores import samples as blockwise
from lifelong_core.metrics.scores.samples import blocks, columns_of


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 100))
def test_blocks_cover_each_row_once_within_the_limit(rows, columns, limit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blockwise, "BLOCK", limit)
        parts = list(blocks(rows, columns))
    assert [row for part in parts for row in range(rows)[part]] == list(range(rows))
    assert all(part.stop - part.start == 1 or (part.stop - part.start) * columns <= limit for part in parts)


@pytest.mark.parametrize("classes", [1, 8, 9, 20])
@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_are_contiguous(classes, order):
    values = np.asarray(np.random.default_rng(0).random((5, classes)), order=order)
    columns = list(columns_of(values))
    assert np.array_equal(np.stack(columns, axis=1), values)
    assert all(column.flags.c_contiguous for column in columns)
