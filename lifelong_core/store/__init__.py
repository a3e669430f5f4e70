"""State of the product: repositories of frozen values over the SQL database and the artifacts.

Only this package contains SQL and names of tables.
"""

from lifelong_core.entities.access import AuditEntry, ConsoleSession, Scope, Token
from lifelong_core.entities.cycles import Cycle, Outcome
from lifelong_core.entities.design.interviews import InterviewRecord
from lifelong_core.entities.design.recommendations import (
    AttachedRecommendation,
    KeptHead,
    PublishedHead,
    Refit,
)
from lifelong_core.entities.develop.evaluations import Evaluation
from lifelong_core.entities.develop.rollouts import Promotion, Rollout
from lifelong_core.entities.develop.trainings import StoredTraining
from lifelong_core.entities.heads import Activation, CalibrationSet, HeadPin, HeadRecord
from lifelong_core.entities.jobs import Job, JobState
from lifelong_core.entities.proposals import RetrainingProposal
from lifelong_core.entities.registry import Model, ModelKind, ModelLoad, Registry, ServingWorker, Task
from lifelong_core.store.evaluations.acceptance import NotAcceptedError, check_accepted
from lifelong_core.store.heads.calibration_sets import HeadCalibration
from lifelong_core.store.heads.refitting import attach_and_refit
from lifelong_core.store.heads.registration import (
    CalibrationCandidate,
    RefusedCalibrationError,
    check_publishable,
    examine_candidate,
    examine_first,
    publish_candidate,
    register_calibration,
)
from lifelong_core.store.lifecycle.privacy import group_hash, load_group_key
from lifelong_core.store.log.identifiers import logged_at, logged_on, new_prediction_id
from lifelong_core.store.log.records import (
    LabelledPredictions,
    LabelOutcome,
    LabelRevision,
    LogEntry,
    LogPosition,
    NewLabel,
    Prediction,
    RequestKey,
    StoredRequest,
    Window,
)
from lifelong_core.store.registry.heartbeats import Heartbeat, MonitorProcess, Tick, Visit
from lifelong_core.store.registry.serving import (
    ServingState,
    describe_default_head,
    describe_serving,
    serving_state,
)
from lifelong_core.store.rollouts.checked_promotion import (
    WorseModelError,
    check_promotion,
    promote_calibrated,
)
from lifelong_core.store.rollouts.trials import StartedTrial, start_trial
from lifelong_core.store.store import Store
from lifelong_core.values.names import DEFAULT_ENVIRONMENT, NAME_PATTERN, check_name

__all__ = [
    "DEFAULT_ENVIRONMENT",
    "NAME_PATTERN",
    "Activation",
    "AttachedRecommendation",
    "AuditEntry",
    "CalibrationCandidate",
    "CalibrationSet",
    "ConsoleSession",
    "Cycle",
    "Evaluation",
    "HeadCalibration",
    "HeadPin",
    "HeadRecord",
    "Heartbeat",
    "InterviewRecord",
    "Job",
    "JobState",
    "KeptHead",
    "LabelOutcome",
    "LabelRevision",
    "LabelledPredictions",
    "LogEntry",
    "LogPosition",
    "Model",
    "ModelKind",
    "ModelLoad",
    "MonitorProcess",
    "NewLabel",
    "NotAcceptedError",
    "Outcome",
    "Prediction",
    "Promotion",
    "PublishedHead",
    "Refit",
    "RefusedCalibrationError",
    "Registry",
    "RequestKey",
    "RetrainingProposal",
    "Rollout",
    "Scope",
    "ServingState",
    "ServingWorker",
    "StartedTrial",
    "Store",
    "StoredRequest",
    "StoredTraining",
    "Task",
    "Tick",
    "Token",
    "Visit",
    "Window",
    "WorseModelError",
    "attach_and_refit",
    "check_accepted",
    "check_name",
    "check_promotion",
    "check_publishable",
    "describe_default_head",
    "describe_serving",
    "examine_candidate",
    "examine_first",
    "group_hash",
    "load_group_key",
    "logged_at",
    "logged_on",
    "new_prediction_id",
    "promote_calibrated",
    "publish_candidate",
    "register_calibration",
    "serving_state",
    "start_trial",
]
