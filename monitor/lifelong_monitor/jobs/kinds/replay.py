"""The kind `replay`: judges the window of a past cycle again and compares the reports."""

from typing import Any
from uuid import UUID

from lifelong_core.store import Job, Store
from lifelong_core.values.documents import FrozenDocument
from lifelong_monitor.cycle.replay import SUM_TOLERANCE, compare_documents, replay
from lifelong_monitor.cycle.reports import inputs_of, report_of

MOST_DIFFERENCES = 100
"""Largest number of differences that the result lists, the first ones."""


class Payload(FrozenDocument):
    """The cycle to replay."""

    cycle: UUID


def work(store: Store, job: Job) -> dict[str, Any]:
    """Replay the cycle and say whether its report is the same.

    Returns:
        `same`; `tolerance`: 0 where the reports are compared to the last bit, else the one of sums, because the window
        was made of summaries; `differing_fields`: their number; `differences`: the first of them with both values.

    Raises:
        NotFoundError: there is no such cycle, or the log does not hold its window any more.
        InvalidInputError: its report is in a form that this version cannot read.
    """
    cycle = store.cycles.get(Payload.from_document(job.payload).cycle)
    replayed = replay(store, cycle.id).to_document()
    tolerance = 0.0 if inputs_of(cycle).hours is None else SUM_TOLERANCE
    differences = list(compare_documents(report_of(cycle).to_document(), replayed, tolerance=tolerance))
    return {
        "cycle": str(cycle.id),
        "same": not differences,
        "tolerance": tolerance,
        "differing_fields": len(differences),
        "differences": [one.to_document() for one in differences[:MOST_DIFFERENCES]],
    }
