"""Fits the ranker on measured transfers; the only module of the ranking that needs scikit-learn."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor  # pyright: ignore[reportMissingTypeStubs]

from lifelong_core.arrays import Floats, Mask
from lifelong_core.develop.knowledge.entry import Scenario
from lifelong_core.develop.knowledge.transfer_outcomes import TransferOutcomes
from lifelong_core.develop.ranking.features import DISTANCES, FEATURES, pair_features
from lifelong_core.develop.ranking.forest import Forest
from lifelong_core.develop.ranking.gain_model import GainModel
from lifelong_core.develop.ranking.ranker import FittedRanker, ScenarioRanker, outcomes_digest
from lifelong_core.develop.ranking.standardised_gains import (
    StandardisedGains,
    TrackRecords,
    dataset_of,
    gains,
    measured_pairs,
)
from lifelong_core.errors import InvalidInputError

FEWEST_DATASETS = 5
"""Data sets with measured transfers that a scenario needs: one is left out at a time, to tell how well it is ranked."""
_TREES = 200
_FOLDS = 10
_SMALLEST_LEAF = 3
_SHARE_OF_FEATURES = 0.5
_PRIOR_DATASETS = 5.0
"""Data sets without an effect of the baseline that the slope starts with."""


def fit_ranker(outcomes: TransferOutcomes, *, seed: int = 0) -> FittedRanker:
    """Fit a ranker for each scenario with enough outcomes.

    Extremely randomised trees (Geurts et al., 2006) predict the standardised gain of a source for a target from the
    source's card, the similarity to the target's card, distances and the source's track record on other targets. What
    the predicted order is worth is measured on data sets that are left out, both as targets and as sources.

    Args:
        outcomes: measured transfers; tasks that share images name the same data set on their cards.
        seed: of the trees and folds; equal outcomes and seeds give equal rankers.

    Raises:
        InvalidInputError: no scenario has outcomes of at least FEWEST_DATASETS data sets.
    """
    groups = np.array([dataset_of(card) for card in outcomes.cards])
    fitted: dict[Scenario, ScenarioRanker] = {
        scenario: _fit_scenario(outcomes, number, groups, seed)
        for number, scenario in enumerate(outcomes.scenarios)
        if np.unique(groups[measured_pairs(outcomes, number).any(axis=0)]).size >= FEWEST_DATASETS
    }
    if not fitted:
        raise InvalidInputError(
            f"a ranker needs measured transfers to tasks of at least {FEWEST_DATASETS} data sets in one scenario.",
            field="outcomes",
            hint="Import more knowledge, or rank by a distance.",
        )
    return FittedRanker(fitted, outcomes_digest(outcomes))


def _fit_scenario(outcomes: TransferOutcomes, scenario: int, groups: Any, seed: int) -> ScenarioRanker:
    labels = StandardisedGains.of(outcomes, scenario)
    everything = np.ones(len(outcomes.cards), dtype=np.bool_)
    forest, records = _fit_forest(outcomes, labels, everything, seed)
    held_out = _held_out_scores(outcomes, labels, groups, seed)
    gain = gains(outcomes, scenario)
    models = {
        measure: _fit_gains(gain[number], _mean_baseline(outcomes, number), held_out, groups)
        for number, measure in enumerate(outcomes.measures)
    }
    known = {measure: model for measure, model in models.items() if model is not None}
    return ScenarioRanker(forest, records, known, int(measured_pairs(outcomes, scenario).sum()))


def _fit_forest(
    outcomes: TransferOutcomes, labels: StandardisedGains, kept: Mask, seed: int
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
        record = records.for_target(tuple(source.name for source in sources), card)
        distances = _distances(outcomes, places[known], int(places[target]))
        rows.append(pair_features(sources, card, distances, record))
        values.append(inside.values[known, target])
        weights.append(np.full(known.size, inside.reliability[target]))
    trees: Any = ExtraTreesRegressor(
        _TREES, min_samples_leaf=_SMALLEST_LEAF, max_features=_SHARE_OF_FEATURES, random_state=seed
    )
    trees.fit(np.concatenate(rows), np.concatenate(values), sample_weight=np.concatenate(weights))
    return _as_forest(trees), records


def _held_out_scores(outcomes: TransferOutcomes, labels: StandardisedGains, groups: Any, seed: int) -> Floats:
    """Scores (T, T) of each target by forests that saw nothing of its data set; nan: not measured."""
    scores = np.full(labels.values.shape, np.nan)
    for held in _folds(groups, seed):
        if not (~np.isnan(labels.values[np.ix_(~held, ~held)])).any():
            continue
        forest, records = _fit_forest(outcomes, labels, ~held, seed)
        for target in np.flatnonzero(held):
            known = np.flatnonzero(~np.isnan(labels.values[:, target]))
            if not known.size:
                continue
            card, sources = outcomes.cards[target], [outcomes.cards[place] for place in known]
            record = records.for_target(tuple(source.name for source in sources), card)
            features = pair_features(sources, card, _distances(outcomes, known, int(target)), record)
            predicted = forest.predict(features)
            scores[known, target] = predicted - predicted.mean()
    return scores


def _folds(groups: Any, seed: int) -> Iterator[Mask]:
    """Tasks of the data sets that are left out together, shape (T,)."""
    names = np.random.default_rng(seed).permutation(np.unique(groups))
    for chosen in np.array_split(names, min(_FOLDS, names.size)):
        yield np.isin(groups, chosen)


def _fit_gains(gain: Floats, baseline: Floats, scores: Floats, groups: Any) -> GainModel | None:
    """The gain model of one measure from held-out scores; None: no gain is known."""
    known = ~np.isnan(gain) & ~np.isnan(scores)
    targets = np.flatnonzero(known.any(axis=0))
    if not targets.size:
        return None
    names, dataset = np.unique(groups[targets], return_inverse=True)
    share = 1 / (names.size * np.bincount(dataset)[dataset])
    means = np.array([gain[known[:, target], target].mean() for target in targets])
    level, mean_baseline = float(share @ means), float(share @ baseline[targets])
    offset = baseline[targets] - mean_baseline
    spread = float(share @ offset**2)
    prior = _PRIOR_DATASETS / names.size * spread
    slope = float(share @ (offset * (means - level))) / (spread + prior) if spread > 0 else 0.0
    source, column = np.nonzero(known[:, targets])
    place = targets[column]
    weight = share[column] / known[:, targets].sum(axis=0)[column]
    score, within = scores[source, place], gain[source, place] - means[column]
    strength = float(weight @ score**2)
    score_slope = max(0.0, float(weight @ (score * within)) / strength) if strength > 0 else 0.0
    left_out = _left_out_levels(means, offset, share, dataset, prior)
    plain = _left_out_levels(means, np.zeros_like(offset), share, dataset, 1.0)
    rest = gain[source, place] - score_slope * score
    return GainModel(
        level,
        mean_baseline,
        slope,
        score_slope,
        residuals=rest - left_out[column],
        plain_residuals=rest - plain[column],
        residual_weights=weight / weight.sum(),
        datasets=int(names.size),
    )


def _left_out_levels(means: Floats, offset: Floats, share: Floats, dataset: Any, prior: float) -> Floats:
    """Level of each target, fitted without its data set."""
    levels = np.zeros_like(means)
    for number in range(int(dataset.max()) + 1):
        held = dataset == number
        weight = np.where(held, 0.0, share)
        weight = weight / weight.sum() if weight.sum() > 0 else weight
        level, centre = weight @ means, weight @ offset
        shifted = offset - centre
        slope = (weight @ (shifted * (means - level))) / (weight @ shifted**2 + prior)
        levels[held] = level + slope * shifted[held]
    return levels


def _mean_baseline(outcomes: TransferOutcomes, measure: int) -> Floats:
    """Mean over the repetitions, shape (T,); tasks without a baseline get nan and have no gain."""
    values = outcomes.baseline[measure]
    known = ~np.isnan(values)
    return np.where(
        known.any(axis=0), np.nan_to_num(values).sum(axis=0) / np.maximum(known.sum(axis=0), 1), np.nan
    )


def _distances(outcomes: TransferOutcomes, sources: Any, target: int) -> Mapping[str, Floats]:
    return {
        name: outcomes.distances[number, sources, target]
        for number, name in enumerate(outcomes.methods)
        if name in DISTANCES
    }


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
