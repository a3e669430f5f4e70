"""What the store gives and takes: frozen values, one for each kind of row, without any trace of SQL."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator

from lifelong_core.arrays import Floats, Integers, Logits
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.values import ArrayValue
from lifelong_core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    UnavailableError,
)
from lifelong_core.preprocessing import Preprocessing

NAME_PATTERN = r"[a-z0-9][a-z0-9._-]{0,63}"
DEFAULT_ENVIRONMENT = "default"
LONGEST_REASON = 200

ModelKind: TypeAlias = Literal["onnx", "external"]
Outcome: TypeAlias = Literal["keep", "swap", "refuse"]


def check_name(value: str, *, field: str) -> str:
    """A legal name of a task, model or environment.

    Raises:
        InvalidInputError: the name has other characters or is too long.
    """
    if not re.fullmatch(NAME_PATTERN, value):
        raise InvalidInputError(
            f"{value[:80]!r} is not a legal name." if value else "the name is empty.",
            field=field,
            hint="Use 1 to 64 lower-case letters, digits, '.', '_' or '-', starting with a letter or digit.",
        )
    return value


def _legal_name(value: str) -> str:
    try:
        return check_name(value, field="name")
    except InvalidInputError as error:  # whoever reads the document says which field it is
        raise ValueError(f"{error.message} {error.hint}") from error


Name: TypeAlias = Annotated[str, AfterValidator(_legal_name)]
"""A name of a task, model or environment in a document or a query."""


def check_reason(value: str, *, hint: str, field: str = "reason") -> str:
    """A reason that a person gives for a decision, 1 to 200 printable characters.

    Raises:
        InvalidInputError: it is empty, too long or cannot be printed.
    """
    if not value.strip() or len(value) > LONGEST_REASON or not value.isprintable():
        raise InvalidInputError(
            f"expected 1 to {LONGEST_REASON} printable characters.", field=field, hint=hint
        )
    return value


class Scope(StrEnum):
    """What a token may do. `operate` includes `read`; `admin` includes all."""

    PREDICT = "predict"
    FEEDBACK = "feedback"
    METRICS = "metrics"
    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"


BOUND_SCOPES = frozenset({Scope.PREDICT, Scope.FEEDBACK})
"""What environments limit; the other scopes reach all environments."""


@dataclass(frozen=True, eq=False)
class Task(ArrayValue):
    """A classification problem: class names and confusion costs (rows true class, columns decision)."""

    id: int
    name: str
    class_names: tuple[str, ...]
    costs: Floats
    promoted_model_id: int | None
    created_at: datetime


@dataclass(frozen=True)
class Model:
    """One version of a model. `artifact` is the digest of the ONNX file; None when `kind` is external."""

    id: int
    task_id: int
    name: str
    version: int
    kind: ModelKind
    artifact: str | None
    preprocessing: Preprocessing | None
    calibration_set_id: int | None
    created_at: datetime

    @property
    def reference(self) -> str:
        """`name@version`, by which every call can name exactly this model."""
        return f"{self.name}@{self.version}"

    @property
    def calibration_command(self) -> str:
        """The command that calibrates it; the service computes no logits of an external model."""
        source = "calibration.npz" if self.kind == "external" else "held_out/"
        return f"lifelong calibrate {self.reference} {source}"


def without_head(model: Model) -> ConflictError:
    """The refusal to decide with a model that was never calibrated; trying again does not help."""
    return ConflictError(
        f"the model {model.reference} has no calibration set, so it has no head and cannot decide.",
        field="model",
        hint=f"Calibrate it: `{model.calibration_command}`.",
    )


def unlisted_environment(environment: str) -> NotFoundError:
    """The refusal of a prediction in an environment that is not there and that it must not create."""
    return NotFoundError(
        f"there is no environment {environment!r}, and predictions do not create one here"
        " (LIFELONG_ENVIRONMENT_CREATION=listed).",
        field="environment",
        hint=f"Correct the name, or add it: `lifelong environments add {environment}`.",
    )


@dataclass(frozen=True, eq=False)
class CalibrationSet(ArrayValue):
    """Labelled logits of one model, immutable; the arrays are the artifact `digest`."""

    id: int
    model_id: int
    digest: str
    samples: int
    prevalence: Floats
    created_at: datetime


@dataclass(frozen=True)
class HeadRecord:
    """One published head. Versions count up per model, over all its environments."""

    model_id: int
    version: int
    head: PostProcessingHead
    created_at: datetime
    created_by: str


@dataclass(frozen=True)
class Activation:
    """A head became the active one of (model, environment); environment None is the model's default head."""

    model_id: int
    environment: str | None
    sequence: int
    head_version: int
    activated_at: datetime
    activated_by: str
    reason: Literal["publish", "rollback", "swap"]
    uses_default_head: bool = False
    """True: a rollback took the environment back to the default head of its model, at the time `head_version`."""


