"""How full the spool is, for probes and metrics."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class SpoolState:
    """What waits.

    Attributes:
        bytes: of all files that count.
        maximum_bytes: the bound of that.
        predictions: that wait.
        oldest: when the first of them was made; None where nothing waits.
        damaged_records: pieces that were found damaged (torn tails included) and put aside, ever.
        refused_records: entries that the log did not take and that were put aside, ever.
    """

    bytes: int
    maximum_bytes: int
    predictions: int
    oldest: datetime | None
    damaged_records: int
    refused_records: int
