"""The default quantifier: maximum likelihood under a chosen calibration, averaged with an adjusted count."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.calibration.choice import choose_calibration
from lifelong_core.deploy.calibration.cross_entropy import chunks
from lifelong_core.deploy.numerics.newton import one_hot
from lifelong_core.deploy.numerics.simplex import MixtureLinearisation, mixture_weights, smooth
from lifelong_core.deploy.quantification.counting import (
    ScoreAdaptedCount,
)
from lifelong_core.deploy.quantification.em import (
    ExpectationMaximization,
)
from lifelong_core.deploy.quantification.uncertainty import Influence
from lifelong_core.deploy.quantification.window_summary import WindowSummary
from lifelong_core.values.arrays import Floats, Logits, softmax

PRIOR_SAMPLES = 0.3
"""Certain samples of each class that join every window: the Dirichlet prior."""

HALF_TRUST = 30.0
"""Calibration samples per class at which the partner has half of its weight for very large sets: with few samples its
class means are noisy."""


class AutomaticQuantifier(ExpectationMaximization):
    """auto: MLLS with a chosen calibration and a weak prior, averaged with score-adapted PACC.

    The calibration is chosen by cross-validation (`choose_calibration`). The likelihood uses all information of the
    scores but relies on the calibration. PACC on the posteriors under the estimated prevalence is consistent even if
    the calibration is wrong, because it compares the window's mean posterior with those of the calibration classes. The
    intervals include the difference of the two and the uncertainty of the calibration.
    """

    method = "auto"

    def _fit(self) -> None:
        self._calibration_model = choose_calibration(self.calibration)
        self._own = self._features(self.calibration.logits)
        self._partner = ScoreAdaptedCount(self.calibration, self._calibration_model.crossfitted)
        typical = 1 / float(np.mean(1 / self.calibration.counts))
        self._partner_weight = 0.5 * typical / (typical + HALF_TRUST)
        self._check_separated(self._posteriors(self._own))

    @cached_property
    def cautions(self) -> tuple[str, ...]:
        """Limits of every estimate from this calibration set, as sentences; empty for a sound set."""
        found = super().cautions
        if self._calibration_model.fold_parameters:
            return found
        alone = "Calibrations could not be compared: a class has a single calibration sample or group."
        return (*found, alone)

    def _features(self, rows: Logits) -> Floats:
        """Inputs of the calibration's scores, and the posteriors of the scores."""
        inputs = self._calibration_model.features.of(rows)
        return np.hstack([inputs, softmax(self._calibration_model.scores(inputs))])

    def _posteriors(self, features: Floats) -> Floats:
        return features[:, -self.calibration.classes :]

    def _inputs(self, features: Floats) -> Floats:
        """Inputs in which the calibration's scores are linear."""
        return features[:, : -self.calibration.classes]

    def _solve(self, features: Floats, counts: Floats) -> Floats:
        likely, partner = self._solutions(features, counts)
        return (1 - self._partner_weight) * likely + self._partner_weight * partner

    def _second_solution(self, features: Floats, counts: Floats, prevalence: Floats) -> Floats:
        """Estimate moved by the whole difference of the two averaged solutions."""
        likely, partner = self._solutions(features, counts)
        return prevalence + partner - likely

    def _solutions(self, features: Floats, counts: Floats) -> tuple[Floats, Floats]:
        """Maximum likelihood prevalence and the partner's, shape (C,) each."""
        classes = self.calibration.classes
        likely = mixture_weights(
            np.vstack([self._densities(features), np.eye(classes)]),
            np.concatenate([counts, np.full(classes, PRIOR_SAMPLES)]),
            self.calibration.prevalence,
        )
        partner = self._partner.solve(self._scores(features), counts, smooth(likely, float(counts.sum())))
        return likely, partner

    def _influence(self, features: Floats, counts: Floats, prevalence: Floats) -> Influence:
        linear = self._linearise(features, counts, prevalence)
        window, pseudo = np.split(linear.influences(), [features.shape[0]])
        fitted = self._fitted_influence(linear, self._inputs(np.vstack([features, self._own])))
        partner = self._partner.influence(self._scores(features), prevalence)
        own, other = 1 - self._partner_weight, self._partner_weight
        return Influence(
            own * window + other * partner.window,
            own * pseudo + other * partner.pseudo,
            own * fitted + other * partner.calibration,
        )

    def _fitted_influence(self, linear: MixtureLinearisation, features: Floats) -> Floats:
        """Influence of each calibration sample on the estimate through the calibration, shape (M, C).

        It uses the residuals of the cross-fitted scores: residuals of a fit on its own samples are too small for small
        sets.
        """
        layout, classes = self._calibration_model.problem.layout, self.calibration.classes
        weighted = linear.ratios * linear.weights[:, np.newaxis]
        change = layout.totals(weighted, features)
        change[:, -classes:] -= linear.products * linear.prevalence
        for rows in chunks(features.shape[0], layout.size, 1 << 21):
            posteriors = linear.ratios[rows] * linear.prevalence
            change[:, :-classes] -= weighted[rows].T @ layout.slopes(posteriors, features[rows])
        return self._parameter_effects(linear.sensitivity @ change)

    def density_effects(self, window: ArrayLike | WindowSummary, slopes: Iterable[Floats]) -> Floats:
        """Effects of each calibration sample, through the calibration, on K statistics of a window, shape (M, K)."""
        inputs, layout = self._inputs(self._rows(window)[0]), self._calibration_model.problem.layout
        return self._parameter_effects(np.array([layout.total(one, inputs) for one in slopes]))

    def _parameter_effects(self, directions: Floats) -> Floats:
        """Effects of each calibration sample on K combinations, (K, P), of the parameters, shape (M, K)."""
        return self._pulls @ (directions @ self._calibration_model.inverse).T

    @cached_property
    def _pulls(self) -> Floats:
        """Negative gradient of each calibration sample's loss, weighted by its class's prevalence, shape (M, P)."""
        model, data = self._calibration_model, self.calibration
        residuals = one_hot(data.labels, data.classes) - softmax(model.crossfitted)
        residuals *= data.prevalence[data.labels][:, np.newaxis]
        return model.problem.layout.products(residuals, self._inputs(self._own))
