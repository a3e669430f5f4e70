"""Column types with the same meaning on both databases."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeVar, cast
from uuid import UUID

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeDecorator

from lifelong_core.values.arrays import Floats, Logits, read_only
from lifelong_core.values.errors import InvalidInputError

_FLOAT32 = np.dtype("<f4")

Record = TypeVar("Record")
Row: TypeAlias = Any
"""A row of a result: its attributes are the columns of the query."""


def read_record(row: Row, record: type[Record], **converted: Any) -> Record:
    """Return a dataclass instance with the values of the row's columns of the same names.

    Args:
        row: the row.
        record: the class.
        converted: values of fields that differ from their column.
    """
    names = [field.name for field in fields(cast("Any", record)) if field.name not in converted]
    return record(**{name: getattr(row, name) for name in names}, **converted)


class Moment(TypeDecorator[datetime]):
    """A point in time, aware and in UTC; on SQLite, UTC text that sorts by time."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:  # noqa: ARG002
        """Refuse a naive time, which depends on the time zone of the machine."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise InvalidInputError(f"expected a time with its zone, got {value!r}.", field="time")
        return value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime | None:  # noqa: ARG002
        """Return an aware time in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class OrderedUuid(TypeDecorator[UUID]):
    """16 bytes in the order of the ids: `uuid` on PostgreSQL, a blob on SQLite."""

    impl = sa.LargeBinary(16)
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        """Return the native type of the database."""
        native = postgresql.UUID(as_uuid=True) if dialect.name == "postgresql" else sa.LargeBinary(16)
        return dialect.type_descriptor(native)

    def process_bind_param(self, value: UUID | None, dialect: sa.Dialect) -> Any:
        """Convert a UUID for the driver."""
        return value if value is None or dialect.name == "postgresql" else value.bytes

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> UUID | None:
        """Convert the driver's value to a UUID."""
        return value if value is None or dialect.name == "postgresql" else UUID(bytes=bytes(value))


def pack_logits(logits: Logits) -> bytes:
    """Encode one row of logits, shape (C,), as little-endian float32: 4 C bytes, exact."""
    return np.ascontiguousarray(logits, dtype=_FLOAT32).tobytes()


def unpack_logits(blob: bytes) -> Logits:
    """Decode one row of logits, shape (C,), read-only."""
    return np.frombuffer(blob, dtype=_FLOAT32).astype(np.float32, copy=False)


def unpack_logit_rows(blobs: list[bytes], *, classes: int) -> Logits:
    """Decode rows of logits to one array, shape (N, classes).

    Raises:
        InvalidInputError: a row has another length, so it is not from this model.
    """
    for blob in blobs:
        if len(blob) != 4 * classes:
            raise InvalidInputError(
                f"a logged prediction has {len(blob) / 4:g} logits, expected {classes}.", field="logits"
            )
    return (
        np.frombuffer(b"".join(blobs), dtype=_FLOAT32)
        .reshape(len(blobs), classes)
        .astype(np.float32, copy=False)
    )


def unpack_floats(values: Any) -> Floats:
    """Convert nested lists of a JSON column to a read-only array."""
    return read_only(np.asarray(values, dtype=np.float64))
