"""Interface of the confidence methods, predictions of a calibration set, and parameters of predictions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, Integers, Logits, Mask, read_only


class ConfidenceMethod(Protocol):
    """A method fitted on a calibration set; frozen."""

    name: ClassVar[str]
    assumption: ClassVar[str]
    """what the method assumes, one sentence"""

    @classmethod
    def fit(cls, calibration: LabeledLogits) -> Self:
        """Fit on a calibration set."""
        ...

    @property
    def fallback_classes(self) -> tuple[int, ...]:
        """Classes that are never predicted in the calibration set: they have the parameters of all predictions.

        Empty for class-agnostic methods.
        """
        ...

    def class_probabilities(self, logits: ArrayLike) -> Floats:
        """Probability of each true class, shape (N, C), N >= 0; rows sum to 1.

        The predicted class is that of the largest raw logit, the first of equal ones. The mean of its probability is
        the method's estimated accuracy, also where another class has a larger probability after calibration (VS,
        NORCAL). Single values may lie outside [0, 1] where the method's definition allows it (DoC).

        Raises:
            InvalidInputError: logits are not finite or have another number of classes.
        """
        ...


def predicted_classes(logits: Logits) -> Integers:
    """Class with the largest logit, the first of equal ones; shape (N,)."""
    return logits.argmax(axis=1).astype(np.int64)


def other_classes(predicted: Integers, classes: int) -> Mask:
    """True where the column is not the predicted class, shape (N, C)."""
    return predicted[:, np.newaxis] != np.arange(classes)


@dataclass(frozen=True)
class Outcomes:
    """Labelled predictions of one predicted class, or of all."""

    logits: Logits
    """shape (N, C)"""
    predicted: Integers
    """shape (N,)"""
    correct: Mask
    """whether the predicted class is the true one, shape (N,)"""

    @classmethod
    def of(cls, calibration: LabeledLogits) -> Self:
        """Outcomes of argmax decisions on the calibration set."""
        predicted = predicted_classes(calibration.logits)
        return cls(calibration.logits, predicted, predicted == calibration.labels)

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.logits.shape[1]

    @property
    def accuracy(self) -> float:
        """Share of correct predictions (alpha of Li et al. 2022)."""
        return float(self.correct.mean())

    def by_predicted_class(self) -> Iterator[tuple[int, Self]]:
        """Each class that is predicted, with its outcomes."""
        for one in np.unique(self.predicted).tolist():
            mine = self.predicted == one
            yield one, type(self)(self.logits[mine], self.predicted[mine], self.correct[mine])


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
