"""Validation of a model: recommended metrics with intervals, curves and warnings, on labelled samples."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.design.recommendation.document import Recommendation
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.design.validation.outputs import ModelOutputs
from lifelong_core.design.validation.result import Aggregation, ValidationResult
from lifelong_core.design.validation.uncertainty.settings import UncertaintySettings
from lifelong_core.design.validation.validate_one import validate_one
from lifelong_core.design.validation.validation_settings import ValidationSettings
from lifelong_core.metrics import CustomMetric


def validate(
    recommendation: Recommendation,
    labels: ArrayLike,
    *,
    probabilities: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    decisions: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    metadata: Mapping[str, ArrayLike] | None = None,
    class_names: Sequence[str] | None = None,
    thresholds: Sequence[AcceptanceThreshold] = (),
    cut_off_data: tuple[ArrayLike, ArrayLike] | None = None,
    score_prevalence: ArrayLike | None = None,
    uncertainties: ArrayLike | None = None,
    members: Sequence[ArrayLike] | None = None,
    uncertainty_settings: UncertaintySettings | None = None,
    custom: Sequence[CustomMetric] = (),
    name: str = "model",
    replicates: int = 1000,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
    aggregation: Aggregation = "pooled",
) -> ValidationResult:
    """Return the recommended metrics of a model with intervals, its curves, and the verdict of acceptance thresholds.

    Args:
        recommendation: the metrics to compute; metrics of open guides are missing, with a warning.
        labels: shape (N,), true classes 0..C-1.
        probabilities: shape (N, C).
        logits: shape (N, C), in place of probabilities, which are their softmax.
        decisions: shape (N,): classes, C to abstain, -1 where the model gave no valid output; such a sample counts as
            the worst value (FP5.3), and its probabilities may be anything. None: those of the decision rule that was
            answered (FP2.6), of the probabilities; the likeliest class (ties: the lowest index) without such a rule.
        groups: shape (N,), the group of each sample, such as its patient; whole groups are resampled (FP4.3).
        metadata: attribute -> value of each sample, shape (N,), for values by subgroup.
        class_names: C names; None: those of the recommendation, else class 0, class 1, ...
        thresholds: acceptance thresholds.
        cut_off_data: labels (M,) and the model's probabilities (M, C) of other samples, on which the cut-offs of a
            decision rule with a target or an optimised metric, and of metrics at a target, are chosen; None: a random
            half of the cases, with whole groups, and these metrics are those of the other half.
        score_prevalence: shape (C,), class shares for which the probabilities hold, such as those of the calibration
            data or those that a head assumes; None: those of the labels. From them, net benefit corrects the
            probabilities to stated target prevalences.
        uncertainties: shape (N,), predicted uncertainty of each sample, not negative, for uncertainty-aware scores of
            two classes (Sperling et al.).
        members: in place of uncertainties, probabilities (N, C) of the same samples by 2 to 100 models, dropout draws
            or augmentations: their spread is the uncertainty. Without probabilities and logits, the model's
            probabilities are their mean.
        uncertainty_settings: sigmas, dampings, threshold and the kind of the uncertainties; None: the defaults.
        custom: metrics of the caller, shown beside the recommended ones; they are neither ranked nor judged by
            thresholds. Their intervals come from at most 200 resampled data sets.
        name: name of the model.
        replicates: number of resampled data sets for the intervals.
        level: nominal coverage of the intervals.
        rng: seed or generator.
        aggregation: "pooled": metrics of all samples. "by_group": metrics of each group, such as a patient's images,
            and their mean over the groups in which they are defined, so that each group counts the same (FP4.3).
            Calibration errors stay pooled. A target of the decision rule is that of all samples.

    Raises:
        InvalidInputError: a shape or a value does not fit, a metric needs what was not given, or a threshold is for a
            metric that is not recommended.

    Examples:
        >>> from lifelong_core.design import ProblemFingerprint, recommend
        >>> answers = {
        ...     "number_of_classes": 2, "class_scores_available": False, "unequal_severity": False,
        ...     "unequal_interest": False, "prevalences_representative": False, "class_contribution": "equal",
        ...     "dependent_cases": False, "invalid_outputs": False,
        ... }
        >>> found = recommend(ProblemFingerprint(**answers))
        >>> result = validate(
        ...     found, [0] * 50 + [1] * 50, decisions=[0] * 45 + [1] * 55,
        ...     thresholds=[AcceptanceThreshold(metric="BA", value=0.85)],
        ... )
        >>> value = result.value("BA")
        >>> value.estimate, 0.85 < value.low < 0.95 < value.high <= 1, result.accepted
        (0.95, True, True)
    """
    setting = ValidationSettings.of(
        recommendation,
        labels,
        groups=groups,
        metadata=metadata,
        class_names=class_names,
        thresholds=thresholds,
        replicates=replicates,
        level=level,
        rng=rng,
        uncertainty=uncertainty_settings,
        aggregation=aggregation,
        custom=custom,
    )
    outputs = ModelOutputs(
        probabilities=probabilities,
        logits=logits,
        decisions=decisions,
        cut_off_data=cut_off_data,
        score_prevalence=score_prevalence,
        uncertainties=uncertainties,
        members=members,
    )
    return validate_one(setting, outputs, name=name).result
