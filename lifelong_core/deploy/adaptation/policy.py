"""The policy of adaptation: when a cycle swaps the head, and who has the last word."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np

from lifelong_core.arrays import Floats
from lifelong_core.deploy.checks import as_level, as_parameter
from lifelong_core.deploy.documents import canonical, take_fields
from lifelong_core.errors import InvalidInputError

Mode: TypeAlias = Literal["auto", "propose", "shadow"]
MODES: tuple[Mode, ...] = ("auto", "propose", "shadow")

OnViolation: TypeAlias = Literal["refuse", "report"]
ON_VIOLATION: tuple[OnViolation, ...] = ("refuse", "report")

OnUnusualTraffic: TypeAlias = Literal["report", "propose"]
ON_UNUSUAL_TRAFFIC: tuple[OnUnusualTraffic, ...] = ("report", "propose")

LARGEST_STEP = 2.0
"""L1 distance between two prevalences that share no class: a limit of this size limits nothing."""

MOST_LOOKS = 1e12
"""Evidence is not gathered any further than this (`evidence.LARGEST_LOG_CAPITAL`)."""

NO_PROBABILITY_GAIN = 10.0
"""No gain in log loss exceeds this (`gain.LOWEST_PROBABILITY`): a policy with it swaps by decisions alone."""

_NO_MATTER_OF_EVIDENCE = ("unusual_traffic", "change_level", "minimum_probability_gain")

_NEW_IN_4: Mapping[str, Any] = {"change_level": 0.0, "minimum_probability_gain": NO_PROBABILITY_GAIN}
"""Fields that documents of schema version 3 and before lack, with the values that do what was done then."""


_FIRST_FIELDS = ("minimum_samples", "level", "confidence", "minimum_gain")
"""Those of documents of schema version 1."""

_RENAMED_IN_5: Mapping[str, str] = {"looks_between_false_alarms": "average_run_length"}


@dataclass(frozen=True)
class AdaptationPolicy:
    """When a cycle swaps the head.

    Examples:
        >>> AdaptationPolicy(level=0.001).minimum_samples
        200
        >>> AdaptationPolicy(mode="manual")
        Traceback (most recent call last):
        ...
        lifelong_core.errors.InvalidInputError: mode: expected one of auto, propose, shadow.
    """

    minimum_samples: int = 200
    """below this effective window size a cycle always keeps the head"""
    level: float = 0.01
    """significance level, over all classes, of "the prevalence has shifted", for a window judged by itself"""
    average_run_length: float = 175_200
    """for evidence gathered over many cycles: mean number of looks between two false alarms; 20 years of hours"""
    tolerance: float = 0.01
    """share of the population that may change its class without this counting as a shift of the evidence"""
    change_level: float = 0.005
    """largest probability that a change of the prevalence is found in a window without one; 0: none is looked for, and
    every estimate uses the whole window"""
    assumption_level: float = 0.01
    """significance level of "more has changed than the prevalence" """
    assumption_violated: OnViolation = "refuse"
    """what to do then: refuse to swap, or report it and go on"""
    confidence: float = 0.95
    """of every reported interval"""
    minimum_gain: float = 0.005
    """smallest drop of the expected cost worth a swap, as a fraction of the largest difference a decision makes"""
    minimum_probability_gain: float = 0.002
    """smallest drop of the expected log loss, in nats per prediction, worth a swap that does not raise the expected
    cost; NO_PROBABILITY_GAIN: no swap by probabilities alone"""
    maximum_step: float = LARGEST_STEP
    """largest L1 distance, in (0, 2], by which one swap moves the assumed prevalence; 2: no limit"""
    cool_down_seconds: float = 0.0
    """no swap within this time after the last one"""
    hysteresis: float = 1.0
    """a swap back towards what the head before assumed must gain (1 + hysteresis) times as much"""
    mode: Mode = "auto"
    """auto: swap; propose: ask a person; shadow: only report"""
    pooling: bool = False
    """shrink an estimate from few samples towards those of the model's other environments"""
    unusual_traffic: OnUnusualTraffic = "report"
    """what becomes of a swap for a window that came in a burst, or from another sender than usual: it is published, and
    the report says so; or a person is asked"""

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
        if not isinstance(cast("object", self.pooling), bool):
            raise InvalidInputError("expected true or false.", field="pooling")

    @property
    def digest(self) -> str:
        """SHA-256 (hex): evidence gathered under one policy is none under another.

        Fields that the evidence does not depend on and that came later have no part in it.
        """
        document = {**self.to_document(), "schema_version": 2}
        for name in _NO_MATTER_OF_EVIDENCE:
            del document[name]
        for old, new in _RENAMED_IN_5.items():  # a name alone starts no evidence anew
            document[old] = document.pop(new)
        return hashlib.sha256(canonical(document).encode()).hexdigest()

    def to_document(self) -> dict[str, Any]:
        """The policy as JSON values."""
        return {"schema_version": 5, **asdict(self)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote, in this version or an older one.

        Raises:
            InvalidInputError: a field is missing, unknown or out of range.
        """
        names = [item.name for item in fields(cls)]
        version = document.get("schema_version") if isinstance(cast("object", document), Mapping) else None
        if version not in (1, 2, 3, 4):
            return cls(**take_fields(document, 5, required=names))
        later = _later_fields(version)
        old = {new: old for old, new in _RENAMED_IN_5.items()}
        required = [old.get(name, name) for name in names if name not in later]
        found = take_fields(document, version, required=required)
        return cls(**{_RENAMED_IN_5.get(name, name): value for name, value in found.items()}, **later)


def _later_fields(version: int) -> Mapping[str, Any]:
    """The fields that documents of a schema version lack, with the values that do what was done then."""
    if version == 4:
        return {}
    if version == 3:
        return _NEW_IN_4
    defaults = asdict(AdaptationPolicy()) | _NEW_IN_4
    if version == 2:
        return {name: defaults[name] for name in ("unusual_traffic", *_NEW_IN_4)}
    return {name: value for name, value in defaults.items() if name not in _FIRST_FIELDS}


def _between(value: float, low: float, high: float, *, field: str) -> float:
    number = _number(value, field=field)
    if number.ndim or not low <= number <= high:
        limit = f"at least {low:g}" if high == np.inf else f"from {low:g} to {high:g}"
        raise InvalidInputError(f"expected a number {limit}.", field=field)
    return float(number)


def _number(value: float, *, field: str) -> Floats:
    """A parameter that is no truth value: numpy would read true as 1."""
    if isinstance(value, bool | np.bool_):
        raise InvalidInputError("expected a number, not true or false.", field=field)
    return as_parameter(value, field=field)
