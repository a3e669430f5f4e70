"""The log of a job: the last lines that its work wrote for people."""

from collections.abc import Iterable
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.store.engine.clock import database_time
from lifelong_core.store.engine.columns import read_record
from lifelong_core.store.jobs.fencing import lock_job
from lifelong_core.store.jobs.records import Job, LogLine
from lifelong_core.store.schema import tables
from lifelong_core.values.control_characters import escape_controls

MOST_LINES = 1000
"""Lines that are kept of a job; the oldest are deleted."""
LONGEST_LINE = 500
"""Characters."""

_log = tables.job_log


def append_lines(connection: sa.Connection, job: Job, lines: Iterable[str]) -> None:
    """Append lines to the log of a job; delete its oldest beyond MOST_LINES.

    Raises:
        ConflictError: another claim is the latest, or the job has ended.
    """
    lock_job(connection, job)
    texts = [part for line in lines for part in _parts(line)][-MOST_LINES:]
    newest = sa.select(sa.func.max(_log.c.number)).where(_log.c.job_id == job.id)
    last = connection.execute(newest).scalar_one() or 0
    moment = database_time(connection)
    rows = [
        {"job_id": job.id, "number": number, "written_at": moment, "text": text}
        for number, text in enumerate(texts, start=last + 1)
    ]
    if not rows:
        return
    connection.execute(sa.insert(_log), rows)
    oldest = last + len(rows) - MOST_LINES
    connection.execute(sa.delete(_log).where(_log.c.job_id == job.id, _log.c.number <= oldest))


def read_lines(connection: sa.Connection, job_id: UUID, *, after: int | None, limit: int) -> list[LogLine]:
    """Lines of a job in their order: the first `limit` with a larger number than `after`; None: the last `limit`."""
    query = sa.select(_log).where(_log.c.job_id == job_id).limit(limit)
    if after is None:
        newest = connection.execute(query.order_by(_log.c.number.desc())).all()
        return [read_record(row, LogLine) for row in reversed(newest)]
    following = query.where(_log.c.number > after).order_by(_log.c.number)
    return [read_record(row, LogLine) for row in connection.execute(following)]


def delete_lines(connection: sa.Connection, job_id: UUID) -> None:
    """Delete the log of a job."""
    connection.execute(sa.delete(_log).where(_log.c.job_id == job_id))


def _parts(text: str) -> list[str]:
    """The lines of a text, each truncated, with characters replaced that no database stores or no terminal shows."""
    legal = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
    return [escape_controls(line)[:LONGEST_LINE] for line in legal.splitlines()]
