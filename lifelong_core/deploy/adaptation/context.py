"""Circumstances of a cycle beside its window, as a value, so that the cycle stays a pure function."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, cast

import numpy as np

from lifelong_core.deploy.adaptation.labelled_evidence import LabelledEvidence
from lifelong_core.deploy.adaptation.traffic import Traffic
from lifelong_core.deploy.documents import take_fields
from lifelong_core.deploy.quantification.prevalence_estimate import PrevalenceEstimate
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, as_parameter, as_prevalence, read_only
from lifelong_core.values.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class AdaptationContext(ArrayValue):
    """The circumstances of a cycle.

    Examples:
        >>> AdaptationContext(seconds_since_swap=60.0).pinned
        False
    """

    seconds_since_swap: float | None = None
    """since the last change of the head in this environment; None: the head never changed"""
    pinned: bool = False
    """whether a person has pinned the head"""
    previous_prevalence: Floats | None = None
    """shape (C,), assumed prevalence of the previous head; None: there was no previous head"""
    others: tuple[PrevalenceEstimate, ...] = ()
    """newest estimates of the model's other environments"""
    rejected: tuple[PrevalenceEstimate, ...] = ()
    """estimates of the proposals that a person has rejected since the current head became active"""
    traffic: Traffic | None = None
    """origin of the window's predictions; None: not examined, for example where no swap is due"""
    labelled: LabelledEvidence | None = None
    """labels of the window's predictions; None: the policy does not use them"""

    def __post_init__(self) -> None:
        """Check and freeze the values.

        Raises:
            InvalidInputError: a value is out of range; the message names the field.
        """
        if self.seconds_since_swap is not None:
            seconds = as_parameter(self.seconds_since_swap, field="seconds_since_swap")
            if seconds.ndim or seconds < 0:
                raise InvalidInputError("expected a number that is not negative.", field="seconds_since_swap")
            object.__setattr__(self, "seconds_since_swap", float(seconds))
        if not isinstance(cast("object", self.pinned), bool):
            raise InvalidInputError("expected true or false.", field="pinned")
        if self.previous_prevalence is not None:
            as_prevalence(self.previous_prevalence, field="previous_prevalence")
            previous = np.array(self.previous_prevalence, dtype=np.float64)
            object.__setattr__(self, "previous_prevalence", read_only(previous))
        object.__setattr__(self, "others", tuple(self.others))
        object.__setattr__(self, "rejected", tuple(self.rejected))

    def is_rejected(self, estimate: PrevalenceEstimate) -> bool:
        """Whether the intervals overlap those of a rejected estimate in every class."""
        return any(
            bool(np.all((estimate.low <= other.high) & (other.low <= estimate.high)))
            for other in self.rejected
        )

    def to_document(self) -> dict[str, Any]:
        """The context as JSON values; every number survives the round trip exactly."""
        previous = self.previous_prevalence
        return {
            "schema_version": 1,
            "seconds_since_swap": self.seconds_since_swap,
            "pinned": self.pinned,
            "previous_prevalence": None if previous is None else previous.tolist(),
            "others": [other.to_document() for other in self.others],
            "rejected": [other.to_document() for other in self.rejected],
            "traffic": None if self.traffic is None else self.traffic.to_document(),
            "labelled": None if self.labelled is None else self.labelled.to_document(),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote.

        Raises:
            InvalidInputError: a field is missing, unknown or has an illegal value.
        """
        found = take_fields(document, 1, required=tuple(item.name for item in fields(cls)))
        if found["traffic"] is not None:
            found["traffic"] = Traffic.from_document(found["traffic"])
        if found["labelled"] is not None:
            found["labelled"] = LabelledEvidence.from_document(found["labelled"])
        for name in ("others", "rejected"):
            estimates = found[name]
            if not isinstance(estimates, list):
                raise InvalidInputError("expected a list of estimates.", field=name)
            found[name] = tuple(
                PrevalenceEstimate.from_document(item) for item in cast("list[Any]", estimates)
            )
        return cls(**found)
