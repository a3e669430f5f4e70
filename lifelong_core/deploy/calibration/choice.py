"""Choice of the calibration by cross-validation: from affine scaling to a matrix on logits and their squares."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy.calibration.cross_entropy import losses_and_probabilities, typical_size
from lifelong_core.deploy.calibration.matrix_scaling import (
    Layout,
    LogitFeatures,
    MatrixProblem,
    Ridge,
    fit_matrix,
    inverse_hessian,
    refit_matrix,
)
from lifelong_core.deploy.labeled import LabeledLogits, stratified_folds
from lifelong_core.values.arrays import Floats, Integers, centre_rows

FOLDS = 5

BIAS_STRENGTHS = (1.0, 10.0, 100.0, 1000.0)
"""Strengths of the biases' ridge, in pseudo-samples at its centre. A small calibration set determines the biases worst,
and an error in them is an error in the prevalence."""

CREDIBLE_BIASES = 4.0
"""Strength of the biases' ridge, in pseudo-samples, that the uncertainty of the calibration relies on at most."""

MATRIX_STRENGTHS = (100.0, 30.0)
"""Strengths of the matrix's ridge, in pseudo-samples at a multiple of the identity. Weaker ones fit the calibration set
better and gain next to nothing on windows of the same population (below 1 %); on windows of other patients they lost up
to a quarter."""

LARGEST_MATRIX = 700
"""Largest number of parameters; Newton's method costs samples times its square. From 19 classes on a matrix uses logits
alone, without squares; from 26 classes on there is no matrix."""

MOST_SQUARES = 300
"""Largest number of classes for which squares are tried: with more, each fit takes seconds."""

BINARY_SAMPLES = 500
"""Fewest samples for a matrix with two classes."""

DOUBT = 2.0
"""A matrix or squares must improve the cross-validated loss of one temperature by this many standard errors."""

_ROUGH = 1e-9
_EXACT = 1e-14
"""Convergence of the folds' fits, as remaining gain in units of the mean loss: during the comparison, and at the
end."""


@dataclass(frozen=True)
class Calibration:
    """Calibration fitted to a whole calibration set, and without each of its folds."""

    features: LogitFeatures
    problem: MatrixProblem
    parameters: Floats
    """shape (P,)"""
    fold_parameters: tuple[Floats, ...]
    """parameters fitted without each fold; empty where cross-fitting is impossible"""
    crossfitted: Floats
    """scores of the calibration samples by fits without their fold, shape (N, C); by the fit to the whole set where
    there are none"""
    losses: Floats
    """cross entropy of each of these scores, shape (N,)"""

    @cached_property
    def inverse(self) -> Floats:
        """Inverse Hessian of the problem at these parameters, shape (P, P), with a bias strength of at most
        CREDIBLE_BIASES.

        Shrinkage makes biases better on average, but the scores of the samples do not show the error of a wrong centre.
        With the uncertainty of shrunk biases, intervals of a small binary set covered 81 %; with that of unshrunk ones,
        92 % (100 calibration samples drawn 40 times, windows of 2,000). On other sets the latter is too careful.
        """
        ridge = self.problem.ridge
        believed = replace(ridge, biases=min(ridge.biases, CREDIBLE_BIASES))
        return inverse_hessian(replace(self.problem, ridge=believed), self.parameters)

    @property
    def loss(self) -> float:
        """Mean of the losses."""
        return float(self.losses.mean())

    def scores(self, features: Floats) -> Floats:
        """Log posteriors at the calibration set's prevalence up to a constant per row, shape (N, C)."""
        return self.problem.layout.scores(self.parameters, features)


