"""Checked uncertainties of predictions: given, or the spread over the outputs of several members."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.design.validation.values.samples import INVALID, ModelOutputs
from lifelong_core.metrics.counting.uncertainty_aware import member_spread
from lifelong_core.values.arrays import Floats, Mask, as_decisions, as_probabilities
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.uncertainties import UncertaintyKind, as_uncertainties, check_members

BINARY_CLASSES = 2
ROUNDING = 1e-7
"""Spread of equal members: a softmax of float32 logits is not exact"""


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
