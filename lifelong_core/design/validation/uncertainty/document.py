"""Settings and scores of an uncertainty-aware validation, as documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from pydantic import AfterValidator, Field

from lifelong_core.design.validation.values.metric_value import Number, Orientation, ValueInterval
from lifelong_core.design.validation.values.samples import INVALID, ModelOutputs
from lifelong_core.metrics.counting.uncertainty_aware import member_spread
from lifelong_core.values.arrays import Floats, Mask, as_decisions, as_probabilities
from lifelong_core.values.documents import Frozen, FrozenDocument
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.uncertainties import (
    MOST_DAMPINGS,
    MOST_SIGMAS,
    UncertaintyKind,
    as_uncertainties,
    check_members,
    parse_numbers,
)

LARGEST_SIGMA = 10.0
"""Beyond, nothing changes: the weights are proportional to the distance from the threshold"""

LARGEST_DAMPING = 1e6

SIGMAS = (0.0, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)

DAMPINGS = (0.0, 0.5, 1.0, 2.0)
"""Those of the paper (fig. 8)"""


UncertaintyAwareMetric: TypeAlias = Literal["UA-accuracy", "UA-precision", "UA-recall", "UA-FPR", "UA-F1"]

BINARY_CLASSES = 2
ROUNDING = 1e-7
"""Spread of equal members: a softmax of float32 logits is not exact"""


class UncertaintyAwareCurve(Frozen):
    """One score over all sigmas, for one damping factor."""

    metric: UncertaintyAwareMetric
    orientation: Orientation = Field(description="Which values are better.")
    damping: float = Field(description="d: how strongly uncertainty reduces the weight of a sample.")
    estimates: tuple[Number, ...] = Field(
        description="One for each sigma; None: no sample that counts has a weight."
    )
    low: tuple[Number, ...] = Field(description="Lower ends of the intervals; None: no interval.")
    high: tuple[Number, ...] = Field(description="Upper ends of the intervals; None: no interval.")
    methods: tuple[ValueInterval, ...] = Field(description="How each interval is made.")
    effective_cases: tuple[float, ...] = Field(
        description="Number of equally weighted independent cases that would vary as much (Kish): the square of the"
        " sum of the weights over the sum of their squares, among the samples of the score."
    )
    notes: tuple[str, ...] = Field(default=(), description="Remarks, in sentences.")


class UncertaintyAwareChange(Frozen):
    """The change of one score from the least to the largest damping factor, or sigma, on the same samples."""

    metric: UncertaintyAwareMetric
    orientation: Orientation = Field(description="Which values of the score are better.")
    of: Literal["damping", "sigma"] = Field(description="What changes, from its least to its largest value.")
    estimate: Number = Field(description="Score at the largest value less score at the least one.")
    low: Number = Field(description="Lower end of the interval; None: no interval.")
    high: Number = Field(description="Upper end of the interval; None: no interval.")
    method: ValueInterval

    @property
    def is_better(self) -> bool | None:
        """Whether the score gets better, by the whole interval; None: undecided."""
        if self.low is None or self.high is None or self.low <= 0 <= self.high:
            return None
        return (self.low > 0) == (self.orientation == "up")


class UncertaintyAwareScores(Frozen):
    """Scores of a binary task with smaller weights near the threshold and for uncertain samples (Sperling et al.)."""

    positive_class: int
    threshold: float = Field(description="t: decided positively from this probability on.")
    kind: UncertaintyKind = Field(description="What the uncertainties are.")
    members: int | None = Field(
        description="Number of outputs of each sample whose spread is the uncertainty; None: it was given."
    )
    smallest: float = Field(description="Smallest uncertainty.")
    median: float = Field(description="Median of the uncertainties.")
    largest: float = Field(description="Largest uncertainty.")
    sigmas: tuple[float, ...] = Field(description="s: spreads of the threshold, ascending.")
    dampings: tuple[float, ...] = Field(description="d: damping factors, ascending.")
    curves: tuple[UncertaintyAwareCurve, ...] = Field(
        description="By metric, then by damping factor in their order."
    )
    changes: tuple[UncertaintyAwareChange, ...] = Field(
        default=(),
        description="By metric: with the damping factor at the least sigma, and with sigma at the least damping factor;"
        " none where there is only one value.",
    )
    warnings: tuple[str, ...] = Field(default=(), description="Limits of the scores, in sentences.")

    def curve(self, metric: str, damping: float) -> UncertaintyAwareCurve:
        """The curve of a metric for a damping factor.

        Raises:
            KeyError: there is none.
        """
        for found in self.curves:
            if (found.metric, found.damping) == (metric, damping):
                return found
        raise KeyError(metric, damping)

    @property
    def metrics(self) -> tuple[UncertaintyAwareMetric, ...]:
        """The metrics, in their order."""
        return tuple(dict.fromkeys(curve.metric for curve in self.curves))


def _ascending(values: tuple[float, ...]) -> tuple[float, ...]:
    if any(low >= high for low, high in pairwise(values)):
        raise ValueError("expected different numbers in ascending order")
    return values


class UncertaintySettings(FrozenDocument):
    """The grid on which uncertainty-aware scores are computed."""

    sigmas: Annotated[
        tuple[Annotated[float, Field(ge=0, le=LARGEST_SIGMA)], ...],
        Field(min_length=1, max_length=MOST_SIGMAS),
        AfterValidator(_ascending),
    ] = Field(default=SIGMAS, description="Spreads of the threshold, ascending.")
    dampings: Annotated[
        tuple[Annotated[float, Field(ge=0, le=LARGEST_DAMPING)], ...],
        Field(min_length=1, max_length=MOST_DAMPINGS),
        AfterValidator(_ascending),
    ] = Field(default=DAMPINGS, description="Damping factors of the uncertainties, ascending.")
    threshold: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.5, description="Probability of the positive class from which on the decision is positive."
    )
    kind: UncertaintyKind = Field(
        default="other", description="What the given uncertainties are; their largest possible value follows."
    )

    @classmethod
    def of_options(cls, given: Mapping[str, Any], names: Mapping[str, str]) -> Self | None:
        """Return the settings that options of a command, or parameters of a request, ask for; None: they ask for none.

        Args:
            given: values by setting; `sigmas` and `dampings` as numbers separated by commas; None: not asked for.
            names: name of the option or parameter of each setting, for errors.

        Raises:
            InvalidInputError: a value does not fit; the field names the option.
        """
        asked = {setting: given[setting] for setting in names if given[setting] is not None}
        for setting in asked.keys() & {"sigmas", "dampings"}:
            asked[setting] = parse_numbers(asked[setting], field=names[setting])
        try:
            return cls.from_document(asked) if asked else None
        except InvalidInputError as error:
            setting, point, place = (error.field or "").partition(".")
            field = f"{names.get(setting, setting)}{point}{place}"
            raise InvalidInputError(error.message, field=field, hint=error.hint) from error


@dataclass(frozen=True, eq=False)
class PredictedUncertainties:
    """Uncertainties of the predictions of one model."""

    values: Floats
    """shape (N,), not negative; 0 for samples without a valid output"""
    kind: UncertaintyKind
    members: int | None
    """number of members; None: the uncertainties were given"""


def predicted_uncertainties(
    outputs: ModelOutputs, is_valid: Mask, *, kind: UncertaintyKind, positive: int
) -> PredictedUncertainties | None:
    """The uncertainties of a model; None: it has none.

    Args:
        outputs: of the model.
        is_valid: shape (N,), whether the model gave a valid output.
        kind: of given uncertainties.
        positive: the positive class.

    Raises:
        InvalidInputError: uncertainties and members were given, or a shape or a value does not fit.
    """
    if outputs.uncertainties is not None and outputs.members is not None:
        raise InvalidInputError(
            "uncertainties and members were both given.", field="uncertainties", hint="Give one of them."
        )
    if outputs.members is not None:
        drawn = member_probabilities(outputs.members, is_valid, classes=BINARY_CLASSES)
        spread = np.zeros(is_valid.size)
        spread[is_valid] = member_spread(drawn[:, is_valid, positive])
        _check_distinguish(spread[is_valid], "members")
        return PredictedUncertainties(spread, "standard_deviation", len(drawn))
    if outputs.uncertainties is None:
        return None
    return PredictedUncertainties(_valid_uncertainties(outputs.uncertainties, is_valid, kind), kind, None)


def check_binary(classes: int, *, field: str) -> None:
    """Refuse uncertainty-aware scores of more than two classes.

    Raises:
        InvalidInputError: there are other than two classes.
    """
    if classes != BINARY_CLASSES:
        raise InvalidInputError(
            f"uncertainty-aware scores are defined for two classes only (Sperling et al., eqs. 1-12), the task has"
            f" {classes}.",
            field=field,
            hint="One class against the rest would need an uncertainty of each class and a threshold that agrees with"
            " the decision. Leave the uncertainties out.",
        )


def _valid_uncertainties(values: ArrayLike, is_valid: Mask, kind: UncertaintyKind) -> Floats:
    """Checked uncertainties, shape (N,), with 0 where the output is not valid.

    Raises:
        InvalidInputError: as `as_uncertainties`, or they are all the same.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InvalidInputError("expected one number per sample.", field="uncertainties") from error
    if array.shape == is_valid.shape and array.dtype.kind in "biuf":
        array = np.where(is_valid, array, 0)
    found = as_uncertainties(array, samples=is_valid.size, kind=kind)
    _check_distinguish(found[is_valid], "uncertainties")
    return found


