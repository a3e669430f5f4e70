"""Logged predictions as people look at them, and the way from logits to a decision."""

from dataclasses import dataclass
from uuid import UUID

from lifelong_core.entities.affected import Millisecond
from lifelong_core.entities.cycles import Outcome
from lifelong_core.entities.entity import Entity, Moment
from lifelong_core.entities.labelling import LabelRevisionAnswer


@dataclass(frozen=True, kw_only=True)
class FoundPredictionAnswer(Entity):
    """A logged prediction."""

    prediction_id: UUID
    logged_at: Millisecond
    model: str
    environment: str
    head_version: int
    """of the head that decided"""
    decision: int
    label: str
    """name of the decision"""
    true_class: int | None
    """index of the true class; null: not labelled"""
    true_label: str | None
    """its name"""


@dataclass(frozen=True, kw_only=True)
class PredictionList(Entity):
    """A page of logged predictions, newest first."""

    predictions: list[FoundPredictionAnswer]
    next: UUID | None
    """value of `before` for the next page, which may hold further predictions even if this one is empty; null: this is
    the last page"""


@dataclass(frozen=True, kw_only=True)
class DecisionPath(Entity):
    """How a head gets from the logits of a prediction to its decision."""

    head_version: int
    text: str
    """what the head assumes and how it decides"""
    temperature: list[float]
    """of each class"""
    bias: list[float]
    scaled: list[float]
    """of each class: logit, less the mean of all, divided by the temperature, plus the bias"""
    probabilities: list[float]
    """softmax of the scaled logits, 0 to 1"""
    expected_costs: list[float]
    """of each decision: sum of cost times probability over the classes"""
    decision: int
    """by the decision rule of the head"""
    label: str
    """name of the decision"""


@dataclass(frozen=True, kw_only=True)
class JudgingCycle(Entity):
    """A cycle whose window held a prediction."""

    id: UUID
    finished_at: Moment
    outcome: Outcome
    published_version: int | None
    """the head that it published; null: none"""


@dataclass(frozen=True, kw_only=True)
class PredictionDetails(FoundPredictionAnswer):
    """A logged prediction with the way to its decision."""

    class_names: list[str]
    decision_names: list[str]
    logits: list[float]
    """as logged (float32)"""
    decided: DecisionPath | None
    """the way under the head that decided; null: that head is damaged, or the logits do not fit it"""
    active: DecisionPath | None
    """the way under the head in force there now; null: as for `decided`, or no head is in force"""
    group: str | None
    """hash of the group; null: it has none, or the scope of the token is less than `operate`"""
    revisions: list[LabelRevisionAnswer]
    """every change of the label, oldest first"""
    cycles: list[JudgingCycle]
    """the first cycles whose window held it, oldest first, at most 20"""
