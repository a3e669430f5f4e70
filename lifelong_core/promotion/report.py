"""From two models and held-out cases to the promotion report."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.head import HeadOutput
from lifelong_core.design.recommendation.document import Recommendation, RecommendedMetric
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.design.validation.paired import PairedValidation
from lifelong_core.design.validation.validation_settings import ValidationSettings
from lifelong_core.design.validation.values.samples import ModelOutputs
from lifelong_core.promotion.decision_changes import DecisionChanges
from lifelong_core.promotion.document import (
    ComparedModel,
    CostDifference,
    FingerprintDistance,
    HeldOutCases,
    LocalizationComparison,
    ModelFacts,
    Population,
    PromotionReport,
    check_compared,
)
from lifelong_core.promotion.evidence import Evidence, gather_evidence
from lifelong_core.promotion.verdict import unknowns, verdict
from lifelong_core.values.arrays import Floats, as_costs

_CALIBRATION = [
    (name, RecommendedMetric(metric=name, per_class=False)) for name in ("NLL", "BS", "ECE", "CWCE")
]
"""Measures of the probabilities, which every report holds."""


def promotion_report(
    task: str,
    new: ComparedModel,
    current: ComparedModel,
    cases: HeldOutCases,
    *,
    recommendation: Recommendation,
    class_names: Sequence[str],
    costs: ArrayLike,
    thresholds: Sequence[AcceptanceThreshold] = (),
    populations: Sequence[Population] = (),
    fingerprints: FingerprintDistance | None = None,
    localization: LocalizationComparison | None = None,
    replicates: int = 1000,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> PromotionReport:
    """Compare a new model with the current one on the same held-out cases.

    Both are resampled together, whole groups where there are any, so that the intervals of the differences are those of
    paired cases.

    Args:
        task: name of the task.
        new: the model that may be promoted.
        current: the model that serves now.
        cases: labelled cases that neither was trained or calibrated on.
        recommendation: the metrics of the task.
        class_names: C names.
        costs: shape (C, D), those of the task.
        thresholds: acceptance thresholds of the task.
        populations: environments with their estimated prevalence.
        fingerprints: distance of the training data.
        localization: whether both look at the same places.
        replicates: number of resampled data sets.
        level: nominal coverage of the intervals.
        rng: seed or generator of the resampling.

    Raises:
        InvalidInputError: a shape or a value does not fit, a metric needs what there is not, or both models are one.
    """
    check_compared(cases, new, current)
    matrix = as_costs(costs, classes=len(class_names))
    setting = ValidationSettings.of(
        recommendation,
        cases.labels,
        groups=cases.groups,
        metadata=cases.metadata,
        class_names=class_names,
        thresholds=thresholds,
        replicates=replicates,
        level=level,
        rng=rng,
    )
    outputs, before = new.head.apply(new.logits), current.head.apply(current.logits)
    paired = _paired(setting, (new, outputs), (current, before))
    changes = _changes(cases, paired, outputs, before, costs=matrix)
    evidence = gather_evidence(
        paired, new, current, costs=matrix, populations=populations, mcnemar=changes.mcnemar
    )
    return PromotionReport(
        task=task,
        new=_facts(new),
        current=_facts(current),
        origin=cases.origin,
        verdict=verdict(evidence, tuple(unknowns(evidence, cases, (new, current), localization))),
        new_result=evidence.new,
        current_result=evidence.current,
        differences=evidence.differences,
        calibration=paired.of_metrics(_CALIBRATION),
        subgroups=evidence.subgroups,
        changes=changes,
        costs=(_at_the_cases(evidence), *evidence.environments),
        cost_matrix=tuple(tuple(row) for row in matrix.tolist()),
        fingerprints=fingerprints,
        localization=localization,
        warnings=(*_seen(cases, new, current), *_warnings(paired)),
    )


def seen_warning(reference: str) -> str:
    """The warning that the held-out cases are the calibration set of a model."""
    return f"These are the calibration cases of {reference}, which favours it."


def _paired(
    setting: ValidationSettings,
    new: tuple[ComparedModel, HeadOutput],
    current: tuple[ComparedModel, HeadOutput],
) -> PairedValidation:
    chooses = all(model.calibration is not None for model, _ in (new, current))
    first, second = (
        (model.reference, _outputs(model, output, chooses=chooses)) for model, output in (new, current)
    )
    return PairedValidation.of(setting, first, second)


def _changes(
    cases: HeldOutCases, paired: PairedValidation, new: HeadOutput, current: HeadOutput, *, costs: Floats
) -> DecisionChanges:
    return DecisionChanges.of(
        paired.setting.labels,
        (new.decisions, new.probabilities),
        (current.decisions, current.probabilities),
        costs=costs,
        unit=paired.new.samples.unit,
        is_grouped=cases.groups is not None,
        names=cases.names,
    )


def _at_the_cases(evidence: Evidence) -> CostDifference:
    return CostDifference(environment=None, prevalence=evidence.new.prevalence, difference=evidence.cost)


def _outputs(model: ComparedModel, output: HeadOutput, *, chooses: bool) -> ModelOutputs:
    cut_off_data = None
    if chooses and model.calibration is not None:
        own = model.head.apply(model.calibration.logits).probabilities
        cut_off_data = (model.calibration.labels, own)
    return ModelOutputs(
        probabilities=output.probabilities,
        decisions=output.decisions,
        score_prevalence=model.head.assumed_prevalence,
        cut_off_data=cut_off_data,
    )


def _facts(model: ComparedModel) -> ModelFacts:
    return ModelFacts(
        reference=model.reference,
        head=model.head.digest,
        assumed_prevalence=tuple(model.head.assumed_prevalence.tolist()),
        cost=model.cost,
        trained_on=model.trained_on,
    )


def _seen(cases: HeldOutCases, *models: ComparedModel) -> Iterator[str]:
    """A warning for each model that was trained on some of the cases, or whose head was fitted on the very cases."""
    for model in models:
        if model.seen is not None and model.seen.is_certain:
            yield (
                f"{model.reference} was trained or calibrated on {model.seen.count} of the {len(cases.labels)} cases,"
                " which favours it."
            )
        elif model.seen is not None:
            yield (
                f"{model.seen.count} of the {len(cases.labels)} cases are not of the test split of {model.reference}:"
                " it may have been trained on them, which would favour it."
            )
        known = model.calibration
        if (
            known is not None
            and np.array_equal(known.labels, cases.labels)
            and np.array_equal(known.logits, model.logits)
        ):
            yield seen_warning(model.reference)


def _warnings(paired: PairedValidation) -> Iterator[str]:
    """The limits of both validations, once if they are the same."""
    results = paired.new.result, paired.current.result
    for text in dict.fromkeys(text for result in results for text in result.warnings):
        having = [result.name for result in results if text in result.warnings]
        yield text if len(having) == len(results) else f"{having[0]}: {text}"
