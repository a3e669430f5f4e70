"""The expected cost that miscalibration causes: of Bayes decisions before less after recalibration."""

from math import inf

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.metrics.counting.cost import zero_one_costs
from lifelong_core.metrics.declaration import metric
from lifelong_core.metrics.scores.samples import as_labelled_probabilities, corrected_probabilities
from lifelong_core.values.arrays import Floats, Integers, as_costs, as_groups, as_prevalence, softmax
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import solve

DEFAULT_FOLDS = 5
SMALLEST = 1e-12
"""Least probability whose logarithm is scaled"""
BLOCK = 20_000
"""Cases in memory at a time"""
MOST_FITTED = 20_000
"""Cases on which a recalibration is fitted; of more, a random part"""
ITERATIONS = 50
TOLERANCE = 1e-8
RIDGE = 1e-6
"""Weight of the squared biases in the mean loss. Without it there is no single optimum: a common shift of all biases
changes nothing, and absent classes have no best bias."""


@metric(
    "ECCL",
    "EC calibration loss",
    "What miscalibration costs: expected cost of Bayes decisions, less that after recalibration.",
    definition="Ferrer 2022",
    formula="EC(rho_EC(phi))-EC(rho_EC(affine(phi)))",
    undefined="fewer than two samples; no sample of a class with positive target prevalence",
    bounds=(-inf, inf),
    shown="(-inf,inf)",
    orientation="down",
    invalid="naive classifier value (0)",
    family="calibration",
)
def ec_calibration_loss(
    labels: ArrayLike,
    probabilities: ArrayLike,
    costs: ArrayLike | None = None,
    *,
    prevalence: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    folds: int = DEFAULT_FOLDS,
    rng: int | np.random.Generator = 0,
) -> float:
    """Expected cost of Bayes decisions by the probabilities, less that after recalibration (ECCL), less is better.

    The calibration loss of Ferrer (2022, "Analysis and comparison of classification metrics") for the expected cost
    (thesis Def. 2.23): what the miscalibration costs the user who decides by argmin_j sum_i costs[i, j] p_i (thesis
    Def. 6.9). The recalibrated probabilities are softmax(t log p + b), affine scaling, with t and b fitted by maximum
    likelihood on the other folds (on 20,000 cases at most), so that no case is recalibrated by itself.

    In the unit of the costs. At 0, the decisions cost no less after recalibration: a model that is badly calibrated may
    have a loss of 0, if the decisions are the same. Below 0, by chance or where affine scaling does not fit.

    Args:
        labels: shape (N,), true classes.
        probabilities: shape (N, C).
        costs: shape (C, D), cost of deciding j when i is true; None: 0-1 costs.
        prevalence: shape (C,), class shares of use: both probabilities are corrected to them from the class shares of
            the labels, and so are the costs of the classes; None: those of the labels.
        groups: shape (N,), e.g. patients, whose cases are in one fold; None: all samples are independent.
        folds: number of folds, 2 or more.
        rng: seed or generator of the folds.

    Returns:
        The loss; nan where it is undefined: fewer than two cases or groups, or none of a class with positive
        prevalence.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> true = rng.random(4000)
        >>> labels = (rng.random(4000) < true).astype(int)
        >>> too_sure = true**3 / (true**3 + (1 - true) ** 3)
        >>> given = np.stack([1 - too_sure, too_sure], axis=1)
        >>> ec_calibration_loss(labels, given, [[0, 1], [20, 0]]) > 0.05
        True
        >>> abs(ec_calibration_loss(labels, given)) < 0.01  # 0-1 costs: the same decisions
        True
    """
    reference, predicted = as_labelled_probabilities(labels, probabilities)
    classes = predicted.shape[1]
    matrix = zero_one_costs(classes) if costs is None else as_costs(costs, classes=classes)
    shares = None if prevalence is None else as_prevalence(prevalence, classes=classes)
    keys = as_groups(groups, samples=reference.size)
    unit = np.arange(reference.size) if keys is None else np.unique(keys, return_inverse=True)[1]
    if not folds >= 2 or int(folds) != folds:
        raise InvalidInputError(f"expected a whole number of 2 or more, got {folds}.", field="folds")
    gains = cost_gains(
        reference, predicted, matrix, unit.astype(np.int64), prevalence=shares, folds=int(folds), rng=rng
    )
    if np.isnan(gains).any() or gains.size == 0:
        return float("nan")
    return mean_gain(gains, reference, shares)


