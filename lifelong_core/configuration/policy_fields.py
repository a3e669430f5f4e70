"""The fields of an adaptation policy: type, default, range and meaning of each.

`AdaptationPolicy` inherits and checks them; the settings build their model from them. The module loads without numpy.
"""

from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

Mode: TypeAlias = Literal["auto", "propose", "shadow"]
OnViolation: TypeAlias = Literal["refuse", "report"]
OnUnusualTraffic: TypeAlias = Literal["report", "propose"]

MODES: tuple[Mode, ...] = get_args(Mode)

LARGEST_STEP: Final = 2
"""Largest L1 distance of two prevalences: a limit of this size has no effect."""
MOST_LOOKS: Final = 1e12
"""Largest average run length: the evidence is capped there (`evidence.LARGEST_LOG_CAPITAL`)."""


def _declared(meaning: str, **limits: float) -> dict[str, Any]:
    """Metadata of a field; the limits have pydantic's names: gt, ge, lt, le."""
    return {"meaning": meaning, "limits": limits}


@dataclass(frozen=True)
class PolicyFields:
    """Conditions under which a cycle swaps the head; the metadata of a field hold its `meaning` and its `limits`."""

    minimum_samples: int = field(
        default=200,
        metadata=_declared("Below this effective window size a cycle always keeps the head.", gt=0),
    )
    level: float = field(
        default=0.01,
        metadata=_declared(
            "Significance level, over all classes, of 'the prevalence has shifted', for a single window.",
            gt=0,
            lt=1,
        ),
    )
    average_run_length: float = field(
        default=175_200,
        metadata=_declared(
            "Mean number of cycles between two false alarms of the sequential test; 20 years of hours.",
            ge=1,
            le=MOST_LOOKS,
        ),
    )
    tolerance: float = field(
        default=0.01,
        metadata=_declared(
            "Share of the population that may change its class before the sequential test sees a shift.",
            ge=0,
            le=1,
        ),
    )
    change_level: float = field(
        default=0.005,
        metadata=_declared(
            "Largest probability of a false change point in a window. Every estimate uses the predictions after the"
            " last change point. 0: no search for change points.",
            ge=0,
            le=1,
        ),
    )
    assumption_level: float = field(
        default=0.01,
        metadata=_declared("Significance level of 'more has changed than the prevalence'.", gt=0, lt=1),
    )
    assumption_violated: OnViolation = field(
        default="refuse",
        metadata=_declared(
            "If more has changed than the prevalence: refuse to swap, or report it and continue."
        ),
    )
    confidence: float = field(
        default=0.95, metadata=_declared("Confidence of every reported interval.", gt=0, lt=1)
    )
    minimum_gain: float = field(
        default=0.005,
        metadata=_declared(
            "Smallest drop of the expected cost that justifies a swap, as a fraction of the largest difference that a"
            " decision makes.",
            ge=0,
        ),
    )
    minimum_probability_gain: float = field(
        default=0.002,
        metadata=_declared(
            "Smallest drop of the expected log loss (nats per prediction) that justifies a swap which does not raise"
            " the expected cost; 10 or more: no swap by probabilities alone.",
            ge=0,
        ),
    )
    maximum_step: float = field(
        default=LARGEST_STEP,
        metadata=_declared(
            "Largest L1 distance by which one swap moves the assumed prevalence; 2: no limit.",
            gt=0,
            le=LARGEST_STEP,
        ),
    )
    cool_down_seconds: float = field(
        default=0,
        metadata=_declared(
            "No swap within this time after the last change of the head, by a cycle or a person.", ge=0
        ),
    )
    hysteresis: float = field(
        default=1,
        metadata=_declared(
            "A swap back towards the prevalence of the previous head must gain (1 + hysteresis) times as much.",
            ge=0,
        ),
    )
    mode: Mode = field(
        default="auto", metadata=_declared("auto: swap; propose: ask a person; shadow: only report.")
    )
    pooling: bool = field(
        default=False,
        metadata=_declared(
            "Shrink an estimate from few samples towards those of the model's other environments."
        ),
    )
    labelled_evidence: bool = field(
        default=False,
        metadata=_declared(
            "Combine the estimate of the prevalence with the labels of the window. Labels of cases that were chosen by"
            " suspicion, without a labelling probability, mislead it."
        ),
    )
    unusual_traffic: OnUnusualTraffic = field(
        default="propose",
        metadata=_declared(
            "If a cycle swaps and much of its window came in a burst, or with tokens that are not bound to the"
            " environment and sent little there before: propose: ask a person; report: swap, and say so."
        ),
    )
