"""What a confidence method does: probabilities of the true class of each unlabelled sample."""

from typing import ClassVar, Protocol, Self

from lifelong_core.arrays import Floats, Logits
from lifelong_core.deploy.labeled import LabeledLogits


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
        """Classes that are never predicted in the calibration set: they have the parameter of all classes."""
        ...

    def class_probabilities(self, logits: Logits) -> Floats:
        """Probability of each true class, shape (N, C); rows sum to 1.

        With argmax decisions, the mean of the predicted class's probability is the method's estimated accuracy. Single
        values may lie outside [0, 1] where the method's definition allows it (DoC).
        """
        ...
