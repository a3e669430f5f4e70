"""Dead letters: entries that the log refuses are stored with the reason and do not block later entries."""

import struct
from dataclasses import dataclass

from lifelong_core.store.log.records import LogEntry
from lifelong_core.store.spool.dead_letter_file import DeadLetterFile
from lifelong_core.store.spool.encoding import decode_entries, encode_entries
from lifelong_core.store.spool.framing import ENTRIES, REFUSED, Record

_HEAD = struct.Struct("<BI")
"""Kind of the refused record; length of the reason in bytes."""


@dataclass(frozen=True)
class DeadLetter:
    """A record that the log refused.

    Attributes:
        reason: message of the refusal.
        entries: the refused entries; empty if a newer version of the product wrote them in an unknown encoding.
    """

    reason: str
    entries: tuple[LogEntry, ...]


def dead_letter_of(entry: LogEntry, reason: str) -> tuple[Record, str]:
    """Return the entry encoded as a record of its own, and the reason."""
    body, keys, predictions = encode_entries([entry])
    return Record(ENTRIES, keys, predictions, body, offset=0), reason


def keep_dead_letter(file: DeadLetterFile, record: Record, reason: str) -> None:
    """Append a refused record to the file.

    Raises:
        OSError: the file cannot be written.
    """
    text = reason.encode()
    body = _HEAD.pack(record.kind, len(text)) + text + record.body
    file.add(body, kind=REFUSED, keys=record.keys, predictions=record.predictions)


def read_dead_letter(record: Record) -> DeadLetter:
    """Decode a record written by `keep_dead_letter`."""
    kind, length = _HEAD.unpack_from(record.body)
    reason, body = record.body[_HEAD.size : _HEAD.size + length], record.body[_HEAD.size + length :]
    entries = decode_entries(body, record.keys) if kind == ENTRIES else []
    return DeadLetter(reason.decode(), tuple(entries))
