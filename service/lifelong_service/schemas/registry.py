"""Answers about tasks, models, calibration sets and heads."""

from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict

from lifelong_core.images.preprocessing import Preprocessing
from lifelong_core.store.registry.records import ModelKind
from lifelong_service.schemas.references import schema_of

PreprocessingDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of(f"{Preprocessing.__module__}:{Preprocessing.__name__}")
]
Environment: TypeAlias = Annotated[str | None, Field(description="null: the model's default head.")]


DecisionRuleDocument: TypeAlias = Annotated[
    dict[str, Any],
    Field(
        description=(
            "`kind` with the fields of the kind: `bayes` (least expected cost), `argmax`, `cut_offs` (`thresholds`),"
            " `target_value` (`metric` TPR, TNR, PPV, NPV or PPR, `value`, `positive_class`), `optimised_metric`"
            " (`metric` F_beta, BA, MCC, AC or EC, `beta`, `positive_class`)."
        ),
        examples=[{"kind": "target_value", "metric": "TPR", "value": 0.9, "positive_class": 1}],
    ),
]


DecisionRuleText: TypeAlias = Annotated[
    str, Field(description="The decision rule of the head as a phrase, with its cut-off.")
]
ExpectedCriterionText: TypeAlias = Annotated[
    str | None,
    Field(
        description="What the rule's metric will be at the assumed prevalence, and its interval; `provenance` holds"
        " the numbers (`expected_criterion`). Null: the rule searches no cut-off, or the head does not say."
    ),
]


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


class CalibrationSetAnswer(TypedDict):
    """A calibration set without its arrays; `prevalence` is the share of each class."""

    id: int
    digest: str
    samples: int
    prevalence: list[float]
    created_at: str
    preprocessing_digest: Annotated[
        str | None,
        Field(description="How the images were decoded and preprocessed; null: unknown."),
    ]


class ActivatedCalibrationSet(CalibrationSetAnswer):
    """The new active calibration set of `model`; its heads stay."""

    model: str
    default_head: Annotated[
        str | None, Field(description="What the default head was fitted on, in words; null: there is none.")
    ]


class CalibrationSetList(TypedDict):
    """The calibration sets of a model; `active` is the one that heads and quantifiers are fitted on."""

    active: int | None
    calibration_sets: list[CalibrationSetAnswer]


class HeadParameters(TypedDict):
    """A head as a document: probabilities are softmax(logits / temperature + bias), adjusted to the prevalence.

    Without `decision_rule` (schema version 1) it decides for the least expected cost.
    """

    schema_version: int
    temperature: float | list[float]
    bias: list[float]
    costs: list[list[float]]
    assumed_prevalence: list[float]
    class_names: list[str]
    decision_rule: NotRequired[DecisionRuleDocument]
    cut_off: NotRequired[
        Annotated[
            float | None,
            Field(
                description="Of the probability of the rule's class, found on the calibration set; null: there is none."
            ),
        ]
    ]
    provenance: NotRequired[
        Annotated[dict[str, Any], Field(description="Where the head comes from; free-form values.")]
    ]


class HeadAnswer(TypedDict):
    """A head with all its parameters."""

    version: int
    digest: str
    created_at: str
    created_by: str
    decision_rule_text: DecisionRuleText
    expected_criterion_text: ExpectedCriterionText
    head: HeadParameters


class HeadInForce(HeadAnswer):
    """A head that became active, and the calibration sets of its model."""

    fitted_on: Annotated[
        int | None,
        Field(
            description="The calibration set of the model that the head was fitted on; null: it names none."
        ),
    ]
    active_calibration_set: Annotated[
        int | None, Field(description="The calibration set that cycles fit heads on from now on.")
    ]
    calibration: Annotated[str, Field(description="The same in words.")]
    outlook: Annotated[
        str,
        Field(description="Whether and when a cycle may replace this head, and how to prevent it, in words."),
    ]


class PinAnswer(TypedDict):
    """A pin of the active head: cycles do not replace it."""

    environment: Environment
    reason: str
    pinned_at: str
    pinned_by: str


class PinList(TypedDict):
    """The pins of a model."""

    pins: list[PinAnswer]


class ActivationAnswer(TypedDict):
    """An activation of a head; `uses_default_head`: the environment has returned to the model's default head."""

    sequence: int
    environment: Environment
    head_version: int
    reason: Literal["publish", "rollback", "swap"]
    uses_default_head: bool
    activated_at: str
    activated_by: str


class HeadList(PinList):
    """The heads of a model, the faults of damaged ones by version, its pins and the history of active heads."""

    heads: list[HeadAnswer]
    damaged: dict[int, str]
    activations: list[ActivationAnswer]