@dataclass(frozen=True)
class HeadPin:
    """A person holds the head of (model, environment), or, with environment None, the model's default head."""

    model_id: int
    environment: str | None
    reason: str
    pinned_at: datetime
    pinned_by: str


@dataclass(frozen=True)
class Registry:
    """All that a serving worker needs to know, consistent as of one `revision`."""

    revision: int
    tasks: MappingProxyType[int, Task]
    models: MappingProxyType[int, Model]
    heads: MappingProxyType[tuple[int, str | None], HeadRecord]
    environments: frozenset[str]
    """all of them, the disabled ones included"""
    pins: MappingProxyType[tuple[int, str | None], HeadPin] = field(
        default_factory=lambda: MappingProxyType[tuple[int, str | None], HeadPin]({})
    )
    tokens: MappingProxyType[bytes, "Token"] = field(
        default_factory=lambda: MappingProxyType[bytes, Token]({})
    )
    """the tokens that are not revoked, by the hash of their secret; whether one has expired, the clock says"""
    damaged: MappingProxyType[tuple[int, str | None], str] = field(
        default_factory=lambda: MappingProxyType[tuple[int, str | None], str]({})
    )
    """why the head that is in force there cannot be served; if `heads` has one all the same, it is the last good one"""
    group_keys: tuple[str, ...] = ()
    """digests of the keys of the group hash, the current one first; empty: none is known"""
    disabled_environments: frozenset[str] = frozenset()
    """where no prediction is made"""

    def check_environment(self, name: str, *, may_be_new: bool) -> None:
        """Make sure that predictions may be made in an environment.

        Args:
            name: of the environment.
            may_be_new: whether the first prediction creates an environment.

        Raises:
            ForbiddenError: the environment is disabled.
            NotFoundError: there is no such environment, and the prediction must not create it.
        """
        if name in self.disabled_environments:
            raise ForbiddenError(
                f"the environment {name!r} is disabled.",
                field="environment",
                hint=f"Predict elsewhere, or enable it: `lifelong environments enable {name}`.",
            )
        if not may_be_new and name not in self.environments:
            raise unlisted_environment(name)

    def without_head(self) -> tuple[Model, ...]:
        """The promoted models without a default head that can be served, so that they answer nothing by default."""
        promoted = {task.promoted_model_id for task in self.tasks.values()}
        return tuple(
            model
            for model in self.models.values()
            if model.id in promoted and (model.id, None) not in self.heads
        )

    def resolve_model(self, reference: str | None, *, field: str = "model") -> Model:
        """The model that a request means: `name@version`, `name`, or None for the only task's promoted model.

        `name` alone means the promoted version, else the newest.

        Raises:
            NotFoundError: there is no such model.
            InvalidInputError: no model was named although several tasks have one.
        """
        promoted = [
            self.models[t.promoted_model_id] for t in self.tasks.values() if t.promoted_model_id is not None
        ]
        if reference is None:
            if len(promoted) == 1:
                return promoted[0]
            if promoted:
                names = ", ".join(sorted(model.name for model in promoted))
                raise InvalidInputError(
                    "several tasks are served here.", field=field, hint=f"Name one of: {names}."
                )
            raise NotFoundError(
                "no model is served yet.",
                field=field,
                hint="Add one with `lifelong models add` and calibrate it.",
            )
        name, _, version = reference.partition("@")
        versions = {str(model.version): model for model in self.models.values() if model.name == name}
        if version and version in versions:
            return versions[version]
        if not version and versions:
            chosen = [model for model in promoted if model.name == name]
            return chosen[0] if chosen else max(versions.values(), key=lambda model: model.version)
        raise NotFoundError(
            f"there is no model {reference[:80]!r}.", field=field, hint="List them: `lifelong models list`."
        )

    def head_for(self, model: Model, environment: str | None) -> HeadRecord:
        """The environment's own head, else (or for None) the model's default head.

        Raises:
            ConflictError: the model has no head yet, because it has no calibration set.
            UnavailableError: the head that is in force there is damaged, and no good one of that place is known.
        """
        for place in ((model.id, environment), (model.id, None)):
            record = self.heads.get(place)
            if record is not None:
                return record
            # Never the default head in the place of a damaged one: it would decide differently, and nobody knew.
            if place in self.damaged:
                raise UnavailableError(
                    f"the head of {model.reference} that is in force cannot be used: {self.damaged[place]}.",
                    field="model",
                    hint="Publish it again, or roll it back.",
                )
        raise without_head(model)

    def pin_for(self, model: Model, environment: str) -> HeadPin | None:
        """The pin that keeps cycles from changing what serves the environment; None: there is none.

        It is the environment's own, or that of the default head while the environment uses it.
        """
        place = (model.id, environment)
        own = self.pins.get(place)
        if own is not None or place in self.heads or place in self.damaged:
            return own
        return self.pins.get((model.id, None))


