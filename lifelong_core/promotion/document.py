"""The promotion report as a document that can be stored, sent and printed."""

from typing import Literal

from pydantic import Field

from lifelong_core.design.validation.differences import MetricDifference, SubgroupDifference
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.promotion.cost_difference import CostDifference
from lifelong_core.promotion.decision_changes import DecisionChanges
from lifelong_core.promotion.localization import LocalizationComparison
from lifelong_core.promotion.runtime_cost import RuntimeCost
from lifelong_core.promotion.verdict import Verdict
from lifelong_core.values.documents import Frozen, FrozenDocument

SCHEMA_VERSION = 1


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
