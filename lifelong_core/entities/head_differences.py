"""Two heads of a model compared: their parameters, and their decisions about recent predictions."""

from dataclasses import dataclass
from uuid import UUID

from lifelong_core.entities.affected import ChangeAnswer, Millisecond
from lifelong_core.entities.entity import Entity


@dataclass(frozen=True, kw_only=True)
class ParameterChange(Entity):
    """A number that differs between two heads."""

    name: str
    before: float | None
    """null: the head has no such number"""
    after: float | None


@dataclass(frozen=True, kw_only=True)
class ChangedDecision(Entity):
    """A prediction about which two heads decide differently."""

    prediction_id: UUID
    logged_at: Millisecond
    before: str
    """name of the decision of the first head"""
    after: str
    """name of the decision of the second head"""
    expected_cost: float
    """what the second decision saves, as the second head expects it"""


@dataclass(frozen=True, kw_only=True)
class DecisionSample(Entity):
    """The decisions of two heads about the newest predictions of a population."""

    environment: str
    compared: int
    """predictions, both heads applied to their logits"""
    changed: int
    """of these, with another decision"""
    share: float
    """0 to 1; 0 without predictions"""
    since: Millisecond | None
    """time of the oldest compared prediction; null: there is none"""
    names: list[str]
    """of the decisions, by their numbers"""
    changes: list[ChangeAnswer]
    """most costly first"""
    predictions: list[ChangedDecision]
    """newest first, a part of them"""


@dataclass(frozen=True, kw_only=True)
class HeadDifference(Entity):
    """How one head of a model differs from another one."""

    model: str
    before_version: int
    after_version: int | None
    """null: a proposed head, which has no version yet"""
    before_text: str
    """what the first head assumes and how it decides, or that it is damaged"""
    after_text: str
    sentences: list[str]
    """the differences in words; empty: both compute the same"""
    parameters: list[ParameterChange]
    """the numbers that differ"""
    decisions: DecisionSample | None
    """null: no environment is named, the heads have different decisions, or the first one is damaged"""
