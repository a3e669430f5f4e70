"""Quantifiers by maximum likelihood: mixture weights of the class densities that posteriors imply."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.calibration.affine import (
    MAXIMUM_SCALED_INVERSE,
    MINIMUM_SCALED_INVERSE,
    fit_weighted,
)
from lifelong_core.deploy.calibration.cross_entropy import affine_problem
from lifelong_core.deploy.labeled import stratified_folds
from lifelong_core.deploy.numerics.newton import minimize_convex
from lifelong_core.deploy.numerics.simplex import MixtureLinearisation, mixture_weights, smooth
from lifelong_core.deploy.quantification.counting import ScoreAdaptedCount
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier
from lifelong_core.deploy.quantification.uncertainty import Influence, pseudo_weights
from lifelong_core.deploy.quantification.window_summary import WindowSummary
from lifelong_core.values.arrays import Floats, Logits, centre_rows, softmax

FOLDS = 5

SMALLEST_POSTERIOR = 1e-300
"""Lower bound of posteriors, in place of those that the softmax rounds to 0."""


class ExpectationMaximization(FittedQuantifier):
    """EMQ: the prevalence with the largest likelihood of the window (Saerens et al. 2002).

    Softmax probabilities, taken as posteriors at the calibration set's prevalence, give each sample's class densities
    up to a factor. The likelihood is maximised to optimality instead of by a number of EM steps. An overconfident
    network biases the estimate, and the interval does not include this bias. Prefer MLLS.
    """

    method = "EMQ"

    def densities(self, window: ArrayLike | WindowSummary) -> Floats:
        """Densities of the classes at the window's distinct points, shape (U, C), up to a factor per point.

        Raises:
            InvalidInputError: a shape or a value does not fit, or another quantifier made the summary.
        """
        return self._densities(self._rows(window)[0])

    def _fit(self) -> None:
        self._own = self._features(self.calibration.logits)
        self._check_separated(self._posteriors(self._own))

    def _features(self, rows: Logits) -> Floats:
        """Posteriors at the calibration set's prevalence; their means add up, see `WindowSummary`."""
        return softmax(centre_rows(rows))

    def _posteriors(self, features: Floats) -> Floats:
        """Posteriors at the calibration set's prevalence, shape (N, C)."""
        return features

    def _scores(self, features: Floats) -> Floats:
        """Logarithms of the posteriors, finite."""
        return np.log(np.maximum(self._posteriors(features), SMALLEST_POSTERIOR))

    def _solve(self, features: Floats, counts: Floats) -> Floats:
        return mixture_weights(self._densities(features), counts, self.calibration.prevalence)

    def _influence(self, features: Floats, counts: Floats, prevalence: Floats) -> Influence:
        effects = self._linearise(features, counts, prevalence).influences()
        window, pseudo = np.split(effects, [features.shape[0]])
        return Influence(window, pseudo, np.zeros_like(pseudo))

    def _linearise(self, features: Floats, counts: Floats, prevalence: Floats) -> MixtureLinearisation:
        weights = np.concatenate([counts, pseudo_weights(self.calibration)])
        return MixtureLinearisation.at(prevalence, self._densities(np.vstack([features, self._own])), weights)

    def _densities(self, features: Floats) -> Floats:
        """Densities of the classes at each sample, up to a factor per sample, shape (N, C)."""
        return self._posteriors(features) / self.calibration.prevalence


class MaximumLikelihoodLabelShift(ExpectationMaximization):
    """MLLS: EMQ on affine-calibrated posteriors (Alexandari et al. 2020), the best single method.

    The interval includes the uncertainty of the calibration, and the squared difference from a second estimate which
    stays consistent where affine calibration does not fit: PACC on the posteriors under the estimated prevalence, with
    class means from cross-fitted calibration posteriors.
    """

    method = "MLLS"

    def _fit(self) -> None:
        data = self.calibration
        self._calibrator = fit_weighted(data.logits, data.labels, np.ones(data.samples))
        super()._fit()

    def _features(self, rows: Logits) -> Floats:
        return self._calibrator.probabilities(rows)

    def _influence(self, features: Floats, counts: Floats, prevalence: Floats) -> Influence:
        linear = self._linearise(features, counts, prevalence)
        window, pseudo = np.split(linear.influences(), [features.shape[0]])
        # A calibration sample moves the parameters, these the log densities, these the estimate.
        problem = affine_problem(
            self.calibration.logits, self.calibration.labels, np.ones(self.calibration.samples)
        )
        parameters = problem.pack(self._calibrator.temperature, self._calibrator.bias)
        scores = self._scores(np.vstack([features, self._own]))
        per_inverse = (scores - self._calibrator.bias) / parameters[0]
        response = np.column_stack([linear.response(per_inverse), linear.responses()])
        _, hessian = problem.derivatives(parameters)
        moves = response @ np.linalg.pinv(hessian, hermitian=True, rcond=1e-14)
        shares = self.calibration.prevalence[self.calibration.labels]
        return Influence(
            window, pseudo, -(problem.sample_gradients(parameters) * shares[:, np.newaxis]) @ moves.T
        )

    @cached_property
    def _partner(self) -> ScoreAdaptedCount:
        """Second estimator, with cross-fitted scores of the calibration samples."""
        data = self.calibration
        folds = stratified_folds(data, FOLDS)
        scores = self._scores(self._own)
        for fold in range(1 + int(folds.max()) if folds.any() else 0):
            held = folds == fold
            rest = affine_problem(data.logits[~held], data.labels[~held], np.ones(int((~held).sum())))
            # From the whole set's solution it is a few steps, also where separable data would take a hundred.
            start = rest.pack(self._calibrator.temperature, self._calibrator.bias)
            bounds = rest.bounds(MINIMUM_SCALED_INVERSE, MAXIMUM_SCALED_INVERSE)
            inverse, bias = rest.unpack(minimize_convex(rest, start, *bounds))
            scores[held] = centre_rows(data.logits[held]) * inverse + bias
        return ScoreAdaptedCount(data, scores)

    def _second_solution(self, features: Floats, counts: Floats, prevalence: Floats) -> Floats:
        return self._partner.solve(self._scores(features), counts, smooth(prevalence, float(counts.sum())))
