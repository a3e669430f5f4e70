"""The rows of all tables, read with SQL alone."""

import json
import os
import re
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests.behaviour.recording import Recording

LEFT_OUT = {"leases", "workers", "monitors", "console_sessions", "labelling_samples"}
"""Tables whose rows depend on when a process did something, or are drawn at random."""
RANDOM = {"secret_hash", "previous_secret_hash", "prediction_ids", "audit.digest", "audit.previous_digest"}
"""Columns of which only the length is recorded."""
ROWS = 150
"""Of a longer table the first and the last ones."""


def documents(recording: Recording) -> None:
    """Record the rows of each table in the order of its primary key."""
    file = Path(os.environ["LIFELONG_DATA_DIRECTORY"]) / "lifelong.db"
    engine = sa.create_engine(os.environ.get("LIFELONG_DATABASE_URL") or f"sqlite:///{file}")
    metadata = sa.MetaData()
    metadata.reflect(engine)
    with engine.connect() as connection:
        for table in metadata.sorted_tables:
            if table.name in LEFT_OUT or re.fullmatch(r"predictions_\w+", table.name):  # a partition
                continue
            order = list(table.primary_key.columns) or list(table.columns)
            rows = [dict(row) for row in connection.execute(table.select().order_by(*order)).mappings()]
            kept = rows if len(rows) <= 2 * ROWS else rows[:ROWS] + rows[-ROWS:]
            text = "\n".join(
                "".join(f"{name}: {shown(table.name, name, value)}\n" for name, value in sorted(row.items()))
                for row in kept
            )
            recording.add(f"stored/{table.name}", f"{len(rows)} rows", text)
    engine.dispose()


def shown(table: str, name: str, value: Any) -> str:
    """A value of a column as text; bytes as their number and the first ones."""
    if value is not None and RANDOM & {name, f"{table}.{name}"}:
        return f"length {len(value)}"
    if isinstance(value, bytes | memoryview):
        return f"{len(value)} bytes {bytes(value)[:64].hex()}"
    if isinstance(value, str) and value.startswith(("{", "[")):
        value = json.loads(value)
    return json.dumps(value, indent=1, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
