"""Evaluation of each metric of the pool on samples with a valid output."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from lifelong_core.metrics.calibration.binned import canonical_gap
from lifelong_core.metrics.calibration.cost_loss import ec_calibration_loss
from lifelong_core.metrics.calibration.density import ece_kde
from lifelong_core.metrics.calibration.kernel import Estimate, kernel_calibration_error
from lifelong_core.metrics.catalogue.metrics import METRICS, PER_CLASS_COUNTS
from lifelong_core.metrics.computation.workbench import SharedComputations
from lifelong_core.metrics.counting.cost import expected_cost, normalised_expected_cost
from lifelong_core.metrics.counting.multiclass import weighted_cohen_kappa
from lifelong_core.metrics.counting.net_benefit import net_benefit_from_probabilities
from lifelong_core.metrics.scores.labelled_probabilities import equal_prediction_blocks
from lifelong_core.metrics.scores.scoring_rules import mean_log_loss, naive_brier_score, skill
from lifelong_core.values.arrays import Floats

Value: TypeAlias = float | Floats
Evaluator: TypeAlias = Callable[[SharedComputations], Value]


def _of_confusion(acronym: str) -> Evaluator:
    function = METRICS[acronym].function
    return lambda work: function(work.confusion)


def _per_class_count(acronym: str) -> Evaluator:
    def evaluate(work: SharedComputations) -> Floats:
        target = work.parameters.target
        if target is None:
            return work.one_class_metric(acronym)(work.confusion)
        return work.at_target(acronym, target)

    return evaluate


def _net_benefit(work: SharedComputations) -> Value:
    inputs = work.inputs
    if work.parameters.target or inputs.is_confusion_given or inputs.probabilities is None:
        return _per_class_count("NB")(work)
    return net_benefit_from_probabilities(*work.scored, threshold=work.parameters.threshold)


def _brier_skill_score(work: SharedComputations) -> float:
    labels, probabilities = work.scored
    return skill(work.brier_score, naive_brier_score(labels, probabilities.shape[1]))


def _canonical_calibration_error(work: SharedComputations) -> float:
    parts = equal_prediction_blocks(*work.scored)
    return math.fsum(canonical_gap(part, norm=work.parameters.norm) for part in parts)


def _kernel_calibration_error(work: SharedComputations) -> Estimate:
    chosen = work.parameters
    return kernel_calibration_error(
        *work.scored,
        estimator=chosen.estimator,
        bandwidth=chosen.bandwidth,
        subsample=chosen.subsample,
        rng=work.rng,
    )


def _ece_kde(work: SharedComputations) -> Estimate:
    chosen = work.parameters
    return ece_kde(
        *work.scored,
        bandwidth=chosen.bandwidth,
        norm=chosen.norm,
        subsample=chosen.subsample,
        rng=work.rng,
    )


def _ec_calibration_loss(work: SharedComputations) -> float:
    labels, probabilities = work.scored
    return ec_calibration_loss(
        labels, probabilities, work.inputs.costs, prevalence=work.inputs.prevalence, rng=work.rng
    )


_BY_THEMSELVES: dict[str, Evaluator] = {
    "EC": lambda work: expected_cost(work.confusion, work.costs, prevalence=work.inputs.prevalence),
    "NEC": lambda work: normalised_expected_cost(
        work.confusion, work.costs, prevalence=work.inputs.prevalence
    ),
    "WCK": lambda work: weighted_cohen_kappa(work.confusion, work.costs),
    "NB": _net_benefit,
    "AUROC": lambda work: work.of_rankings("AUROC"),
    "AP": lambda work: work.of_rankings("AP"),
    "BS": lambda work: work.brier_score,
    "RBS": lambda work: float(np.sqrt(work.brier_score)),
    "BSS": _brier_skill_score,
    "NLL": lambda work: mean_log_loss(*work.scored),
    "ECE": lambda work: work.top_label_error(work.parameters.bins_or_default),
    "TCE": lambda work: work.top_label_error(work.parameters.bins),
    "CWCE": lambda work: float(work.marginal_errors(is_binned=True).mean()),
    "MCE": lambda work: work.marginal_errors(is_binned=work.parameters.bins is not None),
    "CE": _canonical_calibration_error,
    "KCE": _kernel_calibration_error,
    "ECE_KDE": _ece_kde,
    "ECCL": _ec_calibration_loss,
}

EVALUATORS: Mapping[str, Evaluator] = MappingProxyType(
    {acronym: _of_confusion(acronym) for acronym in ("AC", "ER", "BA", "CK", "MCC")}
    | {acronym: _per_class_count(acronym) for acronym in PER_CLASS_COUNTS}
    | _BY_THEMSELVES
)
"""Evaluator of each metric, by acronym."""
