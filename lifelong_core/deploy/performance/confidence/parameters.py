"""Parameters of a confidence method: the same for all predictions, or one set for each predicted class."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.performance.confidence.outcomes import Outcomes
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, Integers, read_only


@dataclass(frozen=True, eq=False)
class PredictionParameters(ArrayValue):
    """P parameters for the predictions of each class.

    Class-specific methods (Li et al. 2022) fit the same parameters as their class-agnostic counterparts, but to the
    calibration samples of one predicted class at a time.
    """

    values: Floats
    """shape (C, P), row j for predictions of class j"""
    fallback_classes: tuple[int, ...] = ()
    """classes without a prediction to fit to: their row holds the parameters of all predictions"""

    @classmethod
    def fit(
        cls, outcomes: Outcomes, fit_one: Callable[[Outcomes], tuple[float, ...]], *, class_specific: bool
    ) -> Self:
        """Fit by `fit_one` to all predictions or, where class-specific, to those of each class."""
        values = np.tile(np.array(fit_one(outcomes), dtype=np.float64), (outcomes.classes, 1))
        if not class_specific:
            return cls(read_only(values))
        absent = set(range(outcomes.classes))
        for one, mine in outcomes.by_predicted_class():
            values[one] = fit_one(mine)
            absent.remove(one)
        return cls(read_only(values), tuple(sorted(absent)))

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.values.shape[0]

    def of(self, predicted: Integers) -> Floats:
        """Parameters of each prediction, shape (P, N)."""
        return self.values[predicted].T


@dataclass(frozen=True, eq=False)
class ParametrisedMethod(ArrayValue):
    """Base of the methods that fit parameters to all predictions, or to those of each class."""

    class_specific: ClassVar[bool] = False

    parameters: PredictionParameters
    """of each prediction"""

    @classmethod
    def fit(cls, calibration: LabeledLogits) -> Self:
        """Fit by `fit_one` to all predictions or, where class-specific, to those of each class."""
        outcomes = Outcomes.of(calibration)
        return cls(PredictionParameters.fit(outcomes, cls.fit_one, class_specific=cls.class_specific))

    @classmethod
    def fit_one(cls, outcomes: Outcomes) -> tuple[float, ...]:
        """Parameters of these predictions."""
        raise NotImplementedError

    @property
    def fallback_classes(self) -> tuple[int, ...]:
        """Classes that are never predicted in the calibration set: they have the parameters of all predictions."""
        return self.parameters.fallback_classes
