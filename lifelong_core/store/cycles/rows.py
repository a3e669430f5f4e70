"""Cycles from and to rows of their table."""

from typing import Any

import sqlalchemy as sa

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.entities.cycles import Cycle, Rejection
from lifelong_core.entities.populations import figures_of

REJECTION_COLUMNS = "rejection_reason", "rejected_at", "rejected_by"


def cycle_of(row: sa.RowMapping) -> Cycle:
    """A cycle from a row of `cycles`; except for rejection and figures, the columns have the names of the fields."""
    values: dict[str, Any] = dict(row)
    values.pop("figures", None)
    reason, at, by = (values.pop(name) for name in REJECTION_COLUMNS)
    if values["proposal"] is not None:
        values["proposal"] = PostProcessingHead.from_json(values["proposal"])
    return Cycle(**values, rejection=None if reason is None else Rejection(reason, at, by))


def cycle_row(cycle: Cycle) -> dict[str, Any]:
    """The row of a new cycle, without a rejection, as `cycle_of` reads it."""
    values = {**vars(cycle), "proposal": None if cycle.proposal is None else cycle.proposal.to_json()}
    values["figures"] = figures_of(cycle.report).to_document()
    del values["rejection"]
    return values
