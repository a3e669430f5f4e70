"""Entries that the log does not take: they are kept with the reason, and nothing that comes behind them waits."""

import struct
from dataclasses import dataclass

from lifelong_core.store.log.records import LogEntry
from lifelong_core.store.spool.dead_letter_file import DeadLetterFile
from lifelong_core.store.spool.encoding import decode_entries, encode_entries
from lifelong_core.store.spool.framing import ENTRIES, REFUSED, Record

_HEAD = struct.Struct("<BI")
"""Kind of the record that was refused; bytes of the reason."""


@dataclass(frozen=True)
class DeadLetter:
    """What the log did not take.

    Attributes:
        reason: why not.
        entries: what was refused; none if a newer version of the product wrote it, in a way that is unknown here.
    """

    reason: str
    entries: tuple[LogEntry, ...]


def dead_letter_of(entry: LogEntry, reason: str) -> tuple[Record, str]:
    """One entry as the record that it would be if it had been appended alone, and the reason."""
    body, keys, predictions = encode_entries([entry])
    return Record(ENTRIES, keys, predictions, body, offset=0), reason


def keep_dead_letter(file: DeadLetterFile, record: Record, reason: str) -> None:
    """Put a record aside.

    Raises:
        OSError: the file cannot be written.
    """
    text = reason.encode()
    body = _HEAD.pack(record.kind, len(text)) + text + record.body
    file.add(body, kind=REFUSED, keys=record.keys, predictions=record.predictions)


def read_dead_letter(record: Record) -> DeadLetter:
    """What `keep_dead_letter` has put aside."""
    kind, length = _HEAD.unpack_from(record.body)
    reason, body = record.body[_HEAD.size : _HEAD.size + length], record.body[_HEAD.size + length :]
    entries = decode_entries(body, record.keys) if kind == ENTRIES else []
    return DeadLetter(reason.decode(), tuple(entries))
