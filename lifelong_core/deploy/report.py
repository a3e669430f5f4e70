"""The report of one cycle."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, TypeAlias

from lifelong_core.arrays import Floats, frozen
from lifelong_core.deploy.checks import as_parameter
from lifelong_core.deploy.documents import canonical, parse_document, take_fields
from lifelong_core.deploy.gain import ExpectedGain
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.policy import AdaptationPolicy
from lifelong_core.deploy.quantification import PrevalenceEstimate
from lifelong_core.deploy.shift import ShiftTest
from lifelong_core.deploy.values import ArrayValue
from lifelong_core.errors import InvalidInputError

Outcome: TypeAlias = Literal["keep", "swap", "refuse"]
OUTCOMES: tuple[Outcome, ...] = ("keep", "swap", "refuse")

ReasonCode: TypeAlias = Literal[
    "calibration_unidentifiable",
    "classes_differ",
    "window_invalid",
    "window_too_small",
    "prevalence_unchanged",
    "prevalence_shifted",
    "calibration_changed",
    "gain_too_small",
    "gain_sufficient",
]


@dataclass(frozen=True)
class Reason:
    """Why a cycle ended as it did."""

    code: ReasonCode
    """for machines"""
    text: str
    """the same as a sentence with its figures, for people"""


@dataclass(frozen=True, eq=False)
class AdaptationReport(ArrayValue):
    """What one cycle found and decided, with all that is needed to replay it beside the logged window."""

    outcome: Outcome
    reasons: tuple[Reason, ...]
    prevalence: PrevalenceEstimate | None
    """of the window's population; None when nothing could be estimated"""
    assumed_prevalence: Floats
    """shape (C,), of the current head"""
    shift_test: ShiftTest | None
    """None: the cycle ended before it"""
    expected_gain: ExpectedGain | None
    """None: the cycle ended before it"""
    candidate: PostProcessingHead | None
    """the head to swap in; None unless the outcome is swap"""
    policy: AdaptationPolicy
    seed: int
    samples: int
    """rows of the window"""
    calibration_digest: str
    quantifier_digest: str | None
    """None: no quantifier could be fitted"""
    head_digest: str
    """of the current head"""
    window_digest: str | None
    """over logits and groups; None when they are no numbers of a legal shape"""

    def __post_init__(self) -> None:
        """Freeze the array."""
        assumed = as_parameter(self.assumed_prevalence, field="assumed_prevalence")
        object.__setattr__(self, "assumed_prevalence", frozen(assumed))
        if self.outcome not in OUTCOMES:
            raise InvalidInputError(f"expected one of {', '.join(OUTCOMES)}.", field="outcome")

    def to_document(self) -> dict[str, Any]:
        """The report as JSON values; every number survives the round trip exactly."""
        return {
            "schema_version": 1,
            "outcome": self.outcome,
            "reasons": [asdict(reason) for reason in self.reasons],
            "prevalence": _document(self.prevalence),
            "assumed_prevalence": self.assumed_prevalence.tolist(),
            "shift_test": _document(self.shift_test),
            "expected_gain": _document(self.expected_gain),
            "candidate": _document(self.candidate),
            "policy": self.policy.to_document(),
            "seed": self.seed,
            "samples": self.samples,
            "calibration_digest": self.calibration_digest,
            "quantifier_digest": self.quantifier_digest,
            "head_digest": self.head_digest,
            "window_digest": self.window_digest,
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
        found = take_fields(document, 1, required=tuple(cls.__dataclass_fields__))
        found["reasons"] = tuple(Reason(item["code"], item["text"]) for item in found["reasons"])
        found["policy"] = AdaptationPolicy.from_document(found["policy"])
        for name, kind in (
            ("prevalence", PrevalenceEstimate),
            ("shift_test", ShiftTest),
            ("expected_gain", ExpectedGain),
            ("candidate", PostProcessingHead),
        ):
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


def _document(
    value: PrevalenceEstimate | ShiftTest | ExpectedGain | PostProcessingHead | None,
) -> dict[str, Any] | None:
    return None if value is None else value.to_document()
