"""The history of the label of a prediction."""

from dataclasses import dataclass
from uuid import UUID

from lifelong_core.entities.entity import Entity, Moment


@dataclass(frozen=True, kw_only=True)
class LabelRevisionAnswer(Entity):
    """One change of a label: from what to what, by whom, when."""

    revision: int
    """counts up from 1"""
    previous_label: int | None
    """class index; null: there was no label"""
    previous_name: str | None
    """name of that class"""
    label: int
    name: str
    propensity: float | None
    """of the label since this revision; null: unknown"""
    source: str
    actor: str | None
    """name of the token; null: unknown"""
    recorded_at: Moment


@dataclass(frozen=True, kw_only=True)
class LabelHistory(Entity):
    """A prediction and every change of its label, oldest first; an empty list: it has no label."""

    prediction_id: UUID
    model: str
    environment: str
    revisions: list[LabelRevisionAnswer]
