"""The fitted ranker predicts the gain of each source for a target; numpy only, for serving processes."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from lifelong_core.develop.knowledge.entry import SCENARIOS, Scenario, TaskCard, TransferOutcomes, dataset_of
from lifelong_core.develop.ranking.features import DISTANCES, FEATURES, pair_features
from lifelong_core.develop.ranking.gain_model import Forest, GainModel, Residuals
from lifelong_core.develop.ranking.standardised_gains import TrackRecords, mean_baselines, measured_pairs
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, Mask
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.npz import DAMAGED_HINT, array_digest, read_npz, write_npz

SCHEMA_VERSION = 1
MOST_BYTES = 2**28
"""Limit of the memory of a ranker's arrays."""

_FOREST = ("roots", "features", "thresholds", "left", "right", "missing_left", "values")
_GAIN_NUMBERS = ("level", "mean_baseline", "baseline_slope", "score_slope")


def outcomes_digest(outcomes: TransferOutcomes) -> str:
    """SHA-256 (hex) of all that a ranker is fitted on."""
    digest = hashlib.sha256()
    for card in outcomes.cards:
        digest.update(card.to_json().encode())
    digest.update("\n".join((*outcomes.scenarios, *outcomes.measures, *outcomes.methods)).encode())
    arrays = {"outcomes": outcomes.outcomes, "baseline": outcomes.baseline, "distances": outcomes.distances}
    digest.update(array_digest(arrays).encode())
    return digest.hexdigest()


def describe_pairs(
    records: TrackRecords, sources: Sequence[TaskCard], target: TaskCard, distances: Mapping[str, Floats]
) -> tuple[Floats, Mask]:
    """Features of the sources for this target, shape (K, F), and whether each has a track record, shape (K,)."""
    record = records.for_target(tuple(card.name for card in sources), target)
    return pair_features(sources, target, distances, record), ~np.isnan(record)


def distances_to(outcomes: TransferOutcomes, sources: NDArray[np.intp], target: int) -> dict[str, Floats]:
    """Distances that the ranker uses, by method, from the sources at these places, shape (K,)."""
    return {
        name: outcomes.distances[number, sources, target]
        for number, name in enumerate(outcomes.methods)
        if name in DISTANCES
    }


