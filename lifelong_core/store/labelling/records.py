"""Labelling plans and their samples as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True)
class NewPlan:
    """A labelling plan as it is made, without its samples."""

    id: UUID
    """that of the job that makes it"""
    model_id: int
    environment: str
    head_version: int
    """of the head whose decisions are judged"""
    since: datetime
    """time of the oldest prediction of the window"""
    until: datetime
    """time of the newest one"""
    window_limit: int
    """largest number of predictions that were read, newest first; unusable ones count"""
    log_position: int
    """predictions committed at or after this commit order are not in the window"""
    window_samples: int
    """N, usable predictions in the window"""
    expected_widths: Mapping[str, Any]
    """expected widths of the interval on expected cost; see `documents.WIDTHS`"""


@dataclass(frozen=True)
class LabellingPlan(NewPlan):
    """A stored labelling plan."""

    size: int
    """number of predictions that were chosen"""
    labelled_before: int
    """number of predictions of the window that had a label before"""
    created_at: datetime
    created_by: str
    estimate: Mapping[str, Any] | None = None
    """newest estimate with the labels that have arrived; None: not computed yet"""
    estimated_at: datetime | None = None


@dataclass(frozen=True)
class LabellingSample:
    """A prediction of a plan."""

    prediction_id: UUID
    position: int | None
    """place in the random order in which the chosen ones are labelled, from 0; None: it had a label before"""
    propensity: float
    """probability in (0, 1] with which it was chosen; 1 where it had a label before"""
    decision: int
    """of the plan's head"""
    expected_cost: float
    """of that decision, under the estimated probabilities of the classes"""


@dataclass(frozen=True)
class PlannedPrediction(LabellingSample):
    """A prediction of a plan, with what is known of it now."""

    group_hash: bytes | None
    label: int | None
    """None: it has no label yet"""
    labelled_at: datetime | None
    """when its label was recorded or corrected"""


@dataclass(frozen=True)
class PlanProgress:
    """How many of the chosen predictions have a label."""

    chosen: int
    """still in the log: retention and erasure delete some"""
    labelled: int
