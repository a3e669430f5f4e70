"""The hash chain of the audit log: every entry holds the digest of the previous entry, and its own.

The digest of an entry is the SHA-256, in hexadecimal, of the ASCII text of a JSON object: the output of Python's
`json.dumps` with sorted keys and no blanks, of `id`, `at` (UTC, ISO 8601 with microseconds), `actor`, `action`,
`subject`, `source`, `details` and `previous_digest`. To edit, move, insert or remove an entry undetected, an attacker
must rewrite every later entry. An anchor, the number and digest of one entry kept outside the database, reveals such a
rewrite and a truncated end.
"""

import hashlib
import json
import logging
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from lifelong_core.entities.access import AuditEntry
from lifelong_core.store.files import write_whole
from lifelong_core.values.errors import ConfigurationError, ConflictError, InvalidInputError, UnavailableError

if TYPE_CHECKING:
    from lifelong_core.store.access.audit_log import AuditLog

GENESIS = "0" * 64
"""The digest before the first entry."""
_MOST_FAULTS = 100
"""Largest number of reported faults: in a rewritten log, every entry is a fault."""

DAY_SECONDS = 86_400.0
"""The anchor is logged again after this time, so that a log of some weeks always holds one."""


@dataclass(frozen=True)
class Anchor:
    """Number and digest of an entry of the audit log; as text `SEQUENCE:DIGEST`."""

    sequence: int
    digest: str

    def __str__(self) -> str:
        """Return the text form that `parse` reads."""
        return f"{self.sequence}:{self.digest}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text form of an anchor.

        Raises:
            InvalidInputError: the text is no anchor.
        """
        match = re.fullmatch(r"([1-9][0-9]{0,9}):([0-9a-f]{64})", text.strip())
        if match is None:
            raise InvalidInputError(
                f"{text[:100]!r} is no anchor of the audit log.",
                field="anchor",
                hint="Expected SEQUENCE:DIGEST, a number and 64 hexadecimal digits, as the log of the service has it.",
            )
        return cls(int(match[1]), match[2])


@dataclass(frozen=True)
class ChainFault:
    """A break in the chain of the audit log.

    Attributes:
        kind: missing: entries were removed; changed: an entry was changed or forged; moved: the number of an entry
            was changed; detached: an entry does not continue the previous one; cut: entries were removed at the end;
            rewritten: an entry differs from the one that an anchor names.
        first: number of the first affected entry.
        last: number of the last affected entry.
        text: description in one sentence.
    """

    kind: Literal["missing", "changed", "moved", "detached", "cut", "rewritten"]
    first: int
    last: int
    text: str


def digest_of(entry: AuditEntry) -> str:
    """Compute the digest of an entry from its content."""
    values = {
        "id": entry.id,
        "at": entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "actor": entry.actor,
        "action": entry.action,
        "subject": entry.subject,
        "source": entry.source,
        "details": entry.details,
        "previous_digest": entry.previous_digest,
    }
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def chain_entries(entry: AuditEntry, previous_digest: str) -> AuditEntry:
    """Return the entry with its digests, as the successor of the entry with `previous_digest`."""
    # The form that the database returns: strings as keys, lists for tuples.
    details = json.loads(json.dumps(entry.details))
    linked = replace(entry, details=details, previous_digest=previous_digest)
    return replace(linked, digest=digest_of(linked))


def find_faults(entries: Iterable[AuditEntry], *, before: Anchor | None = None) -> list[ChainFault]:
    """Find breaks of the chain, at most the first hundred.

    Args:
        entries: of the audit log, in order; read lazily.
        before: trusted anchor of the entry before the first one; None: they begin with entry 1.
    """
    faults: list[ChainFault] = []
    changed: list[AuditEntry] = []
    known = before or Anchor(0, GENESIS)
    is_sound = True  # whether the previous entry's digest can be compared
    for entry in entries:
        has_gap = entry.id > known.sequence + 1
        if has_gap:
            faults.append(_missing(known.sequence + 1, entry.id - 1))
        is_changed = digest_of(entry) != entry.digest
        if is_changed:
            changed.append(entry)
        elif is_sound and not has_gap and entry.previous_digest != known.digest:
            faults.append(_detached(entry, known))
        is_sound = not is_changed
        known = Anchor(entry.id, entry.digest)
        if len(faults) + len(changed) >= _MOST_FAULTS:
            break
    faults += [_changed(entry, changed) for entry in changed]
    return sorted(faults, key=lambda fault: fault.first)


def compare_anchor(anchor: Anchor, newest: int, digest: str | None) -> ChainFault | None:
    """Compare an anchor with the audit log; None: the log still holds it.

    Args:
        anchor: of an earlier state.
        newest: number of the newest entry.
        digest: of the entry with the anchor's number; None: there is none.
    """
    number = anchor.sequence
    if number > newest:
        text = f"{_named(newest + 1, number)} missing at the end: the log once reached the anchor {_shortened(anchor)}."
        return ChainFault("cut", newest + 1, number, text)
    if digest != anchor.digest:
        text = f"entry {number} is not that of the anchor {_shortened(anchor)}: it or an earlier one was replaced."
        return ChainFault("rewritten", number, number, text)
    return None


def _missing(first: int, last: int) -> ChainFault:
    return ChainFault("missing", first, last, f"{_named(first, last)} missing.")


def _detached(entry: AuditEntry, before: Anchor) -> ChainFault:
    number = entry.id
    text = f"entry {number} does not continue entry {before.sequence}: one of them was replaced or put in."
    if before.sequence == 0:
        text = f"entry {number} does not begin the log: earlier ones were removed, or it was replaced."
    return ChainFault("detached", number, number, text)


def _changed(entry: AuditEntry, changed: list[AuditEntry]) -> ChainFault:
    for other in changed:
        if digest_of(replace(entry, id=other.id)) == entry.digest:
            text = f"entry {entry.id} was written as entry {other.id}: the order was changed."
            return ChainFault("moved", entry.id, entry.id, text)
    text = f"entry {entry.id} was changed, or never written by the product: its digest is another one."
    return ChainFault("changed", entry.id, entry.id, text)


def _named(first: int, last: int) -> str:
    return f"entry {first} is" if first == last else f"entries {first} to {last} are"


def _shortened(anchor: Anchor) -> str:
    return f"{anchor.sequence}:{anchor.digest[:12]}..."


logger = logging.getLogger(__name__)


class AnchorFile:
    """File of the newest anchor that processes of this host have read.

    Args:
        path: of the file; it may be missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Anchor | None:
        """Read the anchor; None: there is no file yet.

        Raises:
            ConfigurationError: the file cannot be read.
            InvalidInputError: it holds no anchor.
        """
        try:
            return Anchor.parse(self.path.read_text(encoding="ascii", errors="replace"))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigurationError(
                f"the file {self.path} cannot be read: {error.strerror}.",
                hint="It belongs to the user that runs service and monitor.",
            ) from error

    def advance(self, audit: "AuditLog") -> None:
        """Write the anchor of the newest entry to the file and to the process log, unless it is there.

        An anchor that the audit log does not hold stays in the file as evidence.

        Raises:
            ConflictError: the audit log does not hold the anchor.
            ConfigurationError: the file cannot be read.
            InvalidInputError: the file holds no anchor.
            UnavailableError: the file cannot be written, or the database does not answer.
        """
        known, newest = self.read(), audit.newest()
        if known is not None and (fault := audit.fault_of(known)) is not None:
            raise ConflictError(
                f"the audit log is not what it was: {fault.text}",
                field=str(self.path),
                hint="See `lifelong audit verify`. After an older backup was restored, remove this file.",
            )
        if newest is None or (known == newest and not self._is_old()):
            return
        try:
            write_whole(self.path, f"{newest}\n".encode())
        except OSError as error:
            raise UnavailableError(f"the file {self.path} cannot be written: {error.strerror}.") from error
        logger.info("the newest entry of the audit log", extra={"details": {"anchor": str(newest)}})

    def _is_old(self) -> bool:
        try:
            return time.time() - self.path.stat().st_mtime > DAY_SECONDS
        except OSError:
            return True