@dataclass(frozen=True, eq=False)
class Prediction(ArrayValue):
    """One row of the prediction log. `id` is a UUIDv7: it holds the time and orders the log by time."""

    id: UUID
    model_id: int
    environment: str
    head_version: int
    decision: int
    logits: Logits
    """shape (C,)"""
    group_hash: bytes | None = None


@dataclass(frozen=True)
class RequestKey:
    """By what a repeated request is recognised."""

    model_id: int
    environment: str
    request_id: str


@dataclass(frozen=True)
class LogEntry:
    """The predictions of one request, logged together or not at all."""

    predictions: tuple[Prediction, ...]
    request: RequestKey | None = None
    body_digest: bytes = b""
    token_id: int | None = None
    """of the token with which the request came; None: without one"""


@dataclass(frozen=True)
class StoredRequest:
    """What was answered to a request with this key, and to which body."""

    key: RequestKey
    body_digest: bytes
    predictions: tuple[Prediction, ...]


@dataclass(frozen=True, order=True)
class LogPosition:
    """A place in commit order: everything before it is committed for good, so nothing can appear behind a reader.

    Commit order is not id order, because ids are made before the commit.
    """

    commit_order: int
    id: UUID


@dataclass(frozen=True, eq=False)
class Window(ArrayValue):
    """The newest predictions of one (model, environment), oldest first, as read up to `log_position`."""

    ids: tuple[UUID, ...]
    logits: Logits
    groups: NDArray[np.generic] | None
    """shape (N,): a key per sample, predictions without a group are their own; None if none has a group."""
    log_position: int
    """Rows committed at or after this commit order were left out: reading again up to it gives the same window."""
    quarantined: int = 0
    """Rows that were read and left out because no estimate may use them."""


@dataclass(frozen=True)
class NewLabel:
    """The true class of a logged prediction."""

    prediction_id: UUID
    label: int
    source: str = ""


LabelOutcome: TypeAlias = Literal["stored", "unchanged", "corrected", "unknown"]


@dataclass(frozen=True, eq=False)
class LabelledPredictions(ArrayValue):
    """Predictions whose true class has become known, newest last; row i of every array is one prediction."""

    ids: tuple[UUID, ...]
    labels: Integers
    decisions: Integers
    head_versions: Integers
    logits: Logits
    groups: NDArray[np.generic] | None = None
    """as those of a `Window`"""
    quarantined: int = 0
    """how many more there are, which have another number of logits than the model has classes"""


@dataclass(frozen=True)
class Rejection:
    """A person declined the head that a cycle proposed."""

    reason: str
    rejected_at: datetime
    rejected_by: str


