"""A calibration set with its fitted quantifier, and with what it says about heads."""

from typing import Self

from lifelong_core.deploy.head import HeadOutput, PostProcessingHead
from lifelong_core.deploy.head_fitting import HeldOutHeads, held_out_heads
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier
from lifelong_core.deploy.shift.reference import ScoreReference


class FittedCalibration:
    """A calibration set, the quantifier fitted on it, and results for the last heads that were judged with it.

    These results need refits of a head. A cycle uses them for several estimates, and the next cycles judge the same
    head, so the newest result of each kind is kept.

    Attributes:
        quantifier: estimates the prevalence of windows.
        data: the calibration set.
    """

    def __init__(self, quantifier: FittedQuantifier) -> None:
        """Wrap a fitted quantifier; `of` gives the one instance that belongs to it."""
        self.quantifier = quantifier
        self.data: LabeledLogits = quantifier.calibration
        self._reference: tuple[str, ScoreReference] | None = None
        self._held_out: tuple[str, HeldOutHeads] | None = None

    @classmethod
    def of(cls, quantifier: FittedQuantifier) -> Self:
        """Return the instance that belongs to this quantifier."""
        return quantifier.once(cls)

    def score_reference(self, head: PostProcessingHead) -> ScoreReference:
        """Reference scores of a head for the sequential test; those of the last head are kept.

        Raises:
            InvalidInputError: the head has other classes.
        """
        digest = head.digest
        if self._reference is None or self._reference[0] != digest:
            self._reference = digest, ScoreReference.of(self.data, head)
        return self._reference[1]

    def held_out_output(self, head: PostProcessingHead, *, factor: float = 1.0) -> HeadOutput:
        """Output of a head on the calibration samples, held out, their logits times `factor`; the last fits are kept.

        Raises:
            InvalidInputError: the head has other classes.
        """
        digest = head.digest
        if self._held_out is None or self._held_out[0] != digest:
            self._held_out = digest, held_out_heads(self.data, head)
        held = self._held_out[1]
        return held.output if factor == 1 else held.at(factor)
