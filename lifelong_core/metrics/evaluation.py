"""Evaluation of each metric of the pool on samples with a valid output.

`SharedComputations` holds the inputs and the intermediate results that the metrics of one call share; `EVALUATORS` has
the function of each acronym.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from lifelong_core.metrics.calibration.binned import (
    Reliability,
    canonical_gap,
    exact_reliability,
    reliability,
    top_label,
)
from lifelong_core.metrics.calibration.cost_loss import ec_calibration_loss
from lifelong_core.metrics.calibration.density import ece_kde
from lifelong_core.metrics.calibration.kernel import Estimate, kernel_calibration_error
from lifelong_core.metrics.catalogue import METRICS, PER_CLASS_COUNTS
from lifelong_core.metrics.counting.confusion import OneVersusRest
from lifelong_core.metrics.counting.cost import costs_of, net_benefit_from_probabilities
from lifelong_core.metrics.counting.multiclass import (
    expected_cost,
    normalised_expected_cost,
    weighted_cohen_kappa,
)
from lifelong_core.metrics.counting.one_versus_rest import positive_share
from lifelong_core.metrics.inputs import CheckedInputs, Parameters
from lifelong_core.metrics.scores.at_target import SHARE_OF_POSITIVES, PerClassMetric, at_target
from lifelong_core.metrics.scores.ranking import Ranking, class_rankings, rank
from lifelong_core.metrics.scores.samples import (
    as_labelled_probabilities,
    columns_of,
    equal_prediction_blocks,
)
from lifelong_core.metrics.scores.scoring_rules import (
    mean_log_loss,
    mean_squared_distance,
    naive_brier_score,
    skill,
)
from lifelong_core.values.arrays import Floats, Integers, Mask
from lifelong_core.values.errors import InvalidInputError

OF_RANKING: Mapping[str, Callable[[Ranking, Parameters], float]] = MappingProxyType(
    {
        "AUROC": lambda ranking, _: ranking.roc_area,
        "AP": lambda ranking, _: ranking.average_precision,
        "MCE": lambda ranking, chosen: exact_reliability(ranking).error(chosen.norm),
    }
)
"""Metrics of one class's sorted probabilities; MCE without bins."""

Value: TypeAlias = float | Floats