@dataclass(frozen=True)
class Cycle:
    """One pass of the workflow over one window. `report` is the AdaptationReport as a JSON document."""

    id: UUID
    model_id: int
    environment: str
    due_at: datetime
    started_at: datetime
    finished_at: datetime
    outcome: Outcome
    report: dict[str, Any]
    window_samples: int
    log_position: int
    head_version: int
    """the head that served while the window was judged"""
    published_version: int | None
    """the head that the cycle published, by itself or when a person approved it; None unless outcome is swap"""
    proposal: PostProcessingHead | None = None
    """the head that the cycle proposed to publish; None if it published, or wanted, none"""
    rejection: Rejection | None = None
    """who declined the proposal, when and why; None: nobody did"""

    @property
    def effect(self) -> str:
        """The outcome in words that say what happened: "swap" only where a head was published."""
        if self.outcome != "swap" or self.published_version is not None:
            return self.outcome
        return "would swap" if self.proposal is None else "proposes a swap"


@dataclass(frozen=True)
class Token:
    """A bearer token, without its secret: only a hash of that is stored."""

    id: int
    name: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    environments: frozenset[str] | None = None
    """the only environments in which it may predict and label; None: all"""
    rotated_at: datetime | None = None
    """when it got its present secret; None: with its creation"""
    previous_expires_at: datetime | None = None
    """until when the secret before that is valid; None: there is none"""
    last_used_at: datetime | None = field(default=None, compare=False)
    """to a minute; None: not known to have been used"""

    @property
    def default_environment(self) -> str:
        """Where it predicts when a request names no environment: the one that it is bound to, else `default`."""
        if self.environments is not None and len(self.environments) == 1:
            return next(iter(self.environments))
        return DEFAULT_ENVIRONMENT

    def has_ended(self, moment: datetime) -> bool:
        """Whether it was revoked, or has expired by then."""
        return self.revoked_at is not None or (self.expires_at is not None and self.expires_at <= moment)

    def may_use(self, environment: str) -> bool:
        """Whether it may predict and label in an environment."""
        return self.environments is None or environment in self.environments

    @property
    def binding(self) -> str:
        """The environments that it is bound to, in words."""
        return "all" if self.environments is None else ", ".join(sorted(self.environments))

    def allows(self, scope: Scope) -> bool:
        """Whether the token may do what needs `scope`: `operate` includes `read`, `admin` includes all."""
        includes = {Scope.READ: {Scope.OPERATE, Scope.ADMIN}}.get(scope, {Scope.ADMIN})
        return scope in self.scopes or not includes.isdisjoint(self.scopes)


@dataclass(frozen=True)
class ConsoleSession:
    """A browser that is logged in to the console."""

    token: str
    """name of the token with which somebody logged in"""
    address: str
    """IP address from which; empty: not known"""
    created_at: datetime
    used_at: datetime
    """when the last request came, to some ten seconds"""
    valid_until: datetime
    """when it ends without a further request"""
    ends_at: datetime
    """when it ends in any case"""


@dataclass(frozen=True)
class Environment:
    """Where predictions come from: a hospital, a scanner, a season."""

    name: str
    created_at: datetime
    created_by: str | None = None
    """name of the token, person or process; None: not known"""
    disabled_at: datetime | None = None
    """from when on no prediction is made there; None: it is in use"""


@dataclass(frozen=True)
class ModelLoad:
    """What became of the graph of one model in one worker: exactly one of the two is None."""

    provider: str | None
    """the ONNX Runtime execution provider that runs it"""
    failure: str | None
    """why it could not be loaded"""


@dataclass(frozen=True)
class ServingWorker:
    """A serving process, by its own word."""

    id: str
    host: str
    process: int
    started_at: datetime
    seen_at: datetime
    revision: int
    """of the registry that it serves"""
    heads: MappingProxyType[tuple[int, str | None], int]
    """version of the head that it serves, by model id and environment (None: the model's default head)"""
    is_lost: bool
    """whether it has given no sign of life for so long that it is taken for dead"""
    models: MappingProxyType[int, ModelLoad] = field(
        default_factory=lambda: MappingProxyType[int, ModelLoad]({})
    )
    """the graphs that it has loaded, or failed to load, by model id; one that is being loaded is in neither state"""


@dataclass(frozen=True)
class AuditEntry:
    """Who changed what, when and from where."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    source: str | None = None
    """address from which it was asked for; `local`: command line or monitor; None: an older version wrote it"""
    previous_digest: str = ""
    digest: str = ""
    """of all the above, see `audit_chain`"""
