"""Average confidence (AC): the probabilities of the network as they are."""

from dataclasses import dataclass
from typing import ClassVar, Self

from numpy.typing import ArrayLike

from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.arrays import Floats, as_logits, softmax


@dataclass(frozen=True)
class AverageConfidence:
    """AC of Li et al. 2022, section 2: the estimated accuracy is the mean of the largest probability.

    Examples:
        >>> calibration = LabeledLogits([[2.0, 0.0], [0.0, 1.0]], [0, 1])
        >>> AverageConfidence.fit(calibration).class_probabilities([[2.0, 0.0]]).round(3).tolist()
        [[0.881, 0.119]]
    """

    name: ClassVar[str] = "AC"
    assumption: ClassVar[str] = "The probabilities of the network are calibrated in the window."

    classes: int

    @classmethod
    def fit(cls, calibration: LabeledLogits) -> Self:
        """Nothing to fit but the number of classes."""
        return cls(calibration.classes)

    @property
    def fallback_classes(self) -> tuple[int, ...]:
        """Always empty: there is no parameter."""
        return ()

    def class_probabilities(self, logits: ArrayLike) -> Floats:
        """Softmax of the logits, shape (N, C).

        Raises:
            InvalidInputError: logits are not finite or have another number of classes.
        """
        return softmax(as_logits(logits, classes=self.classes).astype(float))