def member_probabilities(members: Sequence[ArrayLike], is_valid: Mask, *, classes: int) -> Floats:
    """Probabilities of the members, shape (M, N, C), with equal ones where the output is not valid.

    Raises:
        InvalidInputError: too few or too many members, or a shape or a value does not fit; the field names the member.
    """
    check_members(len(members))
    drawn = np.full((len(members), is_valid.size, classes), 1 / classes)
    for place, member in enumerate(members):
        field = f"members.{place + 1}"
        try:
            array = np.asarray(member)
        except ValueError as error:
            raise InvalidInputError("expected rows of equal length.", field=field) from error
        if array.shape != (is_valid.size, classes):
            raise InvalidInputError(
                f"expected shape ({is_valid.size}, {classes}), as for the labels, got {array.shape}.",
                field=field,
                hint="Give the outputs of the same samples, in the same order, for every member.",
            )
        drawn[place, is_valid] = as_probabilities(array[is_valid], classes=classes, field=field)
    return drawn


def with_mean_of_members(outputs: ModelOutputs, *, samples: int, classes: int) -> ModelOutputs:
    """The outputs with the mean probabilities of the members, where the model has neither probabilities nor logits.

    Raises:
        InvalidInputError: as `member_probabilities`.
    """
    if outputs.members is None or outputs.probabilities is not None or outputs.logits is not None:
        return outputs
    is_valid = np.ones(samples, np.bool_)
    if outputs.decisions is not None:
        decisions = as_decisions(outputs.decisions, classes=classes)
        if decisions.size != samples:
            return outputs  # Samples.of refuses it.
        is_valid = decisions != INVALID
    mean = member_probabilities(outputs.members, is_valid, classes=classes).mean(axis=0)
    return replace(outputs, probabilities=mean)


def _check_distinguish(values: Floats, field: str) -> None:
    """Check that the uncertainties of samples differ: a common one has no effect on any score.

    Raises:
        InvalidInputError: they are all the same.
    """
    if values.size and np.ptp(values) <= (ROUNDING if field == "members" else 0):
        raise InvalidInputError(
            f"all uncertainties are {values[0]:g}, so they distinguish no samples.",
            field=field,
            hint="Members must differ, for example in their training, dropout or augmentation."
            if field == "members"
            else "Leave them out, or give those of the predictions.",
        )
