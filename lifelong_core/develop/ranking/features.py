"""Features of a pair of tasks: the source's card, its similarity to the target, distances and track record."""

from collections.abc import Mapping, Sequence

import numpy as np

from lifelong_core.develop.knowledge.entry import TaskCard
from lifelong_core.values.arrays import Floats
from lifelong_core.values.scientific import mean_ranks

DISTANCES = ("bKLD(small,target)", "VDNA")
"""Distances that one small fingerprint gives; more of them did not rank better on measured transfers."""
_FACTS = ("samples", "classes", "imbalance", "intrinsic_dimension", "smallest_pixels", "largest_pixels")
FEATURES = (
    *(f"log of the source's {fact}" for fact in _FACTS),
    *(f"difference of the logs of {fact}" for fact in _FACTS),
    "similarity of the keywords",
    "same modality",
    *(f"percentile of {name} among the sources" for name in DISTANCES),
    "track record of the source",
)


def card_facts(cards: Sequence[TaskCard]) -> Floats:
    """Logarithms of the numbers on the cards, shape (K, 6); nan: not known."""
    values = [[getattr(card, fact) for fact in _FACTS] for card in cards]
    return np.log(np.array(values, dtype=np.float64).reshape(len(cards), len(_FACTS)))


def keyword_similarity(source: TaskCard, target: TaskCard) -> float:
    """Jaccard index of the keywords; nan where one card has none."""
    first, second = set(source.keywords), set(target.keywords)
    return len(first & second) / len(first | second) if first and second else np.nan


def card_similarity(source: TaskCard, target: TaskCard) -> float:
    """Mean of keyword similarity, equality of the modality and closeness of the numbers, in [0, 1]; 1: equal cards.

    A number that differs by the factor e counts 1/2; what one card lacks is left out.
    """
    differences = np.abs(card_facts([source])[0] - card_facts([target])[0])
    parts = np.array(
        [keyword_similarity(source, target), _same_modality(source, target), *(1 / (1 + differences))]
    )
    known = parts[~np.isnan(parts)]
    return float(known.mean()) if known.size else 0.0


def percentiles(distances: Floats) -> Floats:
    """Rank of each distance divided by their number, in (0, 1), ties averaged; nan stays."""
    known = ~np.isnan(distances)
    result = np.full(distances.shape, np.nan)
    if known.any():
        result[known] = (mean_ranks(distances[known]) - 0.5) / known.sum()
    return result


def pair_features(
    sources: Sequence[TaskCard], target: TaskCard, distances: Mapping[str, Floats], track_record: Floats
) -> Floats:
    """Features of each source for this target, shape (K, F) in the order of FEATURES; nan: not known.

    Args:
        sources: cards of the K sources.
        target: card of the target.
        distances: by method, to each source, shape (K,).
        track_record: of each source, shape (K,); see `TrackRecords.for_target`.
    """
    facts, wanted = card_facts(sources), card_facts([target])
    unknown = np.full(len(sources), np.nan)
    columns = [
        *facts.T,
        *np.abs(facts - wanted).T,
        np.array([keyword_similarity(source, target) for source in sources]),
        np.array([_same_modality(source, target) for source in sources]),
        *(percentiles(distances.get(name, unknown)) for name in DISTANCES),
        track_record,
    ]
    return np.stack(columns, axis=1)


def _same_modality(source: TaskCard, target: TaskCard) -> float:
    if source.modality is None or target.modality is None:
        return np.nan
    return float(source.modality == target.modality)
