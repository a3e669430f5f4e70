"""Decisions before a swap that the new head makes otherwise."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, TypeAlias
from uuid import UUID

from pydantic import PlainSerializer

from lifelong_core.entities.entity import Entity, Moment


def _in_milliseconds(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")


Millisecond: TypeAlias = Annotated[
    datetime, PlainSerializer(_in_milliseconds, return_type=str, when_used="json")
]
"""A point in time, as JSON with milliseconds."""


@dataclass(frozen=True)
class ChangeAnswer(Entity):
    """Number of decisions with one change from an old to a new decision."""

    decision: int
    new_decision: int
    count: int
    expected_cost: float
    """Summed, in the units of the task's cost matrix."""


@dataclass(frozen=True, kw_only=True)
class AffectedFiguresAnswer(Entity):
    """Number of decisions of a period that differ under the new head."""

    since: Moment
    until: Moment
    predictions: int
    """Decisions that were compared."""
    affected: int
    share: float
    """Of the predictions, 0 to 1."""
    expected_cost: float
    """Of the affected decisions as they were answered, less that of the new ones, both as the new head expects it;
    summed."""
    mean_cost: float
    """The same for each affected decision."""
    changes: list[ChangeAnswer]
    """Most costly first."""
    groups: int | None
    """From which the affected predictions come; null: none of them has one."""
    quarantined: int
    """Left out because they cannot be judged."""
    other_models: int
    """Of other models in this environment and period; not compared."""
    gone: int | None
    """Counted earlier and deleted since, by retention or erasure; null: not known."""
    counted_at: Moment


@dataclass(frozen=True, kw_only=True)
class AffectedPredictionAnswer(Entity):
    """A prediction whose decision differs under the new head."""

    prediction_id: UUID
    logged_at: Millisecond
    head_version: int
    """Of the head that decided."""
    decision: int
    """As it was answered."""
    new_decision: int
    expected_cost: float
    group: str | None
    """Hash of the group; null: it has none."""
    true_class: int | None
    """Where a label has come; else null."""
    label: str
    new_label: str


@dataclass(frozen=True, kw_only=True)
class AffectedAnswer(Entity):
    """A page of the affected predictions of a cycle, most costly first."""

    cycle: UUID
    model: str
    environment: str
    head_version: int | None
    """That the cycle published; null: none."""
    activated_at: Moment | None
    """When the head came in force; null: it did not."""
    figures: AffectedFiguresAnswer
    decisions: list[str]
    """Names of the decisions, by their numbers."""
    predictions: list[AffectedPredictionAnswer]
    next: str | None
    """Value of `after` for the next page; null: this is the last."""
