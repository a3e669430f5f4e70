"""Probabilities for other class shares than those that they were calibrated for."""

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.values.arrays import Floats, as_prevalence, as_probabilities
from lifelong_core.values.errors import InvalidInputError


def corrected_probabilities(probabilities: ArrayLike, *, given: ArrayLike, wanted: ArrayLike) -> Floats:
    """Probabilities p_k wanted_k / given_k, normalised (Saerens et al. 2002).

    Probabilities that are calibrated in a population with the class shares `given` are calibrated in one with the
    shares `wanted`, if the images of each class are the same.

    Args:
        probabilities: shape (N, C).
        given: shape (C,), class shares for which the probabilities hold.
        wanted: shape (C,), class shares of the other population.

    Returns:
        Shape (N, C). A row whose classes all have the wanted share 0 becomes `wanted`.

    Raises:
        InvalidInputError: a shape or a value does not fit, or a class is wanted that has the given share 0.

    Examples:
        >>> corrected_probabilities([[0.5, 0.5]], given=[0.5, 0.5], wanted=[0.98, 0.02]).tolist()
        [[0.98, 0.02]]
    """
    shares = as_prevalence(wanted, field="wanted")
    classes = shares.size
    present = as_prevalence(given, classes=classes, field="given")
    missing = np.flatnonzero((shares > 0) & (present == 0))
    if missing.size:
        raise InvalidInputError(
            f"the probabilities hold for a population without class {missing[0]}, which is wanted.",
            field="given",
            hint="State the class shares of the data on which the probabilities were calibrated.",
        )
    weights = np.where(shares > 0, shares, 0.0) / np.where(shares > 0, present, 1.0)
    weighted = as_probabilities(probabilities, classes=classes) * weights
    sums = weighted.sum(axis=1, keepdims=True)
    return np.where(sums > 0, weighted / np.where(sums > 0, sums, 1.0), shares)
