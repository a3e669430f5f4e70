"""Calibration sets, published heads, activations and pins."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from pydantic import Field, PlainSerializer, PlainValidator, computed_field
from typing_extensions import TypedDict

from lifelong_core.deploy.criterion.expected_criterion import describe_expectation, describe_head_rule
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.entities.entity import Entity, Moment, Vector
from lifelong_core.values.array_value import ArrayValue

HeadPopulation: TypeAlias = tuple[int, str | None]
"""Model id and environment that a head serves; environment None: the model's default head."""

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


Head: TypeAlias = Annotated[
    PostProcessingHead,
    PlainSerializer(PostProcessingHead.to_document, return_type=HeadParameters),
    PlainValidator(PostProcessingHead.from_document, json_schema_input_type=HeadParameters),
]


@dataclass(frozen=True, eq=False, kw_only=True)
class CalibrationSetAnswer(ArrayValue, Entity):
    """A calibration set without its arrays: labelled logits of one model, immutable."""

    id: int
    digest: str
    """SHA-256 of the artifact"""
    samples: int
    prevalence: Vector
    """the share of each class"""
    created_at: Moment
    preprocessing_digest: str | None = None
    """how the images were decoded and preprocessed; null: unknown"""


@dataclass(frozen=True, eq=False, kw_only=True)
class CalibrationSet(CalibrationSetAnswer):
    """A row of `calibration_sets`."""

    model_id: int


@dataclass(frozen=True, kw_only=True)
class HeadAnswer(Entity):
    """A head with all its parameters. Versions count up per model, over all its environments."""

    version: int
    created_at: Moment
    created_by: str
    head: Head

    @computed_field
    @property
    def digest(self) -> str:
        """Digest of what the head computes, without its provenance."""
        return self.head.digest

    @computed_field
    @property
    def decision_rule_text(self) -> str:
        """The decision rule of the head as a phrase, with its cut-off."""
        return describe_head_rule(self.head)

    @computed_field
    @property
    def expected_criterion_text(self) -> str | None:
        """What the rule's metric will be at the assumed prevalence, and its interval.

        `provenance` holds the numbers (`expected_criterion`). Null: the rule searches no cut-off, or the head does not
        say.
        """
        return describe_expectation(self.head)


@dataclass(frozen=True, kw_only=True)
class HeadRecord(HeadAnswer):
    """A published head of a model: a row of `heads`."""

    model_id: int


@dataclass(frozen=True, kw_only=True)
class HeadInForce(HeadAnswer):
    """A head that became active, and the calibration sets of its model."""

    fitted_on: int | None
    """the calibration set of the model that the head was fitted on; null: it names none"""
    active_calibration_set: int | None
    """the calibration set that cycles fit heads on from now on"""
    calibration: str
    """the same in words"""
    outlook: str
    """whether and when a cycle may replace this head, and how to prevent it, in words"""


@dataclass(frozen=True, kw_only=True)
class ActivationAnswer(Entity):
    """An activation of a head for a population; an append-only history."""

    sequence: int
    """counts up from 1 within a population"""
    environment: str | None
    """null: the model's default head"""
    head_version: int
    reason: Literal["publish", "rollback", "swap"]
    uses_default_head: bool = False
    """true: a roll-back returned the environment to its model's default head, `head_version` at that time"""
    activated_at: Moment
    activated_by: str


@dataclass(frozen=True, kw_only=True)
class Activation(ActivationAnswer):
    """A row of `head_activations`."""

    model_id: int


@dataclass(frozen=True, kw_only=True)
class PinAnswer(Entity):
    """A pin of the active head: cycles do not replace it."""

    environment: str | None
    """null: the model's default head"""
    reason: str
    pinned_at: Moment
    pinned_by: str


@dataclass(frozen=True, kw_only=True)
class HeadPin(PinAnswer):
    """A row of `head_pins`."""

    model_id: int


@dataclass(frozen=True, kw_only=True)
class HeadHistoryEntry(ActivationAnswer):
    """An activation with its head in words."""

    text: str
    """what the head assumes and how it decides, or its damage"""
    cycle: str | None
    """id of the cycle that fitted the head; null: a person published it"""


@dataclass(frozen=True, kw_only=True)
class HeadHistory(Entity):
    """The heads that were in force in one place, and what serves there now."""

    model: str
    environment: str | None
    """null: the model's default head"""
    serving: int | None
    """version of the head that serves: the environment's own, else the default head; null: there is none"""
    text: str
    """what it assumes and how it decides"""
    follows_default: bool
    """whether the default head serves the environment"""
    sequence: int
    """of the newest activation there; 0: there was none"""
    pin: PinAnswer | None
    """of the place itself, or of the default head that it follows; null: not pinned"""
    outlook: str
    """whether and when a cycle may replace the head, in words"""
    activations: list[HeadHistoryEntry]
    """newest first"""
