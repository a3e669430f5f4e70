"""Time-ordered prediction ids (UUIDv7, RFC 9562), and the time in an id."""

import hashlib
import logging
import secrets
import struct
import threading
import time
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from uuid import UUID

_RANDOM_BITS = 74
_LAST_MILLISECOND = 253_402_300_799_999
"""Last millisecond of the year 9999, since 1970."""
_DAY_MILLISECONDS = 86_400_000
_STEP_BACK_MILLISECONDS = 60_000
"""A clock that goes back by more was set; ids then follow it."""
_VERSION_AND_VARIANT = (0x7 << 76) | (0b10 << 62)

log = logging.getLogger(__name__)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Origin of the times in ids."""


class PredictionIds:
    """Generates ids that increase strictly within one process, across threads and if the clock steps back a little.

    When the clock is set back by more than a minute, ids follow it, with a line in the log: else all predictions until
    it has caught up would fall into one instant.

    Within a millisecond the 74 random bits count up by random steps (RFC 9562 section 6.2, method 2), so the time
    in an id does not run ahead of the clock under load.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._milliseconds = 0
        self._random = 0

    def next(self, count: int) -> list[UUID]:
        """Return the next ids, in order."""
        # One call for the random bits of all steps: it costs as much as the rest of an id.
        steps = struct.unpack(f"{count}I", secrets.token_bytes(4 * count))
        with self._lock:
            now = time.time_ns() // 1_000_000
            back = self._milliseconds - now
            if back > _STEP_BACK_MILLISECONDS:
                log.warning(
                    "the clock was set back by %.0f s: new predictions have the new time, older ones of this span"
                    " stay in the future",
                    back / 1000,
                )
            if back < 0 or back > _STEP_BACK_MILLISECONDS:
                self._milliseconds, self._random = now, secrets.randbits(_RANDOM_BITS)
            ids: list[UUID] = []
            for step in steps:
                self._random += 1 + step
                if self._random >> _RANDOM_BITS:
                    self._milliseconds, self._random = self._milliseconds + 1, secrets.randbits(_RANDOM_BITS)
                ids.append(_assemble(self._milliseconds, self._random))
            return ids


def _assemble(milliseconds: int, random: int) -> UUID:
    high, low = random >> 62, random & ((1 << 62) - 1)
    return UUID(int=(milliseconds << 80) | _VERSION_AND_VARIANT | (high << 64) | low)


_ids = PredictionIds()


def new_prediction_id() -> UUID:
    """Return a new UUIDv7; ids sort by time, within this process strictly by call while the clock is not set back."""
    return _ids.next(1)[0]


def new_prediction_ids(count: int) -> list[UUID]:
    """Return new ids, as `new_prediction_id` does, in a third of the time for many."""
    return _ids.next(count)


def is_prediction_id(value: UUID) -> bool:
    """Whether this is a possible prediction id: a UUIDv7 with a time up to the year 9999."""
    return value.version == 7 and value.int >> 80 <= _LAST_MILLISECOND


def logged_at(prediction_id: UUID) -> datetime:
    """Return the time (UTC, to the millisecond) at which an id was made."""
    return datetime.fromtimestamp((prediction_id.int >> 80) / 1000, tz=UTC)


def logged_on(prediction_id: UUID) -> date:
    """Return the UTC day on which an id was made; with the id it is the key of the prediction log."""
    return logged_at(prediction_id).date()


def day_of(prediction_id: UUID) -> str:
    """Return `logged_on` in ISO format, as SQLite keeps it."""
    return _iso_day((prediction_id.int >> 80) // _DAY_MILLISECONDS)


@lru_cache(maxsize=16)
def _iso_day(days: int) -> str:
    return (EPOCH + timedelta(days=days)).date().isoformat()


def first_id_at(moment: datetime) -> UUID:
    """Return the smallest id of `moment` (aware, to the millisecond); ids made at or after it are not smaller."""
    return first_id_of(min(max(0, int(moment.timestamp() * 1000)), _LAST_MILLISECOND))


def first_id_of(milliseconds: int) -> UUID:
    """Return the smallest id of a time in milliseconds since 1970."""
    return _assemble(milliseconds, 0)


def shadow_prediction_id(served: UUID) -> UUID:
    """Return the id of the prediction that a shadow makes of the same image, always the same for a served prediction.

    It holds the same time, and its random bits cannot be guessed without the served id.
    """
    digest = hashlib.blake2b(served.bytes, digest_size=16, person=b"shadow").digest()
    return _assemble(served.int >> 80, int.from_bytes(digest, "big") & ((1 << _RANDOM_BITS) - 1))
