"""Intermediate results that the metrics of one call share; each is computed at most once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from lifelong_core.metrics.calibration.binned import Reliability, exact_reliability, reliability, top_label
from lifelong_core.metrics.catalogue.metrics import METRICS, PER_CLASS_COUNTS
from lifelong_core.metrics.catalogue.parameters import Parameters
from lifelong_core.metrics.computation.inputs import CheckedInputs
from lifelong_core.metrics.counting.confusion import OneVersusRest
from lifelong_core.metrics.counting.cost import costs_of
from lifelong_core.metrics.counting.one_versus_rest import positive_share
from lifelong_core.metrics.scores.at_target import SHARE_OF_POSITIVES, PerClassMetric, at_target
from lifelong_core.metrics.scores.blockwise import columns_of
from lifelong_core.metrics.scores.labelled_probabilities import as_labelled_probabilities
from lifelong_core.metrics.scores.ranking import Ranking, class_rankings, rank
from lifelong_core.metrics.scores.scoring_rules import mean_squared_distance
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
        return np.array([one.error(self.parameters.norm) for one in self._binned_classes])

    def one_class_metric(self, acronym: str) -> PerClassMetric:
        """Metric of one class against the rest, with its parameters; always the same object."""
        return self._one_class_metrics[acronym]

    @cached_property
    def _one_class_metrics(self) -> dict[str, Callable[..., Any]]:
        own = {"F_beta": {"beta": self.parameters.beta}, "NB": {"threshold": self.parameters.threshold}}
        found = {
            acronym: partial(METRICS[acronym].function, **own[acronym])
            if acronym in own
            else METRICS[acronym].function
            for acronym in PER_CLASS_COUNTS
        }
        return {**found, SHARE_OF_POSITIVES: positive_share}

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
