"""Circumstances of a cycle beside its window, such as labels, as a value, so that the cycle stays a pure function."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self, cast

import numpy as np

from lifelong_core.deploy.adaptation.traffic import Traffic
from lifelong_core.deploy.documents import take_fields
from lifelong_core.deploy.performance.labelled.prevalence_evidence import LABELS_ONLY, with_labels
from lifelong_core.deploy.quantification.prevalence_estimate import Analysis, PrevalenceEstimate
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, Integers, Mask, as_parameter, as_prevalence, read_only
from lifelong_core.values.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class LabelledEvidence(ArrayValue):
    """Labels of predictions of a window, as far as a cycle needs them."""

    labels: Integers
    """shape (m,), true classes"""
    times: Floats
    """shape (m,), seconds since 1970 (UTC) of the predictions"""
    propensities: Floats | None = None
    """shape (m,), in (0, 1]: probability with which each was chosen for labelling; None: unknown"""
    groups: Integers | None = None
    """shape (m,), number of each sample's group; samples of one group may depend on each other; None: independent"""

    def __post_init__(self) -> None:
        """Check and freeze the arrays.

        Raises:
            InvalidInputError: a shape or a value does not fit.
        """
        size = np.size(self.times)
        for name in ("labels", "times", "propensities", "groups"):
            if getattr(self, name) is None:
                continue
            array = as_parameter(getattr(self, name), field=name)
            if array.shape != (size,):
                raise InvalidInputError(f"expected shape ({size},), got {array.shape}.", field=name)
            if name in ("labels", "groups"):
                if (array != np.rint(array)).any() or (array < 0).any():
                    raise InvalidInputError("expected whole numbers from 0 on.", field=name)
                array = array.astype(np.int64)
            object.__setattr__(self, name, read_only(array))
        if self.propensities is not None and not ((self.propensities > 0) & (self.propensities <= 1)).all():
            raise InvalidInputError("expected probabilities above 0 and up to 1.", field="propensities")

    def since(self, seconds: float) -> Self:
        """The labels of predictions from this time on (seconds since 1970)."""
        kept: Mask = self.times >= seconds
        return replace(
            self,
            labels=self.labels[kept],
            times=self.times[kept],
            propensities=None if self.propensities is None else self.propensities[kept],
            groups=None if self.groups is None else self.groups[kept],
        )

    def to_document(self) -> dict[str, Any]:
        """The labels as JSON values; every number survives the round trip exactly."""
        return {
            "schema_version": 1,
            "labels": self.labels.tolist(),
            "times": self.times.tolist(),
            "propensities": None if self.propensities is None else self.propensities.tolist(),
            "groups": None if self.groups is None else self.groups.tolist(),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote.

        Raises:
            InvalidInputError: a field is missing, unknown or has an illegal value.
        """
        return cls(**take_fields(document, 1, required=("labels", "times", "propensities", "groups")))


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


def add_labels(analysis: Analysis, labelled: LabelledEvidence) -> Analysis:
    """Combine the estimate of an analysis with labels (`with_labels`), and shrink its influences accordingly.

    The combined estimate is p + K (q - p), with the class shares q of the labels and K from the inverse covariances, so
    that (I - K) V is its covariance where V is that of p. Window and calibration set keep the part I - K of their
    influence: none, where the labels replace an estimate that they contradict. The covariance due to the labels belongs
    to this window alone, like that of its changes.

    Raises:
        InvalidInputError: a label is not a class.
    """
    own = analysis.estimate
    if not labelled.labels.size:
        return analysis
    combined = with_labels(own, labelled.labels, propensities=labelled.propensities, groups=labelled.groups)
    is_replaced = bool((own.degrees_of_freedom <= 0).any()) or any(
        caution.endswith(LABELS_ONLY) for caution in combined.cautions
    )
    kept = np.zeros_like(own.covariance)
    if not is_replaced:
        # On the directions that sum to zero; elsewhere both covariances are zero.
        kept = combined.covariance @ np.linalg.pinv(own.covariance, rcond=1e-9, hermitian=True)
    influence = analysis.influence
    remaining = replace(
        influence,
        window=influence.window @ kept.T,
        pseudo=influence.pseudo @ kept.T,
        calibration=influence.calibration @ kept.T,
    )
    further = combined.covariance - kept @ own.covariance @ kept.T
    sizes, axes = np.linalg.eigh((further + further.T) / 2)
    due_to_labels = (axes * np.maximum(sizes, 0)) @ axes.T
    return replace(
        analysis,
        # The labelled samples are a part of the window, which the other tests of a cycle see only once.
        estimate=replace(combined, effective_n=own.effective_n),
        influence=remaining,
        doubt=kept @ analysis.doubt @ kept.T,
        change_doubt=kept @ analysis.change_doubt @ kept.T + due_to_labels,
    )
