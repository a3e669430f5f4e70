"""Outputs of a head on held-out calibration samples."""

import numpy as np

from lifelong_core.arrays import Floats
from lifelong_core.decision_rules.rules import DecisionRule
from lifelong_core.deploy.head import HeadOutput, PostProcessingHead, fit_head
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.deploy.numerics.folds import crossfitting_folds

FOLDS = 5


def held_out_output(
    calibration: LabeledLogits, head: PostProcessingHead, *, factor: float = 1.0
) -> HeadOutput:
    """Output of the head on each calibration sample, held out where the head was fitted on them.

    A head looks better than it is on its own training samples. If it was fitted on these samples, the output for each
    comes from a head fitted without the sample's fold; any other head is applied directly.

    Args:
        calibration: labelled logits.
        head: the head.
        factor: by which the logits are multiplied before the head is applied.
    """
    again = fit_head(calibration, head.costs, target_prevalence=head.assumed_prevalence, near=head)
    fitted_on_these = np.allclose(again.temperature, head.temperature, rtol=1e-6) and np.allclose(
        again.bias, head.bias, rtol=1e-6, atol=1e-6
    )
    if not fitted_on_these:
        return head.apply((calibration.logits * factor).astype(np.float32))
    return crossfitted_output(
        calibration,
        head.costs,
        head.assumed_prevalence,
        factor=factor,
        decision_rule=head.decision_rule,
        near=head,
    )


def crossfitted_output(
    calibration: LabeledLogits,
    costs: Floats,
    target_prevalence: Floats,
    *,
    factor: float = 1.0,
    decision_rule: DecisionRule | None = None,
    near: PostProcessingHead | None = None,
) -> HeadOutput:
    """Output on each calibration sample, with its logits times `factor`, of a head fitted for the target prevalence
    without the sample's fold; `near` is a similar head.
    """
    logits = (calibration.logits * factor).astype(np.float32)
    folds = crossfitting_folds(calibration, FOLDS)
    if not folds.any():
        return fit_head(
            calibration, costs, target_prevalence=target_prevalence, decision_rule=decision_rule
        ).apply(logits)
    order, parts = list[np.ndarray](), list[HeadOutput]()
    for fold in range(int(folds.max()) + 1):
        held = folds == fold
        fitted = fit_head(
            calibration.select(~held),
            costs,
            target_prevalence=target_prevalence,
            decision_rule=decision_rule,
            near=near,
        )
        near = fitted
        order.append(np.flatnonzero(held))
        parts.append(fitted.apply(logits[held]))
    place = np.argsort(np.concatenate(order))
    return HeadOutput(
        np.concatenate([part.probabilities for part in parts])[place],
        np.concatenate([part.decisions for part in parts])[place],
        np.concatenate([part.expected_costs for part in parts])[place],
    )
