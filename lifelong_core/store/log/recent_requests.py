"""Requests of the last hours on the local disk: the worker that answers a request, and its answer for an outage."""

import hashlib
import logging
import sqlite3
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from lifelong_core.store.engine.database import database_origin
from lifelong_core.store.files import file_identity, make_folder, make_private_file
from lifelong_core.store.log.records import LogEntry, RequestKey, StoredRequest
from lifelong_core.store.spool.encoding import decode_entries, encode_entries
from lifelong_core.values.errors import LifelongError

Result = TypeVar("Result")

_SCHEMA_VERSION = 2
_BUSY_SECONDS = 0.2
"""Longest wait of one process for a write of another, which takes about 0.1 ms."""
_TABLE = (
    "CREATE TABLE requests (key BLOB PRIMARY KEY, claimed_at INTEGER NOT NULL, is_logged INTEGER NOT NULL,"
    " entry BLOB NOT NULL)"
)
_CLAIM = (
    "INSERT INTO requests VALUES (?, ?, 0, ?) ON CONFLICT (key) DO UPDATE SET claimed_at = excluded.claimed_at,"
    " is_logged = 0, entry = excluded.entry WHERE claimed_at < iif(is_logged, ?, ?)"
)
_CLAIMED = "SELECT entry, is_logged FROM requests WHERE key = ?"
_REPLACE = "INSERT OR REPLACE INTO requests VALUES (?, ?, 1, ?)"
_CONFIRM = "UPDATE requests SET is_logged = 1 WHERE key = ?"
_WITHDRAW = "DELETE FROM requests WHERE key = ?"
_FIND = "SELECT entry, is_logged FROM requests WHERE key = ? AND claimed_at >= ?"
# Row ids increase with time. The limit is in the inner query, so that the whole table is not read.
_FORGET = (
    "DELETE FROM requests WHERE rowid IN (SELECT rowid FROM"
    " (SELECT rowid, claimed_at FROM requests ORDER BY rowid LIMIT ?) WHERE claimed_at < ?)"
)
_CALLS_BETWEEN_PRUNING = 16
_CLAIM_SECONDS = 600
"""A claim that is not confirmed is void after this time: its worker has died, and others log its answer until then."""

