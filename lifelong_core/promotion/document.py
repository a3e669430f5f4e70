"""Inputs of a promotion report, and the report as a document that can be stored, sent and printed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from lifelong_core.deploy import LabeledLogits, PostProcessingHead
from lifelong_core.design.validation.differences import MetricDifference, SubgroupDifference
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.design.validation.values.metric_value import Number
from lifelong_core.promotion.decision_changes import DecisionChanges
from lifelong_core.values.arrays import Floats, Logits, as_logits
from lifelong_core.values.documents import Frozen, FrozenDocument
from lifelong_core.values.errors import InvalidInputError

SCHEMA_VERSION = 1


Advice: TypeAlias = Literal["promote", "decide", "reject"]
"""`decide`: the figures do not settle it, and a person has to."""


class RuntimeCost(Frozen):
    """What it costs to serve a model: memory, and time on the machine that made the report."""

    graph_bytes: int = Field(ge=0, description="Size of the ONNX file.")
    milliseconds: float | None = Field(
        description="Median time of one image, batch size 1; None: not measured."
    )
    slowest_milliseconds: float | None = Field(description="95 % quantile of the same times.")
    runs: int = Field(ge=0)
    machine: str = Field(
        description="Where it was measured: processor, and the number of processors it could use."
    )


class ModelFacts(Frozen):
    """One of the two models."""

    reference: str
    head: str = Field(description="Digest of the default head that decided.")
    assumed_prevalence: tuple[float, ...] = Field(description="Class shares that this head expects.")
    cost: RuntimeCost | None = Field(description="None: not measured.")
    trained_on: str | None = Field(description="Name or digest of the training data; None: not known.")


class FingerprintDistance(Frozen):
    """How far the training data of the new model are from those of the current one."""

    method: str = Field(description="Of the distance.")
    distance: float | None = Field(description="The lower, the closer; None: it cannot be computed.")
    reason: str | None = Field(default=None, description="Why there is no distance.")


class Verdict(Frozen):
    """What the figures advise, with reasons; a person decides."""

    advice: Advice
    headline: str
    reasons: tuple[str, ...]
    unknown: tuple[str, ...] = Field(description="What the figures do not tell, in sentences.")


class CostDifference(Frozen):
    """Expected cost of both models at one class prevalence."""

    environment: str | None = Field(description="None: at the class shares of the held-out cases.")
    prevalence: tuple[float, ...]
    difference: MetricDifference


class LocalizationScore(Frozen):
    """One stability score over the images."""

    name: str
    mean: Number = Field(description="Over the images in which it is defined; None: in none.")
    low: Number = Field(description="Lower end of the interval of the mean; None: fewer than two images.")
    high: Number
    defined: int = Field(description="Images in which it is defined.")
    unrelated: Number = Field(
        description="Mean of the same score between maps of different images: what places give that do not depend on"
        " the image, such as its centre. None: in no pair defined."
    )


class LocalizationExample(Frozen):
    """One image with the places that matter to each model."""

    name: str | None
    class_index: int = Field(description="Class whose score is looked at: the decision of the new model.")
    true_class: int
    current_overlay: str = Field(description="PNG in base64: the image with the places of the current model.")
    new_overlay: str = Field(description="The same, of the new model.")
    scores: Mapping[str, Number] = Field(description="Stability scores of this image.")


class LocalizationComparison(Frozen):
    """Agreement of the occlusion maps of both models: how much a class's score falls where a patch is hidden."""

    images: int
    grid: int = Field(description="What both models see of an image is cut into grid x grid patches.")
    fill: Literal["mean", "blurred"] = Field(description="What hides a patch.")
    threshold: float = Field(
        description="Patches count as positive whose fall is at least this share of the largest of their map."
    )
    level: float = Field(description="Nominal coverage of the intervals.")
    new_without_places: int = Field(
        description="Images in which no hidden patch lowers the score of the new model noticeably."
    )
    current_without_places: int
    scores: tuple[LocalizationScore, ...]
    examples: tuple[LocalizationExample, ...] = Field(description="Least stable first.")


class PromotionReport(FrozenDocument):
    """A new model against the current one of the same task, on the same held-out cases."""

    schema_version: Literal[1] = SCHEMA_VERSION
    task: str
    new: ModelFacts
    current: ModelFacts
    origin: str = Field(description="Where the held-out cases come from, in words.")
    verdict: Verdict
    new_result: ValidationResult
    current_result: ValidationResult
    differences: tuple[MetricDifference, ...] = Field(
        description="New less current, of the recommended metrics: what sums a metric up comes first, then its classes."
    )
    calibration: tuple[MetricDifference, ...] = Field(
        description="New less current, of measures of the probabilities, whether recommended or not."
    )
    subgroups: tuple[SubgroupDifference, ...]
    changes: DecisionChanges
    costs: tuple[CostDifference, ...] = Field(
        description="First at the class shares of the cases, then by environment."
    )
    cost_matrix: tuple[tuple[float, ...], ...] = Field(
        description="Shape (C, D), of deciding j when i is true: the task's costs."
    )
    fingerprints: FingerprintDistance | None = Field(description="None: one of the two has no fingerprint.")
    localization: LocalizationComparison | None = Field(
        description="None: there were no images to compare on."
    )
    warnings: tuple[str, ...] = Field(description="Limits of the comparison, in sentences.")


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOutCases:
    """Labelled cases that neither model was trained or calibrated on."""

    labels: NDArray[np.int64]
    """shape (N,), true classes 0..C-1"""
    groups: NDArray[np.generic] | None = None
    """shape (N,), which cases belong together"""
    names: Sequence[str] | None = None
    """N names, such as files"""
    metadata: Mapping[str, ArrayLike] = field(default_factory=dict[str, ArrayLike])
    """by attribute, shape (N,): the subgroups"""
    origin: str = ""
    """origin of the cases, in words"""


@dataclass(frozen=True, kw_only=True)
class SeenCases:
    """Held-out cases that a model was trained or calibrated on, all the same."""

    count: int
    """at least 1"""
    is_certain: bool
    """False: it is only known that they are not of its own test split"""


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedModel:
    """One of the two models."""

    reference: str
    """name@version"""
    logits: Logits
    """shape (N, C), of the held-out cases"""
    head: PostProcessingHead
    """its default head, which decides"""
    calibration: LabeledLogits | None = None
    """its calibration set, on which cut-offs are chosen; None: on half of the cases, for both models"""
    cost: RuntimeCost | None = None
    """None: not measured"""
    trained_on: str | None = None
    """digest or name of its training data; None: not known"""
    seen: SeenCases | None = None
    """None: none of the cases, as far as is known"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Population:
    """An environment with a class prevalence that the monitor has estimated."""

    environment: str
    prevalence: Floats
    """shape (C,)"""
    new_head: PostProcessingHead
    """head that would decide there"""
    current_head: PostProcessingHead
    """head that decides there now"""


def check_compared(cases: HeldOutCases, *models: ComparedModel) -> None:
    """Make sure that all arrays have a row for each case.

    Raises:
        InvalidInputError: one has not; the field names it.
    """
    size = len(cases.labels)
    if cases.names is not None and len(cases.names) != size:
        raise InvalidInputError(f"expected {size} names, got {len(cases.names)}.", field="names")
    for model in models:
        rows = as_logits(model.logits).shape[0]
        if rows != size:
            raise InvalidInputError(
                f"there are logits of {rows} cases of {model.reference}, and labels of {size}.",
                field="logits",
            )