def cost_gains(
    labels: Integers,
    probabilities: Floats,
    costs: Floats,
    unit: Integers,
    *,
    prevalence: Floats | None,
    folds: int = DEFAULT_FOLDS,
    rng: int | np.random.Generator,
) -> Floats:
    """Cost of each case before less after recalibration, shape (N,); nan where there is no fold to fit on, or a class
    of use is missing.
    """
    counts = np.bincount(labels, minlength=probabilities.shape[1])
    different = np.unique(unit).size
    if different < 2 or (prevalence is not None and (counts[prevalence > 0] == 0).any()):
        return np.full(labels.size, np.nan)
    generator = np.random.default_rng(rng)
    fold = generator.permutation(int(unit.max()) + 1) % min(folds, different)
    places = np.unique(fold[unit], return_inverse=True)[1]
    if places.max() == 0:
        return np.full(labels.size, np.nan)
    given = counts / labels.size

    def paid(rows: Integers, own: Floats) -> Floats:
        if prevalence is not None:
            own = corrected_probabilities(own, given=given, wanted=prevalence)
        return costs[labels[rows], (own @ costs).argmin(axis=1)]

    gains = np.empty(labels.size)
    for place in range(int(places.max()) + 1):
        others = np.flatnonzero(places != place)
        if others.size > MOST_FITTED:
            others = generator.choice(others, MOST_FITTED, replace=False)
        scale, bias = _fit_affine(labels[others], np.log(np.maximum(probabilities[others], SMALLEST)))
        own_rows = np.flatnonzero(places == place)
        for start in range(0, own_rows.size, BLOCK):
            rows = own_rows[start : start + BLOCK]
            own = probabilities[rows]
            recalibrated = softmax(scale * np.log(np.maximum(own, SMALLEST)) + bias)
            gains[rows] = paid(rows, own) - paid(rows, recalibrated)
    return gains


def mean_gain(gains: Floats, labels: Integers, prevalence: Floats | None) -> float:
    """Mean of the gains; with a prevalence, of the means of the classes, weighted by it."""
    if prevalence is None:
        return float(gains.mean())
    return float(sum(share * gains[labels == k].mean() for k, share in enumerate(prevalence) if share > 0))


def _fit_affine(labels: Integers, logs: Floats) -> tuple[float, Floats]:
    """Scale t and biases b of the least mean log loss of softmax(t logs + b), by damped Newton steps."""
    samples, classes = logs.shape
    found = np.zeros(classes + 1)
    found[0] = 1.0
    hits: Floats = np.eye(classes)[labels]
    loss = _affine_loss(found, hits, logs)
    for _ in range(ITERATIONS):
        expected = softmax(found[0] * logs + found[1:])
        mean = (expected * logs).sum(axis=1)
        gaps = expected - hits
        gradient = np.concatenate([[(gaps * logs).sum()], gaps.sum(axis=0)]) / samples
        across = expected * (logs - mean[:, np.newaxis])
        hessian = np.empty((classes + 1, classes + 1))
        hessian[0, 0] = (across * logs).sum()
        hessian[0, 1:] = hessian[1:, 0] = across.sum(axis=0)
        hessian[1:, 1:] = np.diag(expected.sum(axis=0)) - expected.T @ expected
        hessian = hessian / samples + RIDGE * np.eye(classes + 1)
        gradient[1:] += RIDGE * found[1:]
        step = solve(hessian, gradient)
        size, moved = 1.0, _affine_loss(found - step, hits, logs)
        while moved > loss and size > TOLERANCE:
            size /= 2
            moved = _affine_loss(found - size * step, hits, logs)
        if size <= TOLERANCE:
            break
        found, loss = found - size * step, moved
        if float(np.abs(size * step).max()) < TOLERANCE:
            break
    return float(found[0]), found[1:]


def _affine_loss(parameters: Floats, hits: Floats, logs: Floats) -> float:
    scores = parameters[0] * logs + parameters[1:]
    peaks = scores.max(axis=1)
    total = peaks + np.log(np.exp(scores - peaks[:, np.newaxis]).sum(axis=1))
    return float((total - (scores * hits).sum(axis=1)).mean()) + RIDGE / 2 * float(
        np.square(parameters[1:]).sum()
    )
