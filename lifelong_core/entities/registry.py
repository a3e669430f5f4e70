"""Tasks, models, environments, workers, and the registry that workers serve."""

from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, PlainSerializer, PlainValidator, computed_field

from lifelong_core.decision_rules.rules import BayesRule, DecisionRule, rule_document, rule_from_document
from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.entities.access import Token
from lifelong_core.entities.develop.rollouts import Rollout
from lifelong_core.entities.entity import Entity, Matrix, Moment
from lifelong_core.entities.heads import DecisionRuleDocument, HeadPin, HeadPopulation, HeadRecord
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    UnavailableError,
)
from lifelong_core.values.preprocessing import Preprocessing

ModelKind: TypeAlias = Literal["onnx", "external"]
Rule: TypeAlias = Annotated[
    DecisionRule,
    PlainSerializer(rule_document, return_type=DecisionRuleDocument),
    PlainValidator(rule_from_document, json_schema_input_type=DecisionRuleDocument),
]
ModelRole: TypeAlias = Literal["promoted", "canary", "shadow", "former", "other"]
"""`former`: it was promoted or on trial earlier; `other`: only requests that name it reach it"""


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskFields(ArrayValue, Entity):
    """A task: class names in the order of the logits, costs (rows true class, columns decision) and decision rule."""

    name: str
    class_names: Annotated[tuple[str, ...], Field(alias="classes")]
    costs: Matrix
    decision_rule: Rule = field(default_factory=BayesRule)
    """for heads fitted from now on"""
    created_at: Moment

    @computed_field
    @property
    def decision_rule_text(self) -> str:
        """The decision rule as a phrase."""
        return describe_rule(self.decision_rule, self.class_names)


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskAnswer(TaskFields):
    """A task: class names in the order of the logits, costs (rows true class, columns decision) and decision rule."""

    promoted_model: str | None
    """name@version of the model that is served"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(TaskFields):
    """A classification problem: a row of `tasks`."""

    id: int
    promoted_model_id: int | None


@dataclass(frozen=True, kw_only=True)
class ModelFields(Entity):
    """One version of a model."""

    name: str
    version: int
    kind: ModelKind
    artifact: str | None
    """SHA-256 of the graph; null: the model runs elsewhere"""
    preprocessing: Preprocessing | None
    calibration_set_id: int | None
    created_at: Moment


@dataclass(frozen=True, kw_only=True)
class ModelAnswer(ModelFields):
    """One version of a model, with the name and classes of its task."""

    model: str
    """name@version"""
    task: str
    classes: list[str]
    promoted: bool


@dataclass(frozen=True, kw_only=True)
class Model(ModelFields):
    """One version of a model: a row of `models`."""

    id: int
    task_id: int

    @property
    def reference(self) -> str:
        """`name@version`, the unique name of this model."""
        return f"{self.name}@{self.version}"

    @property
    def calibration_command(self) -> str:
        """The command that calibrates the model; the service computes no logits of an external model."""
        source = "calibration.npz" if self.kind == "external" else "held_out/"
        return f"lifelong calibrate {self.reference} {source}"


def without_head(model: Model) -> ConflictError:
    """The error that a model was never calibrated, so it cannot decide; a retry does not help."""
    return ConflictError(
        f"the model {model.reference} has no calibration set, so it has no head and cannot decide.",
        field="model",
        hint=f"Calibrate it: `{model.calibration_command}`.",
    )


def unlisted_environment(environment: str) -> NotFoundError:
    """The error that an environment does not exist and the prediction must not create it."""
    return NotFoundError(
        f"there is no environment {environment!r}, and predictions do not create one here"
        " (LIFELONG_ENVIRONMENT_CREATION=listed).",
        field="environment",
        hint=f"Correct the name, or add it: `lifelong environments add {environment}`.",
    )


@dataclass(frozen=True)
class Registry:
    """Consistent state for a serving worker as of one `revision`."""

    revision: int
    tasks: MappingProxyType[int, Task]
    models: MappingProxyType[int, Model]
    heads: MappingProxyType[HeadPopulation, HeadRecord]
    environments: frozenset[str]
    """all environments, disabled ones included"""
    pins: MappingProxyType[HeadPopulation, HeadPin] = field(
        default_factory=lambda: MappingProxyType[HeadPopulation, HeadPin]({})
    )
    tokens: MappingProxyType[bytes, "Token"] = field(
        default_factory=lambda: MappingProxyType[bytes, Token]({})
    )
    """the tokens that are not revoked, by the hash of their secret; expired ones included"""
    damaged: MappingProxyType[HeadPopulation, str] = field(
        default_factory=lambda: MappingProxyType[HeadPopulation, str]({})
    )
    """damage of heads in force; `heads` may then hold the last good head of the population"""
    group_keys: tuple[str, ...] = ()
    """digests of the keys of the group hash, the current one first; empty: none is registered"""
    disabled_environments: frozenset[str] = frozenset()
    """environments that refuse predictions"""
    rollouts: MappingProxyType[int, Rollout] = field(
        default_factory=lambda: MappingProxyType[int, Rollout]({})
    )
    """the trials that go on, by task"""
    rollback_models: MappingProxyType[int, int] = field(
        default_factory=lambda: MappingProxyType[int, int]({})
    )
    """the model that a roll-back restores, by task"""
    released: frozenset[int] = frozenset()
    """models that were promoted earlier, and neither serve, nor are on trial, nor are restored by a roll-back"""
    answering: MappingProxyType[int, frozenset[int]] = field(
        default_factory=lambda: MappingProxyType[int, frozenset[int]]({})
    )
    """models that answer, or may have answered, requests without a version, by task: those that are or were promoted or
    on trial"""
    preprocessing_digests: MappingProxyType[int, str] = field(
        default_factory=lambda: MappingProxyType[int, str]({})
    )
    """how the images of the active calibration set were preprocessed, by model; unknown digests are missing"""

    def check_environment(self, name: str, *, may_be_new: bool) -> None:
        """Make sure that predictions may be made in an environment.

        Args:
            name: of the environment.
            may_be_new: whether the first prediction may create an environment.

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
        """The promoted models without a usable default head."""
        promoted = {task.promoted_model_id for task in self.tasks.values()}
        return tuple(
            model
            for model in self.models.values()
            if model.id in promoted and (model.id, None) not in self.heads
        )

    def resolve_model(self, reference: str | None, *, field: str = "model") -> Model:
        """The model of a request: `name@version`, `name`, or None for the only task's promoted model.

        `name` alone means the promoted version, else the newest.

        Raises:
            NotFoundError: there is no such model.
            InvalidInputError: the reference is None, but several tasks have a promoted model.
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

    def role(self, model_id: int) -> ModelRole:
        """The present role of a model in its task."""
        task_id = self.models[model_id].task_id
        if self.tasks[task_id].promoted_model_id == model_id:
            return "promoted"
        rollout = self.rollouts.get(task_id)
        if rollout is not None and rollout.model_id == model_id:
            return rollout.stage
        return "former" if model_id in self.answering.get(task_id, ()) else "other"

    def possible_models(self, model: Model, reference: str | None) -> frozenset[int]:
        """Ids of the models that may have answered an earlier request with the same reference.

        Args:
            model: to which the reference resolves now.
            reference: of the request. One with a version always means this model. Others mean the promoted model or a
                canary, which change; with a name, only those of this name.
        """
        if reference is not None and "@" in reference:
            return frozenset({model.id})
        earlier = (self.models.get(model_id) for model_id in self.answering.get(model.task_id, ()))
        return frozenset(
            {
                model.id,
                *(one.id for one in earlier if one is not None and reference in (None, one.name)),
            }
        )

    def head_for(self, model: Model, environment: str | None) -> HeadRecord:
        """The environment's own head, else (or for None) the model's default head.

        Raises:
            ConflictError: the model has no head yet, because it has no calibration set.
            UnavailableError: the head in force is damaged, and no earlier good one is available.
        """
        for population in ((model.id, environment), (model.id, None)):
            record = self.heads.get(population)
            if record is not None:
                return record
            # The default head never replaces a damaged one: its decisions would differ silently.
            if population in self.damaged:
                raise UnavailableError(
                    f"the head of {model.reference} that is in force cannot be used: {self.damaged[population]}.",
                    field="model",
                    hint="Publish it again, or roll it back.",
                )
        raise without_head(model)

    def pin_for(self, model: Model, environment: str) -> HeadPin | None:
        """The pin of the head in force in an environment; None: it is not pinned.

        It is the environment's own, or that of the default head while the environment uses it.
        """
        population = (model.id, environment)
        pin = self.pins.get(population)
        if pin is not None or population in self.heads or population in self.damaged:
            return pin
        return self.pins.get((model.id, None))


@dataclass(frozen=True)
class Environment(Entity):
    """A source of predictions: a hospital, a scanner, a season."""

    name: str
    created_at: Moment
    created_by: str | None = None
    """name of the token, person or process; null: not known"""
    disabled_at: Moment | None = None
    """from then on predictions there get 403; null: in use"""


@dataclass(frozen=True)
class ModelLoad(Entity):
    """Result of loading a model's graph in one worker: exactly one field is None."""

    provider: str | None
    """the ONNX Runtime execution provider of the loaded graph"""
    failure: str | None
    """error of the load"""


@dataclass(frozen=True)
class ServingWorker:
    """State of a serving process at its latest heartbeat."""

    id: str
    host: str
    process: int
    started_at: datetime
    seen_at: datetime
    revision: int
    """revision of its registry"""
    heads: MappingProxyType[HeadPopulation, int]
    """version of each head that it applies, by model id and environment (None: the model's default head)"""
    is_lost: bool
    """whether its latest heartbeat is too old"""
    models: MappingProxyType[int, ModelLoad] = field(
        default_factory=lambda: MappingProxyType[int, ModelLoad]({})
    )
    """results of loading graphs, by model id; a graph that is still loading is missing"""
