from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.store import Store
from lifelong_core.store.engine.columns import pack_logits, unpack_logit_rows, unpack_logits
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import InvalidInputError


def test_logits_survive_to_the_last_bit_as_little_endian_float32():
    logits = np.array([1.5, -0.0, 3.4e38, 1e-45], dtype=np.float32)
    blob = pack_logits(logits)
    assert blob[:4] == b"\x00\x00\xc0\x3f"
    assert unpack_logits(blob).tobytes() == logits.tobytes()
    assert unpack_logits(blob).dtype == np.float32


def test_rows_of_logits_become_one_array():
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert np.array_equal(unpack_logit_rows([pack_logits(row) for row in rows], classes=3), rows)
    assert unpack_logit_rows([], classes=0).shape == (0, 0)


def test_a_row_of_another_length_is_refused():
    rows = [pack_logits(np.zeros(3, np.float32)), pack_logits(np.zeros(2, np.float32))]
    with pytest.raises(InvalidInputError, match="2 logits, expected 3"):
        unpack_logit_rows(rows, classes=3)


def test_times_are_kept_in_utc_to_the_microsecond(store: Store):
    moment = datetime(2026, 3, 29, 2, 30, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
    with store.database.write() as connection:
        connection.execute(sa.insert(tables.environments), {"name": "a", "created_at": moment})
        read = connection.execute(
            sa.select(tables.environments.c.created_at).where(tables.environments.c.name == "a")
        )
        value = read.scalar_one()
    assert value == moment
    assert value.tzinfo is UTC


def test_a_time_without_a_zone_is_refused(store: Store):
    naive = datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001
    with pytest.raises(sa.exc.StatementError, match="zone") as refused, store.database.write() as connection:
        connection.execute(sa.insert(tables.environments), {"name": "a", "created_at": naive})
    assert isinstance(refused.value.orig, InvalidInputError)
