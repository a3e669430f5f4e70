"""A target, its possible sources and the measured transfers between them, from a knowledge base."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np

from lifelong_core.develop.fingerprints.distances.registry import METHODS
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.knowledge.entry import Scenario, TaskCard, TransferOutcomes, dataset_of
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.ranking.features import DISTANCES
from lifelong_core.develop.ranking.ranker import ScenarioRanker, mean_baseline
from lifelong_core.develop.ranking.source_distances import source_distances
from lifelong_core.develop.ranking.standardised_gains import gain_variances, gains
from lifelong_core.values.arrays import Floats
from lifelong_core.values.scientific import normal_quantile


@dataclass(frozen=True)
class TrackRecord:
    """Mean gain of a source on targets of other data sets than the asked one."""

    gain: float
    targets: int


@dataclass(frozen=True)
class Question:
    """A target, its K possible sources, and what was measured of them in one scenario and measure."""

    target: TaskCard
    sources: tuple[TaskCard, ...]
    distances: Mapping[str, Floats]
    """by method, shape (K,); nan: not known"""
    baseline: float | None
    """mean performance of the target without transfer; None: not measured"""
    measured_gains: Floats
    """(K,): of transfers to this very target; nan: not measured"""
    measured_variances: Floats
    """(K,): of these gains, from repetitions; nan: not known"""
    records: Mapping[str, TrackRecord]
    """by source"""

    @classmethod
    def ask(
        cls,
        knowledge: KnowledgeBase,
        target: str | TaskCard,
        *,
        scenario: Scenario,
        measure: str,
        methods: Sequence[str] = (),
        fingerprints: Sequence[Fingerprint] = (),
        is_for_ranker: bool = True,
    ) -> Self:
        """Gather the question with distances by `methods`; by the ranker's for a ranker, or where none is known.

        Raises:
            NotFoundError: the knowledge base does not hold the target.
        """
        card = knowledge.entry(target).card if isinstance(target, str) else target
        outcomes = knowledge.outcomes()
        names = knowledge.possible_sources(target)
        if is_for_ranker:
            # Of the others nothing was measured or published: there is nothing to transfer, and no evidence.
            names = tuple(name for name in names if name in outcomes.tasks)
        gain = _gains(outcomes, scenario, measure)

        def measure_by(wanted: Sequence[str]) -> dict[str, Floats]:
            return {
                method: source_distances(knowledge, card.name, names, method, fingerprints)
                for method in wanted
            }

        distances = measure_by([method for method in methods if method in METHODS])
        if is_for_ranker or all(np.isnan(held).all() for held in distances.values()):
            distances |= measure_by([method for method in DISTANCES if method not in distances])
            distances = {method: distances[method] for method in dict.fromkeys((*DISTANCES, *distances))}
        known, variances, baseline = dict[str, float](), dict[str, float](), None
        if card.name in outcomes.tasks:
            place = outcomes.tasks.index(card.name)
            known = dict(zip(outcomes.tasks, gain[:, place].tolist(), strict=True))
            baseline = mean_baseline(outcomes, measure, place)
            variance = _variances(outcomes, scenario, measure)
            variances = dict(zip(outcomes.tasks, variance[:, place].tolist(), strict=True))
        return cls(
            card,
            tuple(knowledge.entry(name).card for name in names),
            MappingProxyType(distances),
            baseline,
            np.array([known.get(name, np.nan) for name in names], dtype=np.float64),
            np.array([variances.get(name, np.nan) for name in names], dtype=np.float64),
            MappingProxyType(_track_records(outcomes, card, gain)),
        )


def _gains(outcomes: TransferOutcomes, scenario: Scenario, measure: str) -> Floats:
    """Gains of this measure, shape (T, T); nan: not measured."""
    if scenario not in outcomes.scenarios or measure not in outcomes.measures:
        return np.full((len(outcomes.cards),) * 2, np.nan)
    return gains(outcomes, outcomes.scenarios.index(scenario))[outcomes.measures.index(measure)]


def _variances(outcomes: TransferOutcomes, scenario: Scenario, measure: str) -> Floats:
    """Variances of these gains, shape (T, T); nan: not known."""
    if scenario not in outcomes.scenarios or measure not in outcomes.measures:
        return np.full((len(outcomes.cards),) * 2, np.nan)
    return gain_variances(outcomes, outcomes.scenarios.index(scenario))[outcomes.measures.index(measure)]


def _track_records(outcomes: TransferOutcomes, target: TaskCard, gain: Floats) -> dict[str, TrackRecord]:
    other = np.array([dataset_of(card) != dataset_of(target) for card in outcomes.cards], dtype=np.bool_)
    known = ~np.isnan(gain[:, other])
    counts = known.sum(axis=1)
    means = np.nan_to_num(gain[:, other]).sum(axis=1) / np.maximum(counts, 1)
    return {
        name: TrackRecord(float(mean), int(count))
        for name, mean, count in zip(outcomes.tasks, means, counts, strict=True)
        if count
    }


@dataclass(frozen=True)
class Forecast:
    """Gains of K sources, shape (K,) each."""

    expected: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, ranker: ScenarioRanker, question: Question, measure: str, confidence: float) -> Self:
        """Predict the gains; where this very transfer was measured, the measurement corrects the prediction.

        Prediction and measurement are weighted by their precision: the mean square of the ranker's residuals on data
        sets that were left out, and the variance between repetitions (see `gain_variances`).
        """
        model = ranker.gains[measure]
        scores, has_record = ranker.score(question.sources, question.target, question.distances)
        expected = model.expected_gains(scores, question.baseline)
        known = question.baseline is not None
        limits = np.array(
            [
                model.residual_limits(confidence, is_measured=bool(flag), baseline_known=known)
                for flag in (False, True)
            ]
        )[has_record.astype(int)]
        low, high = expected + limits[:, 0], expected + limits[:, 1]
        surprise = np.nan_to_num(question.measured_gains - expected)
        # A surprising measurement shows that the residuals understate the error of this prediction.
        residual_variance = model.residual_variance(baseline_known=known)
        spread = np.maximum(residual_variance, surprise**2)
        # Of single measurements the noise is not known, but the residuals contain it.
        noise = np.where(
            np.isnan(question.measured_variances), residual_variance, question.measured_variances
        )
        trust = np.where(
            np.isnan(question.measured_gains) | (spread == 0),
            0.0,
            spread / np.maximum(spread + noise, 1e-300),
        )
        corrected = expected + trust * surprise
        half = float(normal_quantile((1 + confidence) / 2)) * np.sqrt(trust * noise)
        return cls(
            corrected,
            np.where(trust > 0, corrected - half, low),
            np.where(trust > 0, corrected + half, high),
        )
