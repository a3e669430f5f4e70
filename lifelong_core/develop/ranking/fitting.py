"""Fits the ranker on measured transfers; the only module of the ranking that needs scikit-learn."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor  # pyright: ignore[reportMissingTypeStubs]

from lifelong_core.develop.knowledge.entry import Scenario, TransferOutcomes, dataset_of
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.ranking.features import DISTANCES, FEATURES
from lifelong_core.develop.ranking.gain_model import Forest, GainModel, Residuals
from lifelong_core.develop.ranking.ranker import (
    FittedRanker,
    ScenarioRanker,
    describe_pairs,
    distances_to,
    outcomes_digest,
)
from lifelong_core.develop.ranking.source_distances import fill_distances
from lifelong_core.develop.ranking.standardised_gains import (
    FEWEST_SOURCES,
    StandardisedGains,
    TrackRecords,
    gains,
    mean_baselines,
    measured_pairs,
)
from lifelong_core.values.arrays import Floats, Mask
from lifelong_core.values.errors import InvalidInputError

FEWEST_DATASETS = 5
"""Data sets with measured transfers that a scenario needs: one is left out at a time, to tell how well it is ranked."""
TREES = 200
_PARTS, _REPEATS = 3, 4
"""A third of the data sets is left out at a time, so that pairs of two left-out tasks occur."""
_LEAST_SLOPE = 1e-4
"""Keeps the order of the sources where their scores said nothing on data sets that were left out."""
_SMALLEST_LEAF = 3
_SHARE_OF_FEATURES = 0.5
_PRIOR_DATASETS = 5.0
"""Data sets without an effect of the baseline that the slope starts with."""


@dataclass(frozen=True)
class _Forests:
    """How forests are fitted."""

    trees: int
    seed: int


def fit_ranker(outcomes: TransferOutcomes, *, seed: int = 0, trees: int = TREES) -> FittedRanker:
    """Fit a ranker for each scenario with enough outcomes.

    Extremely randomised trees (Geurts et al., 2006) predict the standardised gain of a source for a target from the
    source's card, the similarity to the target's card, distances and the source's track record on other targets. What
    the predicted order is worth is measured on data sets that are left out, both as targets and as sources.

    Args:
        outcomes: measured transfers; tasks that share images name the same data set on their cards.
        seed: of the trees and splits; equal outcomes and seeds give equal rankers.
        trees: in the forest of each scenario.

    Raises:
        InvalidInputError: an outcome is infinite, or no scenario has gains, and an order of at least FEWEST_SOURCES
            sources, on targets of at least FEWEST_DATASETS data sets.
    """
    if np.isinf(outcomes.outcomes).any() or np.isinf(outcomes.baseline).any():
        raise InvalidInputError("expected finite outcomes, got infinite ones.", field="outcomes")
    groups = np.array([dataset_of(card) for card in outcomes.cards])
    fitted: dict[Scenario, ScenarioRanker] = {
        scenario: ranker
        for number, scenario in enumerate(outcomes.scenarios)
        if (ranker := _fit_scenario(outcomes, number, groups, _Forests(trees, seed))) is not None
    }
    if not fitted:
        raise InvalidInputError(
            f"a ranker needs tasks of at least {FEWEST_DATASETS} data sets in one scenario, each with its performance"
            f" without transfer and with transfers from at least {FEWEST_SOURCES} sources that differ in outcome.",
            field="outcomes",
            hint="Import more knowledge, or rank by a distance.",
        )
    return FittedRanker(fitted, outcomes_digest(outcomes))


def fit_knowledge_ranker(knowledge: KnowledgeBase, *, seed: int = 0, trees: int = TREES) -> FittedRanker:
    """Fit a ranker on all that a knowledge base holds: measured transfers, cards, and distances of fingerprints.

    Raises:
        InvalidInputError: as `fit_ranker`.
    """
    return fit_ranker(fill_distances(knowledge, DISTANCES), seed=seed, trees=trees)


def _fit_scenario(
    outcomes: TransferOutcomes, scenario: int, groups: Any, forests: _Forests
) -> ScenarioRanker | None:
    """The ranker of one scenario; None: too few outcomes."""
    labels = StandardisedGains.of(outcomes, scenario)
    if np.unique(groups[~np.isnan(labels.values).all(axis=0)]).size < FEWEST_DATASETS:
        return None
    everything = np.ones(len(outcomes.cards), dtype=np.bool_)
    forest, records = _fit_forest(outcomes, labels, everything, forests)
    held_out = _held_out_scores(outcomes, labels, groups, forests)
    gain = gains(outcomes, scenario)
    models = {
        measure: _fit_gains(gain[number], mean_baselines(outcomes)[number], held_out, groups)
        for number, measure in enumerate(outcomes.measures)
    }
    known = {measure: model for measure, model in models.items() if model is not None}
    if not known:
        return None
    return ScenarioRanker(forest, records, known, int(measured_pairs(outcomes, scenario).sum()))


def _fit_forest(
    outcomes: TransferOutcomes, labels: StandardisedGains, kept: Mask, forests: _Forests
) -> tuple[Forest, TrackRecords]:
    """Fit on the kept tasks, both as sources and as targets."""
    places = np.flatnonzero(kept)
    cards = tuple(outcomes.cards[place] for place in places)
    inside = StandardisedGains(labels.values[np.ix_(kept, kept)], labels.reliability[kept])
    records = TrackRecords.of(cards, inside)
    rows: list[Floats] = []
    values: list[Floats] = []
    weights: list[Floats] = []
    for target, card in enumerate(cards):
        known = np.flatnonzero(~np.isnan(inside.values[:, target]))
        if not known.size:
            continue
        sources = [cards[place] for place in known]
        distances = distances_to(outcomes, places[known], int(places[target]))
        rows.append(describe_pairs(records, sources, card, distances)[0])
        values.append(inside.values[known, target])
        weights.append(np.full(known.size, inside.reliability[target]))
    trees: Any = ExtraTreesRegressor(
        forests.trees,
        min_samples_leaf=_SMALLEST_LEAF,
        max_features=_SHARE_OF_FEATURES,
        random_state=forests.seed,
    )
    trees.fit(np.concatenate(rows), np.concatenate(values), sample_weight=np.concatenate(weights))
    return _as_forest(trees), records


def _held_out_scores(
    outcomes: TransferOutcomes, labels: StandardisedGains, groups: Any, forests: _Forests
) -> Floats:
    """Scores by forests that saw nothing of the target's data set, shape (2, T, T); nan: not measured.

    First those of sources with a track record, then those of sources without one; each is a mean over the splits.
    """
    sums = np.zeros((2, *labels.values.shape))
    counts = np.zeros_like(sums)
    for held in _splits(groups, forests.seed):
        if np.isnan(labels.values[np.ix_(~held, ~held)]).all():
            continue
        forest, records = _fit_forest(outcomes, labels, ~held, forests)
        for target in np.flatnonzero(held):
            known = np.flatnonzero(~np.isnan(labels.values[:, target]))
            if not known.size:
                continue
            card, sources = outcomes.cards[target], [outcomes.cards[place] for place in known]
            distances = distances_to(outcomes, known, int(target))
            features, has_record = describe_pairs(records, sources, card, distances)
            is_new = (~has_record).astype(int)
            sums[is_new, known, target] += forest.predict(features)
            counts[is_new, known, target] += 1
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _splits(groups: Any, seed: int) -> Iterator[Mask]:
    """Tasks of the data sets that are left out together, shape (T,): each data set _REPEATS times."""
    rng = np.random.default_rng(seed)
    for _ in range(_REPEATS):
        for chosen in np.array_split(rng.permutation(np.unique(groups)), _PARTS):
            yield np.isin(groups, chosen)


def _fit_gains(gain: Floats, baseline: Floats, scores: Floats, groups: Any) -> GainModel | None:
    """The gain model of one measure from held-out scores (2, T, T); None: too few gains are known."""
    pairs = [_Pairs.of(gain, held_out, groups) for held_out in scores]
    new = pairs[1]
    # Where no source has a record on two data sets, there are only new ones.
    measured = pairs[0] if pairs[0].target.size else new
    if not new.target.size or np.unique(groups[measured.target]).size < FEWEST_DATASETS:
        return None
    score_slope = max(_LEAST_SLOPE, _slope_within_targets(pairs))
    # The level is that of targets; sources with a track record predict it best.
    targets, place = np.unique(measured.target, return_inverse=True)
    share = _sums(place, measured.weight)
    means = _sums(place, measured.weight * (measured.gain - score_slope * measured.score)) / share
    names, dataset = np.unique(groups[targets], return_inverse=True)
    mean_baseline = float(share @ baseline[targets])
    offset = baseline[targets] - mean_baseline
    prior = _PRIOR_DATASETS / names.size * float(share @ offset**2)
    level, slope = _fit_line(means, offset, share, prior)
    left_out = np.full((2, baseline.size), level)
    left_out[0, targets] = _left_out_levels(means, offset, share, dataset, prior)
    left_out[1, targets] = _left_out_levels(means, np.zeros_like(offset), share, dataset, prior)
    residuals = [
        Residuals(held.gain - score_slope * held.score - left_out[:, held.target], held.weight)
        for held in (measured, new)
    ]
    return GainModel(level, mean_baseline, slope, score_slope, *residuals, datasets=int(names.size))


@dataclass(frozen=True)
class _Pairs:
    """Measured pairs with a held-out score, shape (R,) each."""

    target: Any
    gain: Floats
    score: Floats
    weight: Floats
    """each data set of targets counts the same, and within it each target; sum 1"""

    @classmethod
    def of(cls, gain: Floats, scores: Floats, groups: Any) -> "_Pairs":
        source, target = np.nonzero(~np.isnan(gain) & ~np.isnan(scores))
        targets, place, pairs = np.unique(target, return_inverse=True, return_counts=True)
        names, dataset, members = np.unique(groups[targets], return_inverse=True, return_counts=True)
        share = 1 / (names.size * members[dataset] * pairs) if targets.size else np.zeros(0)
        return cls(target, gain[source, target], scores[source, target], share[place])

    def centre(self, values: Floats) -> Floats:
        """The values minus their mean over the sources of each target."""
        total = _sums(self.target, self.weight)
        means = _sums(self.target, self.weight * values) / np.where(total > 0, total, 1.0)
        return values - means[self.target]


def _sums(groups: Any, values: Floats) -> Floats:
    return np.asarray(np.bincount(groups, values), dtype=np.float64)


def _slope_within_targets(pairs: Sequence[_Pairs]) -> float:
    """What a unit of the score adds to the gain among the sources of a target; 0 for equal scores."""
    shared = sum(float(held.weight @ (held.centre(held.score) * held.centre(held.gain))) for held in pairs)
    strength = sum(float(held.weight @ held.centre(held.score) ** 2) for held in pairs)
    return shared / strength if strength > 0 else 0.0


def _fit_line(values: Floats, offset: Floats, weight: Floats, prior: float) -> tuple[float, float]:
    """Mean, and slope over the centred offset, shrunken by `prior`; the weights sum to 1."""
    level = float(weight @ values)
    spread = float(weight @ offset**2)
    return level, float(weight @ (offset * (values - level))) / (spread + prior) if spread > 0 else 0.0


def _left_out_levels(means: Floats, offset: Floats, share: Floats, dataset: Any, prior: float) -> Floats:
    """Level of each target, fitted without its data set."""
    levels = np.zeros_like(means)
    for number in range(int(dataset.max()) + 1):
        held = dataset == number
        weight = np.where(held, 0.0, share)
        if weight.sum() == 0:
            continue
        weight = weight / weight.sum()
        shifted = offset - weight @ offset
        level, slope = _fit_line(means, shifted, weight, prior)
        levels[held] = level + slope * shifted[held]
    return levels


def _as_forest(trees: Any) -> Forest:
    """The trees as arrays. A leaf's children are itself, so that a descent may go on behind it."""
    parts: dict[str, list[Any]] = {
        name: [] for name in ("features", "thresholds", "left", "right", "missing", "values")
    }
    roots: list[int] = []
    start: int = 0
    for estimator in trees.estimators_:
        tree: Any = estimator.tree_
        nodes = int(tree.node_count)
        index = np.arange(nodes)
        leaf = tree.children_left < 0
        roots.append(start)
        parts["features"].append(np.where(leaf, -1, tree.feature))
        parts["thresholds"].append(np.where(leaf, 0.0, tree.threshold))
        parts["left"].append(start + np.where(leaf, index, tree.children_left))
        parts["right"].append(start + np.where(leaf, index, tree.children_right))
        parts["missing"].append(tree.missing_go_to_left.astype(np.bool_))
        parts["values"].append(tree.value[:, 0, 0])
        start += nodes
    joined = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    return Forest(
        roots=np.array(roots, dtype=np.int32),
        features=joined["features"].astype(np.int16),
        thresholds=joined["thresholds"].astype(np.float64),
        left=joined["left"].astype(np.int32),
        right=joined["right"].astype(np.int32),
        missing_left=joined["missing"],
        values=joined["values"].astype(np.float64),
        feature_count=len(FEATURES),
    )
