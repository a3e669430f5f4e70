"""The report of one cycle."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol, Self, TypeAlias, cast

from lifelong_core.configuration.policy_fields import Mode
from lifelong_core.deploy.adaptation.context import AdaptationContext
from lifelong_core.deploy.adaptation.gain import ExpectedGain, ExpectedProbabilityGain
from lifelong_core.deploy.adaptation.policy import AdaptationPolicy
from lifelong_core.deploy.adaptation.reasons import Reason
from lifelong_core.deploy.adaptation.rule_gain import RuleGain
from lifelong_core.deploy.criterion.expected_criterion import ExpectedCriterion
from lifelong_core.deploy.documents import canonical, parse_document, take_fields
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.label_shift.result import AssumptionTest
from lifelong_core.deploy.performance.performance_estimate import PerformanceEstimate
from lifelong_core.deploy.quantification.prevalence_estimate import PrevalenceEstimate
from lifelong_core.deploy.shift.change_points import ChangePoint
from lifelong_core.deploy.shift.evidence import ShiftEvidence
from lifelong_core.deploy.shift.shift_test import ShiftTest
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, as_parameter, read_only
from lifelong_core.values.errors import InvalidInputError

Outcome: TypeAlias = Literal["keep", "swap", "refuse"]
SCHEMA_VERSION = 7
OUTCOMES: tuple[Outcome, ...] = ("keep", "swap", "refuse")

_PLAIN = (
    "worst_case_cost_increase",
    "seed",
    "samples",
    "calibration_digest",
    "quantifier_digest",
    "head_digest",
    "window_digest",
)
"""Fields that are JSON values."""


class _Part(Protocol):
    """Value with its own JSON document."""

    def to_document(self) -> dict[str, Any]: ...

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self: ...


@dataclass(frozen=True, eq=False)
class AdaptationReport(ArrayValue):
    """Report of one cycle: estimates, tests, decision, and all that a replay needs beside the logged window."""

    outcome: Outcome
    reasons: tuple[Reason, ...]
    prevalence: PrevalenceEstimate | None
    """estimate from the last change on; None: there was no estimate"""
    prevalence_without_labels: PrevalenceEstimate | None
    """estimate before labels of the window were combined with it; None: there were none"""
    change_points: tuple[ChangePoint, ...]
    """changes of the prevalence within the window, in order of time"""
    assumed_prevalence: Floats
    """shape (C,), assumed prevalence of the current head"""
    shift_test: ShiftTest | None
    """None: the cycle ended before it"""
    evidence: ShiftEvidence | None
    """evidence of a shift up to this cycle, the input of the next cycle. None: the cycle had neither evidence nor new
    buckets, or ended before it read them (the next cycle then continues from the input of this one)"""
    assumption_test: AssumptionTest | None
    """"only the prevalence has changed"; None: the cycle ended before it"""
    pooled: PrevalenceEstimate | None
    """estimate after pooling with the other environments; None: it was not pooled"""
    expected_gain: ExpectedGain | None
    """gain of a head for the estimated prevalence, even where a swap covers only part of the distance; None: the cycle
    ended before it"""
    expected_probability_gain: ExpectedProbabilityGain | None
    """the same for the probabilities; None: as there"""
    rule_gain: RuleGain | None
    """gain in the metric of the decision rule; None: the rule minimises a cost, or no head was refitted"""
    criterion: ExpectedCriterion | None
    """what the current head's decision rule reaches in this population; None: its rule has no searched cut-off, or
    there was no estimate of the prevalence"""
    candidate_criterion: ExpectedCriterion | None
    """the same of the refitted head, also where it is not worth a swap; None also where no head was refitted"""
    worst_case_cost_increase: float | None
    """largest possible cost of a swap per decision on this window, whatever has changed; None: the cycle ended before
    it"""
    candidate: PostProcessingHead | None
    """the head to swap in; None unless the outcome is swap"""
    performance: PerformanceEstimate | None
    """of the current head's decisions, without labels; None: no metrics were asked for, or there was no
    estimate of the prevalence"""
    candidate_performance: PerformanceEstimate | None
    """the same of the refitted head, also where it is not worth a swap; None also where no head was refitted"""
    policy: AdaptationPolicy
    context: AdaptationContext
    seed: int
    samples: int
    """rows of the window"""
    calibration_digest: str
    quantifier_digest: str | None
    """None: no quantifier could be fitted"""
    head_digest: str
    """of the current head"""
    window_digest: str | None
    """over logits and groups; None: they are not legal arrays"""

    def __post_init__(self) -> None:
        """Freeze the array."""
        assumed = as_parameter(self.assumed_prevalence, field="assumed_prevalence")
        object.__setattr__(self, "assumed_prevalence", read_only(assumed))
        if self.outcome not in OUTCOMES:
            raise InvalidInputError(f"expected one of {', '.join(OUTCOMES)}.", field="outcome")
        for name in ("seed", "samples"):
            value = cast("object", getattr(self, name))
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidInputError("expected a whole number.", field=name)

    def because(self, reason: Reason) -> Self:
        """The report with a further reason."""
        return replace(self, reasons=(*self.reasons, reason))

    @property
    def mode(self) -> Mode:
        """Mode of a swap: that of the policy, or propose where the policy demands it after unusual traffic."""
        is_unusual = any(reason.code == "traffic_unusual" for reason in self.reasons)
        if self.policy.mode == "auto" and self.policy.unusual_traffic == "propose" and is_unusual:
            return "propose"
        return self.policy.mode

    def to_document(self) -> dict[str, Any]:
        """The report as JSON values; every number survives the round trip exactly."""
        return {
            "schema_version": SCHEMA_VERSION,
            "outcome": self.outcome,
            "reasons": [reason.to_document() for reason in self.reasons],
            "change_points": [change.to_document() for change in self.change_points],
            "assumed_prevalence": self.assumed_prevalence.tolist(),
            "policy": self.policy.to_document(),
            "context": self.context.to_document(),
            **{name: _document(getattr(self, name)) for name in _PARTS},
            **{name: getattr(self, name) for name in _PLAIN},
        }

    def to_json(self) -> str:
        """`to_document` as a string, equal for equal reports."""
        return canonical(self.to_document())

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote.

        Raises:
            InvalidInputError: a field is missing, unknown or has an illegal value.
        """
        found = take_fields(document, SCHEMA_VERSION, required=tuple(item.name for item in fields(cls)))
        for name in ("reasons", "change_points"):
            if not isinstance(found[name], list):
                raise InvalidInputError("expected a list.", field=name)
        changes = cast("list[Any]", found["change_points"])
        found["change_points"] = tuple(ChangePoint.from_document(item) for item in changes)
        found["reasons"] = tuple(Reason.from_document(item) for item in cast("list[Any]", found["reasons"]))
        found["policy"] = AdaptationPolicy.from_document(found["policy"])
        found["context"] = AdaptationContext.from_document(found["context"])
        for name, kind in _PARTS.items():
            if found[name] is not None:
                found[name] = kind.from_document(found[name])
        return cls(**found)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote.

        Raises:
            InvalidInputError: not JSON, or a field is missing, unknown or has an illegal value.
        """
        return cls.from_document(parse_document(text, field="report"))


_PARTS: Mapping[str, type[_Part]] = {
    "prevalence": PrevalenceEstimate,
    "prevalence_without_labels": PrevalenceEstimate,
    "shift_test": ShiftTest,
    "evidence": ShiftEvidence,
    "assumption_test": AssumptionTest,
    "pooled": PrevalenceEstimate,
    "expected_gain": ExpectedGain,
    "expected_probability_gain": ExpectedProbabilityGain,
    "rule_gain": RuleGain,
    "criterion": ExpectedCriterion,
    "candidate_criterion": ExpectedCriterion,
    "candidate": PostProcessingHead,
    "performance": PerformanceEstimate,
    "candidate_performance": PerformanceEstimate,
}
"""Fields with their own documents, or None."""


def _document(value: _Part | None) -> dict[str, Any] | None:
    return None if value is None else value.to_document()
