"""State of the spool, for probes and metrics."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class SpoolState:
    """Size and content of the spool.

    Attributes:
        bytes: size of the segments, the damaged bytes and the refused entries.
        maximum_bytes: upper bound of `bytes`.
        predictions: number of undelivered predictions.
        oldest: time of the oldest of them; None: there are none.
        damaged_records: number of damaged pieces ever set aside, torn tails included.
        refused_records: number of entries that the log ever refused.
    """

    bytes: int
    maximum_bytes: int
    predictions: int
    oldest: datetime | None
    damaged_records: int
    refused_records: int
