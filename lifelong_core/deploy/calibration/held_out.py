"""Outputs of a head on held-out calibration samples."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lifelong_core.decision_rules.rules import DecisionRule
from lifelong_core.deploy.head import HeadOutput, PostProcessingHead, fit_head
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.numerics.folds import crossfitting_folds
from lifelong_core.values.arrays import Floats, Integers

FOLDS = 5


@dataclass(frozen=True, eq=False)
class HeldOutHeads:
    """For each calibration sample a head that was not fitted on it."""

    calibration: LabeledLogits
    folds: Integers
    """shape (N,), index of each sample's head"""
    heads: tuple[PostProcessingHead, ...]

    @cached_property
    def output(self) -> HeadOutput:
        """Output on each calibration sample."""
        return self.at(1.0)

    def at(self, factor: float) -> HeadOutput:
        """Output on each calibration sample, with its logits times this factor."""
        logits = (self.calibration.logits * factor).astype(np.float32)
        if len(self.heads) == 1:
            return self.heads[0].apply(logits)
        parts = [head.apply(logits[self.folds == fold]) for fold, head in enumerate(self.heads)]
        place = np.argsort(np.argsort(self.folds, kind="stable"))
        return HeadOutput(
            np.concatenate([part.probabilities for part in parts])[place],
            np.concatenate([part.decisions for part in parts])[place],
            np.concatenate([part.expected_costs for part in parts])[place],
        )


def held_out_heads(calibration: LabeledLogits, head: PostProcessingHead) -> HeldOutHeads:
    """Heads like this one for calibration samples on which it was perhaps fitted.

    A head looks better than it is on its own training samples. If it was fitted on these samples, each fold gets a head
    fitted without it; any other head is used directly.
    """
    again = fit_head(calibration, head.costs, target_prevalence=head.assumed_prevalence, near=head)
    fitted_on_these = np.allclose(again.temperature, head.temperature, rtol=1e-6) and np.allclose(
        again.bias, head.bias, rtol=1e-6, atol=1e-6
    )
    if not fitted_on_these:
        return HeldOutHeads(calibration, np.zeros(calibration.samples, dtype=np.int64), (head,))
    return _crossfitted_heads(
        calibration, head.costs, head.assumed_prevalence, decision_rule=head.decision_rule, near=head
    )


def held_out_output(
    calibration: LabeledLogits, head: PostProcessingHead, *, factor: float = 1.0
) -> HeadOutput:
    """Output of `held_out_heads` on each calibration sample, with its logits times `factor`."""
    return held_out_heads(calibration, head).at(factor)


def crossfitted_output(
    calibration: LabeledLogits,
    costs: Floats,
    target_prevalence: Floats,
    *,
    decision_rule: DecisionRule | None = None,
    near: PostProcessingHead | None = None,
) -> HeadOutput:
    """Output on each calibration sample of a head fitted for the target prevalence without the sample's fold.

    `near` is a similar head, at which the fits start.
    """
    return _crossfitted_heads(
        calibration, costs, target_prevalence, decision_rule=decision_rule, near=near
    ).output


def _crossfitted_heads(
    calibration: LabeledLogits,
    costs: Floats,
    target_prevalence: Floats,
    *,
    decision_rule: DecisionRule | None,
    near: PostProcessingHead | None = None,
) -> HeldOutHeads:
    folds = crossfitting_folds(calibration, FOLDS)
    heads = list[PostProcessingHead]()
    for fold in range(int(folds.max()) + 1):
        near = fit_head(
            calibration.select(folds != fold) if folds.any() else calibration,
            costs,
            target_prevalence=target_prevalence,
            decision_rule=decision_rule,
            near=near,
        )
        heads.append(near)
    return HeldOutHeads(calibration, folds, tuple(heads))