_MOST_CONFIRMED = 10_000
"""Largest number of confirmations that wait for the next claim; more wait only while the file cannot be written."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Claim:
    """The claim of another entry to a request.

    Attributes:
        first: the request with the predictions of that entry.
        is_logged: whether they are in the log or in the spool; False: this is not known.
    """

    first: StoredRequest
    is_logged: bool


class RecentRequests:
    """A small SQLite file shared by the workers of one machine; thread-safe.

    A worker claims a request before it logs its answer, so that no other worker logs another answer: the outcome of a
    commit can be unknown to the worker that made it. The file holds hashed keys and the data to repeat the answers,
    without groups and images. It is best effort: its errors are in `problem` and in the log of the process, and are
    never raised.

    Attributes:
        problem: error of the latest use of the file; None: it succeeded.

    Args:
        path: of the file; its folder is created.
        database_url: of the database of the log; requests of other databases are ignored.
        keep_seconds: time for which a request is kept.
        maximum_bytes: size above which the oldest requests are deleted.
        clock: returns seconds since 1970.
    """

    def __init__(
        self,
        path: Path,
        *,
        database_url: str,
        keep_seconds: float,
        maximum_bytes: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._origin = bytes.fromhex(database_origin(database_url))
        self._keep_seconds = keep_seconds
        self._maximum_bytes = maximum_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        """of the file that was opened last"""
        self._added = 0
        self._calls = 0
        self._confirmed: deque[tuple[bytes]] = deque(maxlen=_MOST_CONFIRMED)
        self.problem: str | None = None

    def claim(self, entries: Sequence[LogEntry]) -> dict[RequestKey, Claim]:
        """Claim the requests of these entries, before they are logged; entries without a key are left out.

        Returns:
            The claims of other entries, which came first.
        """
        keyed = {entry.request: entry for entry in reversed(entries) if entry.request is not None}
        if not keyed:
            return {}
        now = int(self._clock())
        return self._try(lambda connection: self._claim(connection, keyed, now)) or {}

    def confirm(self, keys: Collection[RequestKey]) -> None:
        """Note that claimed requests are in the log or in the spool; other processes see it after the next claim."""
        with self._lock:
            self._confirmed.extend((self._hash(key),) for key in keys)

    def replace(self, entries: Sequence[LogEntry]) -> None:
        """Store entries that were logged although others had claimed their requests: these have been erased."""
        now = int(self._clock())
        rows = [
            (self._hash(entry.request), now, _encoded(entry))
            for entry in entries
            if entry.request is not None
        ]
        if rows:
            self._try(lambda connection: connection.executemany(_REPLACE, rows))

    def withdraw(self, keys: Collection[RequestKey]) -> None:
        """Forget claimed requests that were not logged."""
        if keys:
            self._try(
                lambda connection: connection.executemany(_WITHDRAW, [(self._hash(key),) for key in keys])
            )

    def find(self, keys: Collection[RequestKey]) -> dict[RequestKey, StoredRequest]:
        """Return the requests with these keys whose answers this machine has logged or spooled."""
        return self._try(lambda connection: self._select(connection, keys)) or {}

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        if self._confirmed:
            self._try(self._write_confirmed)
        with self._lock:
            self._disconnect()

    def _claim(
        self, connection: sqlite3.Connection, entries: Mapping[RequestKey, LogEntry], now: int
    ) -> dict[RequestKey, Claim]:
        hashed = {key: self._hash(key) for key in entries}
        since = now - self._keep_seconds, now - min(_CLAIM_SECONDS, self._keep_seconds)
        rows = [(hashed[key], now, _encoded(entry), *since) for key, entry in entries.items()]
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany(_CONFIRM, self._confirmed)
            claimed = connection.executemany(_CLAIM, rows).rowcount
            self._added += claimed
            self._calls += 1
            if self._calls >= _CALLS_BETWEEN_PRUNING:
                self._prune(connection, now)
            claims: dict[RequestKey, Claim] = {}
            if claimed < len(rows):
                claims = {key: _claim_of(connection, key, hashed[key]) for key in entries}
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        self._confirmed.clear()
        return {key: claim for key, claim in claims.items() if not _is_of(claim.first, entries[key])}

    def _write_confirmed(self, connection: sqlite3.Connection) -> None:
        connection.executemany(_CONFIRM, self._confirmed)
        self._confirmed.clear()

    def _prune(self, connection: sqlite3.Connection, now: int) -> None:
        """Delete at most twice as many rows as were added: each call is short, and the size of the file is bounded."""
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        is_full = (pages - free) * size > self._maximum_bytes
        before = now + 1 if is_full else now - self._keep_seconds
        connection.execute(_FORGET, (2 * self._added, before))
        self._added = self._calls = 0

    def _select(
        self, connection: sqlite3.Connection, keys: Collection[RequestKey]
    ) -> dict[RequestKey, StoredRequest]:
        requests: dict[RequestKey, StoredRequest] = {}
        since = self._clock() - self._keep_seconds
        confirmed = set(self._confirmed)
        for key in keys:
            hashed = (self._hash(key),)
            row = connection.execute(_FIND, (*hashed, since)).fetchone()
            if row is not None and (row[1] or hashed in confirmed):
                requests[key] = _decoded(key, row[0])
        return requests

    def _hash(self, key: RequestKey) -> bytes:
        text = f"{key.model_id}\0{key.environment}\0{key.request_id}".encode(errors="surrogatepass")
        return hashlib.blake2b(text, key=self._origin, digest_size=16).digest()

    def _try(self, work: Callable[[sqlite3.Connection], Result]) -> Result | None:
        with self._lock:
            try:
                result = work(self._connected())
            except (sqlite3.Error, OSError, LifelongError) as error:
                self._fail(error)
                return None
        self.problem = None
        return result

    def _connected(self) -> sqlite3.Connection:
        if self._connection is not None and file_identity(self._path) != self._identity:
            self._disconnect()  # another process has begun a new file
        if self._connection is None:
            make_folder(self._path.parent)
            make_private_file(self._path)
            self._identity = file_identity(self._path)
            connection = sqlite3.connect(
                self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                # The file survives the end of any process. After damage by a power failure, a new one replaces it.
                connection.execute("PRAGMA synchronous = OFF")
                if _version(connection) != _SCHEMA_VERSION:
                    _create(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _fail(self, error: Exception) -> None:
        problem = f"the requests answered lately cannot be kept in {self._path}: {error}."
        if self.problem is None:
            logger.warning("repeated requests may not be recognised", extra={"details": {"reason": problem}})
        self.problem = problem
        self._disconnect()
        is_damaged = isinstance(error, sqlite3.DatabaseError) and not isinstance(
            error, sqlite3.OperationalError
        )
        if is_damaged and file_identity(self._path) == self._identity:
            # The file is damaged or no database: a new one replaces it. Another process may have begun it already.
            for suffix in ("", "-wal", "-shm"):
                with suppress(OSError):
                    Path(f"{self._path}{suffix}").unlink()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error), closing(connection):
                pass


def _version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    if _version(connection) != _SCHEMA_VERSION:  # else another process created it first
        connection.execute("DROP TABLE IF EXISTS requests")
        connection.execute(_TABLE)
        connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
    connection.execute("COMMIT")


def _claim_of(connection: sqlite3.Connection, key: RequestKey, hashed: bytes) -> Claim:
    content, is_logged = connection.execute(_CLAIMED, (hashed,)).fetchone()
    return Claim(_decoded(key, content), bool(is_logged))


def _decoded(key: RequestKey, content: bytes) -> StoredRequest:
    try:
        [entry] = decode_entries(content, 0)
    except (struct.error, ValueError) as error:
        raise sqlite3.DatabaseError("a request cannot be read") from error
    return StoredRequest(key, entry.body_digest, entry.predictions)


def _is_of(stored: StoredRequest, entry: LogEntry) -> bool:
    """Whether this very entry was stored: ids of predictions are unique."""
    return [first.id for first in stored.predictions] == [own.id for own in entry.predictions]


def _encoded(entry: LogEntry) -> bytes:
    """Encode the entry without its key, which is stored as a hash, and without groups."""
    predictions = tuple(
        row if row.group_hash is None else replace(row, group_hash=None) for row in entry.predictions
    )
    return encode_entries([LogEntry(predictions, None, entry.body_digest)]).body