@dataclass(frozen=True, eq=False)
class ScenarioRanker(ArrayValue):
    """The ranker of one scenario."""

    forest: Forest
    records: TrackRecords
    gains: Mapping[str, GainModel]
    """by measure"""
    outcomes: int
    """measured pairs of source and target that it was fitted on"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "gains", MappingProxyType(dict(self.gains)))

    def score(
        self, sources: Sequence[TaskCard], target: TaskCard, distances: Mapping[str, Floats]
    ) -> tuple[Floats, Mask]:
        """Scores of the sources for this target, and whether each has a track record, shape (K,) each.

        The higher, the better; 0: an average source of the fit.
        """
        features, has_record = describe_pairs(self.records, sources, target, distances)
        return self.forest.predict(features), has_record


@dataclass(frozen=True, eq=False)
class FittedRanker(ArrayValue):
    """Rankers of all scenarios with enough outcomes; `fit_ranker` makes one."""

    scenarios: Mapping[Scenario, ScenarioRanker]
    outcomes_digest: str
    """of the outcomes that it was fitted on; see `outcomes_digest`"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "scenarios", MappingProxyType(dict(self.scenarios)))

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the file."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def scores(self, outcomes: TransferOutcomes, scenario: Scenario) -> Floats:
        """Expected gain, mean over the measures, of each pair of tasks, shape (T, T): source, target.

        Of the outcomes, only which pairs were measured is read, and the baselines. nan: no legal pair (of equal data
        sets, or not measured although the target was), or no ranker of this scenario.
        """
        result = np.full((len(outcomes.cards),) * 2, np.nan)
        ranker = self.scenarios.get(scenario)
        if ranker is None:
            return result
        measured = measured_pairs(outcomes, outcomes.scenarios.index(scenario))
        groups = np.array([dataset_of(card) for card in outcomes.cards])
        for target, card in enumerate(outcomes.cards):
            legal = measured[:, target] if measured[:, target].any() else groups != groups[target]
            places = np.flatnonzero(legal)
            sources = [outcomes.cards[place] for place in places]
            scores, _ = ranker.score(sources, card, distances_to(outcomes, places, target))
            result[places, target] = np.mean(
                [
                    model.expected_gains(scores, mean_baseline(outcomes, measure, target))
                    for measure, model in ranker.gains.items()
                ],
                axis=0,
            )
        return result

    def to_bytes(self) -> bytes:
        """The ranker as an npz file; equal rankers give equal bytes."""
        arrays: dict[str, NDArray[np.generic]] = {
            "schema_version": np.array(SCHEMA_VERSION),
            "features": np.array(FEATURES),
            "outcomes_digest": np.array(self.outcomes_digest),
        }
        for scenario, ranker in self.scenarios.items():
            arrays |= {f"{scenario}/{name}": values for name, values in _arrays_of(ranker).items()}
        return write_npz(arrays)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read what `to_bytes` wrote.

        Raises:
            InvalidInputError: no such file, or one of another version.
        """
        names = ("schema_version", "features", "outcomes_digest")
        arrays = read_npz(
            content, names, field="ranker", prefix="", maximum_bytes=MOST_BYTES, hint=DAMAGED_HINT
        )
        version, features = arrays["schema_version"].tolist(), arrays["features"].tolist()
        if version != SCHEMA_VERSION or features != list(FEATURES):
            raise InvalidInputError(
                "the ranker was fitted by another version.", field="ranker", hint="Fit it again."
            )
        try:
            scenarios: dict[Scenario, ScenarioRanker] = {
                scenario: _ranker_of(held)
                for scenario in SCENARIOS
                if (held := _with_prefix(arrays, f"{scenario}/"))
            }
        except (KeyError, ValueError, TypeError) as error:
            raise InvalidInputError(
                "the file of the ranker is damaged.", field="ranker", hint="Fit it again."
            ) from error
        ranker = cls(scenarios, str(arrays["outcomes_digest"]))
        # To write the file again only for its digest would take half a second.
        ranker.__dict__["digest"] = hashlib.sha256(content).hexdigest()
        return ranker


def mean_baseline(outcomes: TransferOutcomes, measure: str, target: int) -> float | None:
    """Mean performance of the target without transfer over the repetitions; None: not measured."""
    if measure not in outcomes.measures:
        return None
    value = float(mean_baselines(outcomes)[outcomes.measures.index(measure), target])
    return None if np.isnan(value) else value


def _arrays_of(ranker: ScenarioRanker) -> dict[str, NDArray[np.generic]]:
    arrays: dict[str, NDArray[np.generic]] = {name: getattr(ranker.forest, name) for name in _FOREST}
    records = ranker.records
    arrays |= {
        "sources": np.array(records.sources),
        "datasets": np.array(records.datasets),
        "sums": records.sums,
        "counts": records.counts,
        "outcomes": np.array(ranker.outcomes),
        "measures": np.array(tuple(ranker.gains)),
    }
    for number, model in enumerate(ranker.gains.values()):
        numbers = [getattr(model, name) for name in _GAIN_NUMBERS]
        arrays[f"gain{number}"] = np.array([*numbers, float(model.datasets)])
        for name, held in (("measured", model.measured), ("new", model.new)):
            arrays[f"{name}_residuals{number}"] = held.values
            arrays[f"{name}_weights{number}"] = held.weights
    return arrays


def _ranker_of(arrays: Mapping[str, NDArray[Any]]) -> ScenarioRanker:
    forest = Forest(**{name: arrays[name] for name in _FOREST}, feature_count=len(FEATURES))
    records = TrackRecords(
        tuple(arrays["sources"].tolist()),
        tuple(arrays["datasets"].tolist()),
        arrays["sums"],
        arrays["counts"],
    )
    gains: dict[str, GainModel] = {}
    for number, measure in enumerate(cast("list[str]", arrays["measures"].tolist())):
        *numbers, datasets = arrays[f"gain{number}"].tolist()
        residuals = [
            Residuals(arrays[f"{name}_residuals{number}"], arrays[f"{name}_weights{number}"])
            for name in ("measured", "new")
        ]
        gains[measure] = GainModel(*numbers, *residuals, datasets=int(datasets))
    return ScenarioRanker(forest, records, gains, int(arrays["outcomes"]))


def _with_prefix(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): held for name, held in arrays.items() if name.startswith(prefix)}
