"""Uncertainty of a prediction as the spread over the members of an ensemble, dropout draws or augmentations."""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.uncertainties import LARGEST_SPREAD, check_members


def member_spread(probabilities: ArrayLike) -> Floats:
    """Standard deviation of each sample's probability over the members, with divisor M, shape (N,), in [0, 0.5].

    Sperling et al. take the epistemic uncertainty of Monte Carlo dropout, after Kendall and Gal (2017, eq. 9): the mean
    of squares less the squared mean of the M drawn predictions. This is its square root, which has the unit of a
    probability. It does not hold the uncertainty that all members share, such as noise in the image.

    Args:
        probabilities: shape (M, N), probability of the positive class by each of M >= 2 members.

    Raises:
        InvalidInputError: another shape, fewer than 2 or more than 100 members, or a value outside [0, 1].

    Examples:
        >>> member_spread([[0.25, 0.5, 0.0], [0.75, 0.5, 1.0]]).tolist()
        [0.25, 0.0, 0.5]
    """
    try:
        drawn = np.asarray(probabilities, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("expected members of the same shape.", field="members") from error
    if drawn.ndim != 2:
        raise InvalidInputError(f"expected shape (M, N), got {drawn.shape}.", field="members")
    check_members(len(drawn))
    if not ((drawn >= 0) & (drawn <= 1)).all():
        raise InvalidInputError("expected probabilities in [0, 1].", field="members")
    return np.minimum(drawn.std(axis=0), LARGEST_SPREAD)