def choose_calibration(data: LabeledLogits) -> Calibration:
    """Choose the calibration with the smallest cross-validated cross entropy.

    The first candidates have one temperature, and biases shrunk towards those of a network trained at the calibration
    set's prevalence (zero), or on balanced classes. With the best ridge for the biases, the next candidates add the
    clipped squares of the logits, and matrices on logits alone and with squares, from strongly to weakly shrunk. A path
    ends where the next strength is worse than the one before. Where cross-fitting is impossible (a class has one
    sample, or its groups cannot be divided into folds) the choice is affine scaling without shrinkage.
    """
    folds = stratified_folds(data, FOLDS)
    scale = typical_size(centre_rows(data.logits))
    classes = data.classes

    def fit(
        ridge: Ridge, near: Calibration | None = None, *, squares: bool = False, matrix: bool = False
    ) -> Calibration:
        features = LogitFeatures(scale, squares)
        values = features.of(data.logits)
        layout = Layout(classes, values.shape[1], matrix)
        return fit_calibration(features, MatrixProblem(values, data.labels, layout, ridge), folds, near)

    trained_here = np.zeros(classes)
    affine = fit(Ridge(0.0, 0.0, trained_here))
    if not affine.fold_parameters:
        return affine
    candidates = [affine]
    logarithms = np.log(data.prevalence)
    centres = (trained_here, logarithms - logarithms.mean())
    for centre in centres if centres[1].any() else centres[:1]:
        candidates += _path(affine, [Ridge(0.0, strength, centre) for strength in BIAS_STRENGTHS], fit)
    plain = _best(candidates)
    ridge = plain.problem.ridge
    candidates = [plain]
    if classes <= MOST_SQUARES:
        candidates.append(fit(ridge, plain, squares=True))
    for start in tuple(candidates):
        size = Layout(classes, start.problem.layout.features, matrix=True).size
        if size <= LARGEST_MATRIX and (classes > 2 or data.samples >= BINARY_SAMPLES):
            ridges = [Ridge(strength, ridge.biases, ridge.centre) for strength in MATRIX_STRENGTHS]
            candidates += _path(start, ridges, partial(fit, squares=start.features.squares, matrix=True))
    best = _best(candidates)
    if not _clearly_better(best, plain, data.groups):
        best = plain
    if best.problem.is_large:
        return best
    return fit_calibration(best.features, best.problem, folds, best, precision=_EXACT)


def fit_calibration(
    features: LogitFeatures,
    problem: MatrixProblem,
    folds: Integers,
    near: Calibration | None,
    *,
    precision: float = _ROUGH,
) -> Calibration:
    """Fit to all samples and without each fold (none where all are in fold 0), starting from a similar calibration."""
    start = problem.start() if near is None else _carried(near, near.parameters, problem.layout)
    parameters = fit_matrix(problem, start, precision)
    inverse = None if problem.is_large else inverse_hessian(problem, parameters)
    crossfitted = problem.scores(parameters)
    fitted: list[Floats] = []
    for fold in range(int(folds.max()) + 1 if folds.any() else 0):
        held = folds == fold
        rest = MatrixProblem(problem.features[~held], problem.labels[~held], problem.layout, problem.ridge)
        # What leaving out the fold did to the similar calibration, it will nearly do to this one.
        guess = parameters
        if near is not None and near.fold_parameters:
            guess = parameters + _carried(near, near.fold_parameters[fold], problem.layout) - start
        fitted.append(refit_matrix(rest, guess, inverse, precision))
        crossfitted[held] = problem.layout.scores(fitted[-1], problem.features[held])
    losses, _ = losses_and_probabilities(crossfitted, problem.labels)
    return Calibration(features, problem, parameters, tuple(fitted), crossfitted, losses)


def _path(
    start: Calibration, ridges: list[Ridge], fit: Callable[[Ridge, Calibration], Calibration]
) -> Iterator[Calibration]:
    """Yield one fit after another, up to the first that is worse than its predecessor."""
    near, loss = start, np.inf
    for ridge in ridges:
        near = fit(ridge, near)
        yield near
        if near.loss > loss:
            return
        loss = near.loss


def _best(calibrations: list[Calibration]) -> Calibration:
    return min(calibrations, key=lambda calibration: calibration.loss)


def _clearly_better(one: Calibration, other: Calibration, groups: NDArray[np.generic] | None) -> bool:
    """Whether the loss is smaller by more than DOUBT standard errors of the difference."""
    gains = other.losses - one.losses
    if groups is not None:
        gains = np.bincount(np.unique(groups, return_inverse=True)[1], gains - gains.mean())
    error = np.sqrt(((gains - gains.mean()) ** 2).sum()) / one.losses.size
    return other.loss - one.loss > DOUBT * error


def _carried(near: Calibration, parameters: Floats, layout: Layout) -> Floats:
    """Convert parameters of a similar calibration to another layout; missing weights start at 0."""
    weights, biases = near.problem.layout.weights(parameters)
    missing = np.zeros((layout.classes, layout.features - weights.shape[1]))
    return layout.parameters(np.hstack([weights, missing]), biases)
