"""PACC on the posteriors under the estimated prevalence: consistent also where the calibration behind them is wrong."""

from dataclasses import dataclass

import numpy as np

from lifelong_core.arrays import Floats, softmax
from lifelong_core.deploy.labeled import LabeledLogits, class_means
from lifelong_core.deploy.numerics.simplex import simplex_least_squares
from lifelong_core.deploy.quantification.adjusted import adjusted_influence
from lifelong_core.deploy.quantification.base import mean_feature
from lifelong_core.deploy.quantification.uncertainty import Influence


@dataclass(frozen=True)
class ScoreAdaptedCount:
    """The mix of the classes' mean posteriors that is nearest to the window's mean posterior.

    Near the truth, the posterior is the most informative feature that there is. How it was calibrated does not bias
    the answer, as long as the calibration samples' posteriors come from calibrations that have not seen them.
    """

    calibration: LabeledLogits
    crossfitted: Floats
    """log posteriors of the calibration samples at their own prevalence, shape (M, C)"""

    def solve(self, scores: Floats, counts: Floats, prevalence: Floats) -> Floats:
        """The estimate, (C,), from log posteriors at the calibration set's prevalence, (U, C), with their counts.

        `prevalence`, positive, is the one under which posteriors are taken.
        """
        window, own = self._posteriors(scores, prevalence)
        return simplex_least_squares(class_means(own, self.calibration), mean_feature(window, counts))

    def influence(self, scores: Floats, prevalence: Floats) -> Influence:
        """How each sample moves the estimate.

        Only through the means: a change of the posteriors' definition moves the window's mean and the classes' means
        alike.
        """
        window, own = self._posteriors(scores, prevalence)
        means = class_means(own, self.calibration)
        return adjusted_influence(means, window, own, self.calibration.labels, prevalence)

    def _posteriors(self, scores: Floats, prevalence: Floats) -> tuple[Floats, Floats]:
        shift = np.log(prevalence / self.calibration.prevalence)
        return softmax(scores + shift), softmax(self.crossfitted + shift)
