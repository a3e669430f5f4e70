"""Score-adapted PACC: PACC on the posteriors under the estimated prevalence, consistent for any calibration."""

from dataclasses import dataclass

import numpy as np

from lifelong_core.deploy.labeled import LabeledLogits, class_means
from lifelong_core.deploy.numerics.simplex import simplex_least_squares
from lifelong_core.deploy.quantification.adjusted import adjusted_influence
from lifelong_core.deploy.quantification.fitted_quantifier import mean_feature
from lifelong_core.deploy.quantification.uncertainty import Influence
from lifelong_core.values.arrays import Floats, softmax


@dataclass(frozen=True)
class ScoreAdaptedCount:
    """Mix of the classes' mean posteriors nearest to the window's mean posterior.

    Near the true prevalence, the posterior is the most informative feature. The calibration does not bias the estimate,
    provided that the calibration samples' posteriors are cross-fitted.
    """

    calibration: LabeledLogits
    crossfitted: Floats
    """log posteriors of the calibration samples at their own prevalence, shape (M, C)"""

    def solve(self, scores: Floats, counts: Floats, prevalence: Floats) -> Floats:
        """Estimate, (C,), from log posteriors at the calibration set's prevalence, (U, C), with their counts.

        Posteriors are taken under `prevalence`, which is positive.
        """
        window, own = self._posteriors(scores, prevalence)
        return simplex_least_squares(class_means(own, self.calibration), mean_feature(window, counts))

    def influence(self, scores: Floats, prevalence: Floats) -> Influence:
        """Influence of each sample on the estimate.

        It acts through the means only: a change of the posteriors' definition moves the window's mean and the classes'
        means equally.
        """
        window, own = self._posteriors(scores, prevalence)
        means = class_means(own, self.calibration)
        return adjusted_influence(means, window, own, self.calibration.labels, prevalence)

    def _posteriors(self, scores: Floats, prevalence: Floats) -> tuple[Floats, Floats]:
        shift = np.log(prevalence / self.calibration.prevalence)
        return softmax(scores + shift), softmax(self.crossfitted + shift)
