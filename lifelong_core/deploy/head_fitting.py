"""Fits of heads: on a whole calibration set, and held out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.decision_rules.operating_points import search_cut_off
from lifelong_core.decision_rules.rules import (
    BayesRule,
    DecisionRule,
    check_rule,
    needs_cut_off,
)
from lifelong_core.deploy.calibration.affine import AffineCalibration, class_weights, fit_weighted
from lifelong_core.deploy.head import HeadOutput, PostProcessingHead
from lifelong_core.deploy.labeled import LabeledLogits, crossfitting_folds
from lifelong_core.deploy.numerics.newton import affine_scores
from lifelong_core.values.arrays import (
    Floats,
    Integers,
    as_costs,
    as_prevalence,
    softmax,
)

FOLDS = 5


def fit_head(
    calibration: LabeledLogits,
    costs: ArrayLike,
    *,
    target_prevalence: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    provenance: Mapping[str, Any] | None = None,
    decision_rule: DecisionRule | None = None,
    near: PostProcessingHead | None = None,
) -> PostProcessingHead:
    """Fit the head for a population with the target prevalence (thesis section 6.1.3, steps 2 to 4).

    Args:
        calibration: labelled logits of the model.
        costs: shape (C, D), D = C or C + 1 (abstain): cost of deciding k when j is true.
        target_prevalence: shape (C,); None: that of the calibration set.
        class_names: C names; None: "0", "1", ...
        provenance: JSON values to keep with the head, beside the digest of the calibration set.
        decision_rule: how probabilities become decisions; None: the Bayes rule. The cut-off of a target value or of an
            optimised metric is the one that the calibration samples give, with classes weighted for the target
            prevalence; where none reaches the target, the one that comes closest.
        near: a similar head, from which a fit of many classes takes a fraction of the time.

    Raises:
        InvalidInputError: a shape or a value does not fit.
        UnidentifiableError: a class has a positive target prevalence but no calibration sample.

    Examples:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> labels = rng.integers(2, size=400)
        >>> calibration = LabeledLogits(2 * np.eye(2)[labels] + rng.normal(size=(400, 2)), labels)
        >>> head = fit_head(calibration, [[0, 1], [1, 0]], target_prevalence=[0.9, 0.1])
        >>> head.apply([[1.0, 1.0]]).probabilities.round(2).tolist()  # the prevalence decides
        [[0.89, 0.11]]
        >>> from lifelong_core.deploy import TargetValue
        >>> ruled = fit_head(calibration, [[0, 1], [1, 0]], decision_rule=TargetValue("TPR", 0.9))
        >>> float((ruled.apply(calibration.logits).decisions[labels == 1] == 1).mean().round(2))
        0.9
    """
    rule = BayesRule() if decision_rule is None else decision_rule
    check_rule(rule, calibration.classes)
    weights = class_weights(calibration, target_prevalence)
    prevalence = (
        calibration.prevalence
        if target_prevalence is None
        else as_prevalence(target_prevalence, classes=calibration.classes, field="target_prevalence")
    )
    fitted = fit_weighted(
        calibration.logits,
        calibration.labels,
        weights[calibration.labels],
        near=None if near is None else AffineCalibration(near.temperature, near.bias),
    )
    cut_off = None
    if needs_cut_off(rule):
        scores = softmax(affine_scores(calibration.logits, fitted.temperature, fitted.bias))
        cut_off = search_cut_off(rule, scores, calibration.labels, prevalence)
    return PostProcessingHead(
        temperature=fitted.temperature,
        bias=fitted.bias,
        costs=as_costs(costs, classes=calibration.classes),
        assumed_prevalence=prevalence,
        class_names=tuple(class_names or (str(k) for k in range(calibration.classes))),
        provenance={"calibration_digest": calibration.digest, **(provenance or {})},
        decision_rule=rule,
        cut_off=cut_off,
    )


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
