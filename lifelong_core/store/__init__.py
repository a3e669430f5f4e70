"""State of the product: SQL database and artifacts behind repositories that give and take frozen values.

Nothing outside this package speaks SQL or knows the name of a table.
"""

from lifelong_core.store.design_records import AttachedRecommendation, InterviewRecord, Job, JobState
from lifelong_core.store.identifiers import logged_at, logged_on, new_prediction_id
from lifelong_core.store.privacy import group_hash, load_group_key
from lifelong_core.store.records import (
    DEFAULT_ENVIRONMENT,
    NAME_PATTERN,
    Activation,
    AuditEntry,
    CalibrationSet,
    Cycle,
    HeadPin,
    HeadRecord,
    LabelledPredictions,
    LabelOutcome,
    LogEntry,
    LogPosition,
    Model,
    ModelKind,
    NewLabel,
    Outcome,
    Prediction,
    Registry,
    RequestKey,
    Scope,
    ServingWorker,
    StoredRequest,
    Task,
    Token,
    Window,
    check_name,
)
from lifelong_core.store.refitting import attach_and_refit
from lifelong_core.store.registration import register_calibration
from lifelong_core.store.store import Store

__all__ = [
    "DEFAULT_ENVIRONMENT",
    "NAME_PATTERN",
    "Activation",
    "AttachedRecommendation",
    "AuditEntry",
    "CalibrationSet",
    "Cycle",
    "HeadPin",
    "HeadRecord",
    "InterviewRecord",
    "Job",
    "JobState",
    "LabelOutcome",
    "LabelledPredictions",
    "LogEntry",
    "LogPosition",
    "Model",
    "ModelKind",
    "NewLabel",
    "Outcome",
    "Prediction",
    "Registry",
    "RequestKey",
    "Scope",
    "ServingWorker",
    "Store",
    "StoredRequest",
    "Task",
    "Token",
    "Window",
    "attach_and_refit",
    "check_name",
    "group_hash",
    "load_group_key",
    "logged_at",
    "logged_on",
    "new_prediction_id",
    "register_calibration",
]
