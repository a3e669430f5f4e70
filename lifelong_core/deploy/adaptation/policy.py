"""Policy of adaptation: when a cycle swaps the head, and whether a person must approve it."""

import hashlib
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, fields
from typing import Any, Self, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.configuration.policy_fields import PolicyFields
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
class AdaptationPolicy(PolicyFields):
    """Conditions under which a cycle swaps the head, with the label errors of the task; `PolicyFields` explains them.

    Examples:
        >>> AdaptationPolicy(level=0.001).minimum_samples
        200
        >>> AdaptationPolicy(mode="manual")
        Traceback (most recent call last):
        ...
        lifelong_core.values.errors.InvalidInputError: mode: expected one of auto, propose, shadow.
    """

    label_error_rates: tuple[float, ...] = ()
    """largest share of wrong calibration labels of each class, or one for all; empty: every label is right. The
    intervals then hold whatever the errors are (`uncertainty.label_doubt`)"""

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidInputError: a value is out of range; the message names the field.
        """
        for item in fields(PolicyFields):
            object.__setattr__(self, item.name, _checked(item, getattr(self, item.name)))
        rates = _number(self.label_error_rates, field="label_error_rates")
        if rates.ndim != 1 or not ((rates >= 0) & (rates < 1)).all():
            raise InvalidInputError("expected a list of shares from 0 to below 1.", field="label_error_rates")
        object.__setattr__(self, "label_error_rates", tuple(rates.tolist()) if rates.any() else ())

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


def _checked(item: Field[Any], value: Any) -> Any:
    """The value of a declared field in the declared type; the message of an error names the field."""
    kind, limits, name = item.type, item.metadata["limits"], item.name
    if choices := get_args(kind):
        if value not in choices:
            raise InvalidInputError(f"expected one of {', '.join(choices)}.", field=name)
        return value
    if kind is bool:
        if not isinstance(value, bool):
            raise InvalidInputError("expected true or false.", field=name)
        return value
    if kind is int:
        return _positive_count(value, field=name)
    if limits == {"gt": 0, "lt": 1}:
        return as_level(value, name)
    number = _between(value, limits.get("ge", limits.get("gt")), limits.get("le", np.inf), field=name)
    if number == limits.get("gt"):
        raise InvalidInputError("expected a positive number.", field=name)
    return number


def _positive_count(value: object, *, field: str) -> int:
    number = _number(value, field=field)
    if number.ndim or number != np.rint(number) or number < 1:
        raise InvalidInputError("expected a positive whole number.", field=field)
    return int(number)


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
