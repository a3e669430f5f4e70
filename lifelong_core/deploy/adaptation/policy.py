"""Policy of adaptation: when a cycle swaps the head, and whether a person must approve it."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.configuration import policy_defaults as defaults
from lifelong_core.configuration.policy_defaults import (
    LARGEST_STEP,
    MODES,
    MOST_LOOKS,
    ON_UNUSUAL_TRAFFIC,
    ON_VIOLATION,
    Mode,
    OnUnusualTraffic,
    OnViolation,
)
from lifelong_core.deploy.checks import as_level
from lifelong_core.deploy.documents import canonical, take_fields
from lifelong_core.values.arrays import Floats, as_parameter
from lifelong_core.values.errors import InvalidInputError

SCHEMA_VERSION = 6

NO_PROBABILITY_GAIN = 10.0
"""No gain in log loss exceeds this (`gain.LOWEST_PROBABILITY`): with it, the policy swaps by decisions alone."""

_WITHOUT_EFFECT_ON_EVIDENCE = (
    "unusual_traffic",
    "change_level",
    "minimum_probability_gain",
    "labelled_evidence",
    "label_error_rates",
)
"""Fields that the evidence of a shift does not depend on."""


@dataclass(frozen=True)
class AdaptationPolicy:
    """Conditions under which a cycle swaps the head.

    Examples:
        >>> AdaptationPolicy(level=0.001).minimum_samples
        200
        >>> AdaptationPolicy(mode="manual")
        Traceback (most recent call last):
        ...
        lifelong_core.values.errors.InvalidInputError: mode: expected one of auto, propose, shadow.
    """

    minimum_samples: int = defaults.MINIMUM_SAMPLES
    """below this effective window size a cycle always keeps the head"""
    level: float = defaults.LEVEL
    """significance level, over all classes, of "the prevalence has shifted", for a single window"""
    average_run_length: float = defaults.AVERAGE_RUN_LENGTH
    """for evidence over many cycles: mean number of looks between two false alarms; the default is 20 years of hours"""
    tolerance: float = defaults.TOLERANCE
    """share of the population that may change its class without this counting as a shift in the evidence"""
    change_level: float = defaults.CHANGE_LEVEL
    """largest probability of a change point in a window without a change; 0: no search, and every estimate uses the
    whole window"""
    assumption_level: float = defaults.ASSUMPTION_LEVEL
    """significance level of "more has changed than the prevalence" """
    assumption_violated: OnViolation = defaults.ASSUMPTION_VIOLATED
    """action if more has changed than the prevalence: refuse to swap, or report it and continue"""
    confidence: float = defaults.CONFIDENCE
    """nominal coverage of every reported interval"""
    minimum_gain: float = defaults.MINIMUM_GAIN
    """smallest drop of the expected cost that justifies a swap, as a fraction of the largest difference a decision
    makes"""
    minimum_probability_gain: float = defaults.MINIMUM_PROBABILITY_GAIN
    """smallest drop of the expected log loss, in nats per prediction, that justifies a swap which does not raise the
    expected cost; NO_PROBABILITY_GAIN: no swap by probabilities alone"""
    maximum_step: float = defaults.MAXIMUM_STEP
    """largest L1 distance, in (0, 2], by which one swap moves the assumed prevalence; 2: no limit"""
    cool_down_seconds: float = defaults.COOL_DOWN_SECONDS
    """no swap within this time after the last one"""
    hysteresis: float = defaults.HYSTERESIS
    """a swap back towards the prevalence that the previous head assumed must gain (1 + hysteresis) times as much"""
    mode: Mode = defaults.MODE
    """auto: swap; propose: ask a person; shadow: report only"""
    pooling: bool = defaults.POOLING
    """shrink an estimate from few samples towards those of the model's other environments"""
    labelled_evidence: bool = defaults.LABELLED_EVIDENCE
    """combine the estimate of the prevalence with the labels of the window"""
    unusual_traffic: OnUnusualTraffic = defaults.UNUSUAL_TRAFFIC
    """handling of a swap if the window came in a burst, or from unusual senders: a person is asked; or the swap is
    published, and the report says so"""
    label_error_rates: tuple[float, ...] = ()
    """largest share of wrong calibration labels of each class, or one for all; empty: every label is right. The
    intervals then hold whatever the errors are (`uncertainty.label_doubt`)"""

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidInputError: a value is out of range; the message names the field.
        """
        samples = _number(self.minimum_samples, field="minimum_samples")
        if samples.ndim or samples != np.rint(samples) or samples < 1:
            raise InvalidInputError("expected a positive whole number.", field="minimum_samples")
        object.__setattr__(self, "minimum_samples", int(samples))
        for name in ("level", "assumption_level", "confidence"):
            object.__setattr__(self, name, as_level(getattr(self, name), name))
        for name, low, high in (
            ("average_run_length", 1.0, MOST_LOOKS),
            ("tolerance", 0.0, 1.0),
            ("change_level", 0.0, 1.0),
            ("minimum_gain", 0.0, np.inf),
            ("minimum_probability_gain", 0.0, np.inf),
            ("cool_down_seconds", 0.0, np.inf),
            ("hysteresis", 0.0, np.inf),
        ):
            object.__setattr__(self, name, _between(getattr(self, name), low, high, field=name))
        step = _between(self.maximum_step, 0.0, LARGEST_STEP, field="maximum_step")
        if step == 0:
            raise InvalidInputError("expected a positive number.", field="maximum_step")
        object.__setattr__(self, "maximum_step", step)
        for name, choices in (
            ("mode", MODES),
            ("assumption_violated", ON_VIOLATION),
            ("unusual_traffic", ON_UNUSUAL_TRAFFIC),
        ):
            if getattr(self, name) not in choices:
                raise InvalidInputError(f"expected one of {', '.join(choices)}.", field=name)
        rates = _number(self.label_error_rates, field="label_error_rates")
        if rates.ndim != 1 or not ((rates >= 0) & (rates < 1)).all():
            raise InvalidInputError("expected a list of shares from 0 to below 1.", field="label_error_rates")
        object.__setattr__(self, "label_error_rates", tuple(rates.tolist()) if rates.any() else ())
        for name in ("pooling", "labelled_evidence"):
            if not isinstance(cast("object", getattr(self, name)), bool):
                raise InvalidInputError("expected true or false.", field=name)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over the fields that the evidence depends on: evidence is valid for one policy only.

        Name and version of the digested document are fixed: a renamed field alone starts no evidence anew.
        """
        document = {**self.to_document(), "schema_version": 2}
        for name in _WITHOUT_EFFECT_ON_EVIDENCE:
            document.pop(name, None)
        document["looks_between_false_alarms"] = document.pop("average_run_length")
        return hashlib.sha256(canonical(document).encode()).hexdigest()

    def to_document(self) -> dict[str, Any]:
        """The policy as JSON values; without label errors, their field is left out."""
        document = {"schema_version": SCHEMA_VERSION, **asdict(self)}
        del document["label_error_rates"]
        if self.label_error_rates:
            document["label_error_rates"] = list(self.label_error_rates)
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote.

        Raises:
            InvalidInputError: a field is missing, unknown or out of range.
        """
        names = [item.name for item in fields(cls) if item.name != "label_error_rates"]
        return cls(**take_fields(document, SCHEMA_VERSION, required=names, optional=("label_error_rates",)))


def _between(value: float, low: float, high: float, *, field: str) -> float:
    number = _number(value, field=field)
    if number.ndim or not low <= number <= high:
        limit = f"at least {low:g}" if high == np.inf else f"from {low:g} to {high:g}"
        raise InvalidInputError(f"expected a number {limit}.", field=field)
    return float(number)


def _number(value: object, *, field: str) -> Floats:
    """Check that a parameter is no boolean: numpy would read true as 1."""
    if isinstance(value, bool | np.bool_):
        raise InvalidInputError("expected a number, not true or false.", field=field)
    return as_parameter(cast("ArrayLike", value), field=field)
