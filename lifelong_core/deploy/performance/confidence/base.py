"""What a confidence method does: probabilities of the true class of each unlabelled sample."""

from typing import ClassVar, Protocol, Self

from numpy.typing import ArrayLike

from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.arrays import Floats


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
