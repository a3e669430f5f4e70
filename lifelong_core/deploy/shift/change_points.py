"""Change points of the prevalence in a window in order of time.

The search has two steps. The first partitions some hundred blocks of the window. The posterior of each sample under the
prevalence of the whole window is the efficient score of the mixture. A change of the prevalence moves its mean, so the
best partition of whitened block means locates the change (optimal partitioning; the threshold is the tail of a squared
Brownian bridge, so that an unchanged window has a change point with a probability below 0.01). The second step refines
each change to single pieces by the likelihood ratio of the mixtures before and after, which also gives the interval of
its time.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import numpy as np

from lifelong_core.deploy.documents import take_fields
from lifelong_core.deploy.shift.fluctuation import Fluctuation, Pattern, scatter_since
from lifelong_core.deploy.shift.location import LOCATION_DROP, ChangeSearch, Mixture, Split
from lifelong_core.deploy.shift.ordered_window import OrderedWindow
from lifelong_core.deploy.shift.partition import SHORTEST_SEGMENT, EfficientScores
from lifelong_core.values.arrays import LARGEST_NUMBER, Floats
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import normal_quantile

CONFIDENCE = 0.95
_END_OF_INTERVAL = 0.125
"""Weight of the squared difference at either end of the interval of a change's time: each end is about two standard
errors away, and there are two."""
_FIELDS = ("samples_ago", "low", "high", "size", "size_low", "size_high", "changed_at")


@dataclass(frozen=True)
class ChangePoint:
    """A change of the prevalence within a window."""

    samples_ago: int
    """number of samples of the window after the change, at least 1"""
    low: int
    high: int
    """interval of `samples_ago`, at CONFIDENCE; for a window of buckets it includes all buckets that may contain the
    change"""
    size: float
    """L1 distance, 0 to 2, between the prevalences before and after, each up to the neighbouring change"""
    size_low: float
    size_high: float
    """interval of `size`, at CONFIDENCE"""
    changed_at: datetime | None = None
    """UTC: time of the first sample, or begin of the first bucket, after the change; None: the times are unknown"""

    def to_document(self) -> dict[str, Any]:
        """All fields as JSON values; every number survives the round trip exactly."""
        values = {name: getattr(self, name) for name in _FIELDS}
        at = None if self.changed_at is None else self.changed_at.isoformat()
        return {"schema_version": 1, **values, "changed_at": at}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read a document of `to_document`.

        Raises:
            InvalidInputError: a field is missing, unknown or has an illegal value.
        """
        found = take_fields(document, 1, required=_FIELDS)
        for name, kind in (*((name, int) for name in _FIELDS[:3]), *((name, float) for name in _FIELDS[3:6])):
            value = found[name]
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, kind))
                or not 0 <= value <= LARGEST_NUMBER
            ):
                raise InvalidInputError("expected a number that is not negative.", field=name)
        if found["changed_at"] is not None:
            try:
                found["changed_at"] = datetime.fromisoformat(found["changed_at"])
            except (TypeError, ValueError) as error:
                raise InvalidInputError("expected a time in ISO 8601.", field="changed_at") from error
        return cls(**found)


@dataclass(frozen=True)
class Segmentation:
    """Window divided at its change points."""

    changes: tuple[ChangePoint, ...]
    """in order of time"""
    begins: tuple[int, ...]
    """first piece of each segment, ascending, 0 first"""
    alternatives: tuple[tuple[int, float], ...]
    """other possible first pieces of the last segment, each with its weight: the share of the squared difference of the
    estimates that enters the variance"""
    pattern: Pattern | None = None
    """pattern of temporary changes, which are not change points; then there is one segment"""
    scatter: Floats | None = None
    """shape (C, C), covariance of the mean prevalence of the window due to the pattern"""


def find_change_points(window: OrderedWindow, *, level: float, times: Floats | None = None) -> Segmentation:
    """Find the change points of a window.

    Args:
        window: pieces in order of time.
        times: shape (P,), ascending, seconds since 1970 (UTC) of the begin of each piece, to detect rhythms.
        level: largest probability of a false change point, positive.
    """
    scores = EfficientScores.of(window)
    begins, effect = scores.partition(level, (0,))
    if window.group_piece is not None and len(begins) > 1:
        # Groups scatter less around their own segment than around a window that a change has widened.
        begins, effect = scores.partition(level, begins)
    threshold = scores.threshold(level, effect)
    search = ChangeSearch(window, threshold * effect, LOCATION_DROP * effect, SHORTEST_SEGMENT * effect)
    splits = search.refine(begins)
    fluctuation = Fluctuation.of(scores, splits, effect, times, threshold)
    pattern, scatter = fluctuation.pattern, None
    if pattern is not None:
        places = [split.at for split in splits]
        if pattern == "jitter":
            lasting = fluctuation.lasting_change(level)
            splits = [] if lasting is None else search.refine((0, lasting))
        else:
            splits = fluctuation.change_beside_rhythm(threshold)
        scatter = scatter_since(window, places, since=splits[-1].at if splits else 0)
    changes = tuple(_change_point(window, split, effect) for split in splits)
    alternatives = _alternatives(splits, scores, effect, threshold) if pattern is None or splits else ()
    return Segmentation(changes, (0, *(split.at for split in splits)), alternatives, pattern, scatter)


def _alternatives(
    splits: Sequence[Split], scores: EfficientScores, effect: float, threshold: float
) -> tuple[tuple[int, float], ...]:
    """Other first pieces of the last segment, with their weights."""
    if not splits:
        at, gain = scores.next_best(effect)
        return ((at, _probability(gain, threshold)),)
    last = splits[-1]
    none = (last.begin, 1 - _probability(2 * last.gain / effect, threshold))
    ends = tuple((piece, _END_OF_INTERVAL) for piece in (last.low, last.high) if piece != last.at)
    return (*ends, none)


def _probability(gain: float, threshold: float) -> float:
    """Probability of a change with this gain; a gain equal to the threshold has probability 1/2."""
    return 1 / (1 + math.exp(min((threshold - gain) / 2, 700.0)))


def _change_point(window: OrderedWindow, split: Split, effect: float) -> ChangePoint:
    before, after = Mixture.of(window, split.begin, split.at), Mixture.of(window, split.at, split.end)
    difference = after.prevalence - before.prevalence
    direction = np.sign(difference)
    size = float(np.abs(difference).sum())
    error = np.sqrt(effect * (before.variance(direction) + after.variance(direction)))
    reach = -float(normal_quantile((1 - CONFIDENCE) / 2)) * float(error)
    ago = window.ends[-1] - window.ends
    # A change within a piece is located at its begin or its end.
    earliest = split.low - (window.sizes[split.low - 1] > 1)
    latest = split.high + (window.sizes[split.high] > 1)
    return ChangePoint(
        samples_ago=round(float(ago[split.at])),
        low=round(float(ago[latest])),
        high=round(float(ago[earliest])),
        size=size,
        size_low=max(0.0, size - reach),
        size_high=min(2.0, size + reach),
    )
