"""Logits of the same samples by several members: models, dropout draws or augmentations."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lifelong_core.values.arrays import Logits, as_logits, expect_logits, with_both_columns
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.uncertainties import MOST_MEMBERS, check_members

MEMBER_PREFIX = "logits_"
MEMBER_NAMES = tuple(f"{MEMBER_PREFIX}{number}" for number in range(MOST_MEMBERS + 2))
"""Names of the arrays of members in an npz file, with one below and one above those that are allowed, to refuse them"""


def take_members(arrays: Mapping[str, NDArray[np.generic]]) -> tuple[NDArray[np.generic], ...]:
    """The arrays logits_1, logits_2, ... of a file, in their order; empty without any.

    Raises:
        InvalidInputError: the numbers do not begin with 1 or leave one out, there are too many, or one has a single
            column where the others have one per class.

    Examples:
        >>> rows = np.eye(2)
        >>> [array.tolist() for array in take_members({"logits_2": -rows, "logits_1": 2 * rows})]
        [[[2.0, 0.0], [0.0, 2.0]], [[-1.0, -0.0], [-0.0, -1.0]]]
    """
    found = [name for name in MEMBER_NAMES if name in arrays]
    if len(found) > MOST_MEMBERS:
        check_members(len(found))
    for place, name in enumerate(found, start=1):
        if name != f"{MEMBER_PREFIX}{place}":
            raise InvalidInputError(
                f"the members of the file are not numbered from 1: there is {name}, but no {MEMBER_PREFIX}{place}.",
                field=name,
            )
        # A single column is the logit of the positive class; beside two columns it is more likely one of them.
        if _has_one_column(arrays[name]) != _has_one_column(arrays.get("logits", arrays[found[0]])):
            raise InvalidInputError(
                f"expected as many columns as the other arrays of logits have, got shape {arrays[name].shape}.",
                field=name,
            )
    return tuple(arrays[name] for name in found)


def _has_one_column(array: NDArray[np.generic]) -> bool:
    return array.ndim < 2 or array.shape[1] == 1


def as_members(members: Sequence[ArrayLike], *, samples: int, classes: int) -> Logits:
    """Checked logits of the members, shape (M, N, C).

    Raises:
        InvalidInputError: there is one or too many, one has another shape or a value that is not finite, one holds
            probabilities, or all are the same.
    """
    check_members(len(members))
    found = np.stack(
        [_member(values, place, samples, classes) for place, values in enumerate(members, start=1)]
    )
    if (found == found[0]).all():
        raise InvalidInputError(
            "all members are equal, so they give no uncertainty.",
            field="members",
            hint="Members must differ, for example in their training, dropout or augmentation.",
        )
    return found


def _member(values: ArrayLike, place: int, samples: int, classes: int) -> Logits:
    field = f"{MEMBER_PREFIX}{place}"
    try:
        array = with_both_columns(np.asarray(values))
    except ValueError as error:
        raise InvalidInputError("expected rows of equal length.", field=field) from error
    if array.shape != (samples, classes):
        raise InvalidInputError(
            f"expected shape ({samples}, {classes}), as for the logits, got {array.shape}.",
            field=field,
            hint="Give the logits of the same samples, in the same order, for every member.",
        )
    logits = as_logits(array, field=field)
    expect_logits(logits, field=field)
    return logits