class SharedComputations:
    """Checked inputs and parameters, with what several metrics need of them."""

    def __init__(
        self,
        inputs: CheckedInputs,
        parameters: Parameters,
        rng: int | np.random.Generator,
        names: Iterable[str] = (),
    ) -> None:
        self.inputs = inputs
        self.parameters = parameters
        self.rng = rng
        self.names = frozenset(names)
        """acronyms of the metrics of this call, as far as they are known"""

    @property
    def confusion(self) -> Floats:
        """Confusion matrix, shape (C, D)."""
        if self.inputs.confusion is None:
            raise InvalidInputError(
                "a metric that counts decisions needs them.",
                field="confusion_matrix" if self.inputs.labels is None else "decisions",
                hint="Give a confusion matrix, or labels with decisions or probabilities.",
            )
        return self.inputs.confusion

    @property
    def scored(self) -> tuple[Integers, Floats]:
        """Labels (N,) and probabilities (N, C)."""
        labels, probabilities = self.inputs.labels, self.inputs.probabilities
        if labels is None or probabilities is None:
            raise InvalidInputError(
                "a metric of probabilities needs labels and probabilities.",
                field="labels" if labels is None else "probabilities",
                hint="Give labels of shape (N,) and probabilities of shape (N, C).",
            )
        return labels, probabilities

    @cached_property
    def costs(self) -> Floats:
        """Costs, shape (C, D); 0-1 costs by default."""
        return costs_of(self.inputs.costs, self.confusion)

    @cached_property
    def one_versus_rest(self) -> OneVersusRest:
        """True and false positives and negatives of each class."""
        return OneVersusRest.of(self.confusion)

    @cached_property
    def rankings(self) -> tuple[Ranking, ...]:
        """Sorted probabilities of each class."""
        return class_rankings(*self.scored)

    @cached_property
    def target_rankings(self) -> tuple[Ranking, ...]:
        """Rankings that select the cut-offs."""
        split = self.parameters.target_split
        if split is None:
            return self.rankings
        chosen_on = class_rankings(*as_labelled_probabilities(*split))
        if len(chosen_on) != len(self.rankings):
            raise InvalidInputError(
                f"expected {len(self.rankings)} classes, as in the other inputs, got {len(chosen_on)}.",
                field="target_split",
            )
        return chosen_on

    def of_rankings(self, acronym: str) -> Floats:
        """A metric of each class's ranking, one of `OF_RANKING`, shape (C,)."""
        return self._of_rankings[acronym] if acronym in self.names else self._evaluated([acronym])[acronym]

    @cached_property
    def _of_rankings(self) -> dict[str, Floats]:
        return self._evaluated([acronym for acronym in OF_RANKING if acronym in self.names])

    def _evaluated(self, acronyms: Sequence[str]) -> dict[str, Floats]:
        """Metrics of one ranking after the other: all rankings together take thrice the memory of the samples."""
        if self.parameters.target is not None:
            rankings = iter(self.rankings)
        else:
            labels, probabilities = self.scored
            rankings = (rank(column, labels == k) for k, column in enumerate(columns_of(probabilities)))
        values = [[OF_RANKING[name](ranking, self.parameters) for name in acronyms] for ranking in rankings]
        return dict(zip(acronyms, np.array(values).T, strict=True))

    @cached_property
    def brier_score(self) -> float:
        """Brier score."""
        return mean_squared_distance(*self.scored)

    @cached_property
    def _top_label(self) -> tuple[Floats, Mask]:
        return top_label(*self.scored)

    @cached_property
    def _binned_classes(self) -> tuple[Reliability, ...]:
        labels, probabilities = self.scored
        return tuple(
            self._binned(column, labels == k, self.parameters.bins_or_default)
            for k, column in enumerate(columns_of(probabilities))
        )

    def _binned(self, scores: Floats, is_hit: Mask, bins: int | None) -> Reliability:
        return reliability(scores, is_hit, bins=bins, right_closed=self.parameters.right_closed)

    def top_label_error(self, bins: int | None) -> float:
        """Calibration error of the highest probability, in bins or (None) conditional on equal probabilities."""
        return self._binned(*self._top_label, bins).error(self.parameters.norm)

    def marginal_errors(self, *, is_binned: bool) -> Floats:
        """Calibration error of each class's probability, shape (C,)."""
        if not is_binned:
            return self.of_rankings("MCE")
        return np.array([bins.error(self.parameters.norm) for bins in self._binned_classes])

    def one_class_metric(self, acronym: str) -> PerClassMetric:
        """Metric of one class against the rest, with its parameters; always the same object."""
        return self._one_class_metrics[acronym]

    @cached_property
    def _one_class_metrics(self) -> dict[str, Callable[..., Any]]:
        own = {"F_beta": {"beta": self.parameters.beta}, "NB": {"threshold": self.parameters.threshold}}
        functions = {
            acronym: partial(METRICS[acronym].function, **own[acronym])
            if acronym in own
            else METRICS[acronym].function
            for acronym in PER_CLASS_COUNTS
        }
        return {**functions, SHARE_OF_POSITIVES: positive_share}

    def at_target(self, acronym: str, target: tuple[str, float]) -> Floats:
        """Metric of each class at the cut-off that brings another metric to a value, shape (C,)."""
        wanted, value = target
        if wanted not in self._one_class_metrics:
            raise InvalidInputError(
                f"{wanted!r} does not count one class against the rest.",
                field="target",
                hint=f"Use one of {', '.join(self._one_class_metrics)}.",
            )
        metric, target_metric = self.one_class_metric(acronym), self.one_class_metric(wanted)
        return np.array(
            [
                at_target(ranking, split, metric=metric, target_metric=target_metric, target=value)
                for ranking, split in zip(self.rankings, self.target_rankings, strict=True)
            ]
        )


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
