"""Vector scaling (VS): a temperature and a bias per class."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.calibration.affine import AffineCalibration, fit_weighted
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.arrays import Floats


@dataclass(frozen=True)
class VectorScaling:
    """VS of Guo et al. 2017, as compared by Li et al. 2022: temperature and bias per class of smallest cross entropy.

    The largest calibrated probability can belong to another class than the predicted one. The estimated accuracy is
    that of the prediction, the mean probability of the class with the largest raw logit. Li et al. average the largest
    calibrated probability instead. Their code fits by |mean confidence - accuracy|, which has many minima, so that the
    result depends on the start; we minimise the cross entropy, like Guo et al.

    A class without a calibration sample has probability 0.

    Examples:
        >>> logits = [[3.0, 0.0], [2.0, 0.0], [0.0, 4.0], [1.0, 0.0], [0.0, 1.0]]
        >>> method = VectorScaling.fit(LabeledLogits(logits, [0, 0, 1, 1, 0]))
        >>> method.class_probabilities([[3.0, 0.0]]).round(2).tolist()
        [[0.88, 0.12]]
    """

    name: ClassVar[str] = "VS"
    assumption: ClassVar[str] = (
        "A temperature and a bias per class calibrate the probabilities, in the window as in the calibration set."
    )

    scaling: AffineCalibration

    @classmethod
    def fit(cls, calibration: LabeledLogits) -> Self:
        """Fit by cross entropy."""
        return cls(
            fit_weighted(
                calibration.logits,
                calibration.labels,
                np.ones(calibration.samples),
                per_class_temperature=True,
            )
        )

    @property
    def fallback_classes(self) -> tuple[int, ...]:
        """Always empty: every class has its parameters, whether it is predicted or not."""
        return ()

    def class_probabilities(self, logits: ArrayLike) -> Floats:
        """Softmax of logits / temperature + bias, shape (N, C).

        Raises:
            InvalidInputError: logits are not finite or have another number of classes.
        """
        return self.scaling.probabilities(logits)
