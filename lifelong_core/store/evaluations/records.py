"""Evaluations of models as values."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True)
class Evaluation:
    """How good a model was on one labelled set, by the metrics that were recommended for its task."""

    id: UUID
    """larger ids are newer"""
    model_id: int
    job_id: UUID | None
    """the job that made it, which may be deleted by now"""
    recommendation_version: int | None
    """of the task's recommendations; None: it had none"""
    head: str
    """digest of the head that decided"""
    accepted: bool | None
    """whether all acceptance thresholds are reached; None: undecided, or there are none"""
    samples: int
    result: str
    """digest of the artifact: a `ValidationResult` as JSON"""
    report: str | None
    """digest of its HTML page"""
    labelled_set: str
    """digest of the artifact: `LabelledSet.to_bytes`"""
    created_at: datetime
    created_by: str
