"""Answers about tasks, models, calibration sets and heads."""

from typing import Annotated, Any, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict

from lifelong_core.entities.heads import DecisionRuleDocument
from lifelong_core.images.preprocessing import Preprocessing
from lifelong_core.store.registry.records import ModelKind
from lifelong_service.schemas.references import schema_of

PreprocessingDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of(f"{Preprocessing.__module__}:{Preprocessing.__name__}")
]
Environment: TypeAlias = Annotated[str | None, Field(description="null: the model's default head.")]


class TaskAnswer(TypedDict):
    """A task: class names in the order of the logits, costs (rows true class, columns decision) and decision rule."""

    name: str
    classes: list[str]
    costs: list[list[float]]
    decision_rule: DecisionRuleDocument
    decision_rule_text: Annotated[str, Field(description="The decision rule as a phrase.")]
    promoted_model: Annotated[str | None, Field(description="name@version of the model that is served.")]
    created_at: str


class TaskList(TypedDict):
    """All tasks."""

    tasks: list[TaskAnswer]


class ModelAnswer(TypedDict):
    """One version of a model, with the name and classes of its task; `model` is name@version."""

    model: str
    name: str
    version: int
    task: str
    classes: list[str]
    kind: ModelKind
    artifact: Annotated[
        str | None, Field(description="SHA-256 of the graph; null: the model runs elsewhere.")
    ]
    preprocessing: PreprocessingDocument | None
    calibration_set_id: int | None
    promoted: bool
    created_at: str


class PromotedAnswer(ModelAnswer):
    """The promoted model; `serving` is a sentence about the workers that run it."""

    serving: str


class RemovedAnswer(TypedDict):
    """The removed model."""

    removed: Annotated[str, Field(description="name@version; neither its id nor its version is used again.")]


class ModelDetails(ModelAnswer):
    """A model with the active head version of each environment; `*` is the default head."""

    heads: dict[str, int]


class ModelList(TypedDict):
    """All versions of all models."""

    models: list[ModelAnswer]


class ImageLogits(TypedDict):
    """Logits (N, C) of N images, and how they were preprocessed: a calibration set is sent back with this digest."""

    model: str
    logits: list[list[float]]
    preprocessing_digest: str
