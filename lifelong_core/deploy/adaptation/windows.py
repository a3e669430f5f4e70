"""Forms of windows and buckets that a cycle accepts: raw logits, or summaries."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.label_shift.assumption_test import AssumptionReference
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier
from lifelong_core.deploy.quantification.window_summary import WindowSummary
from lifelong_core.deploy.shift.betting import BucketScores, bucket_scores
from lifelong_core.deploy.shift.change_points import ChangePoint, Segmentation, find_change_points
from lifelong_core.deploy.shift.fluctuation import Pattern
from lifelong_core.deploy.shift.ordered_window import OrderedWindow
from lifelong_core.values.arrays import Floats, Integers, Logits, as_groups, as_logits, as_parameter
from lifelong_core.values.errors import InvalidInputError

_SMALLEST_WEIGHT = 0.01
_LARGEST_TIME = 253_402_300_799.0
"""End of the year 9999."""

Bucket: TypeAlias = ArrayLike | tuple[ArrayLike, ArrayLike | None] | WindowSummary
"""New samples: their logits, (N, C); a pair of logits and groups, (N,); or their summary."""

Window: TypeAlias = ArrayLike | WindowSummary | Sequence[WindowSummary]
"""Logits in order of time, (N, C); one summary of them; or summaries of successive parts, in order of time."""


def are_summaries(window: Window) -> TypeGuard[Sequence[WindowSummary]]:
    """Whether the window consists of summaries of its successive parts."""
    if not isinstance(window, list | tuple):
        return False
    parts = cast("Sequence[object]", window)
    return bool(parts) and all(isinstance(part, WindowSummary) for part in parts)


@dataclass(frozen=True, eq=False)
class FollowedWindow:
    """A window with its change points."""

    changes: tuple[ChangePoint, ...]
    """in order of time"""
    window: ArrayLike | WindowSummary
    """the part after the last change"""
    groups: ArrayLike | None
    """groups of these rows"""
    alternatives: tuple[tuple[ArrayLike | WindowSummary, float], ...]
    """windows for other possible times of the last change, each with its weight: the share of the squared difference of
    the estimates that enters the variance"""
    pattern: Pattern | None = None
    """pattern of changes that come and go, which the window does not follow"""
    scatter: Floats | None = None
    """shape (C, C), covariance of the prevalence due to the pattern"""


def follow_changes(
    fitted: FittedQuantifier,
    window: Window,
    groups: ArrayLike | None,
    times: ArrayLike | None,
    level: float,
) -> FollowedWindow:
    """Cut off the part before the last change of the prevalence.

    Args:
        fitted: quantifier.
        window: rows or summaries in order of time; a single summary holds no order, and no change is found in it.
        groups: shape (N,), groups of the rows.
        times: shape (N,), seconds since 1970 (UTC) of the rows, or of the begin of each summary's part.
        level: probability of a change point where there is no change; 0: no search.

    Raises:
        InvalidInputError: a shape or a value does not fit.
    """
    if isinstance(window, WindowSummary):
        _as_times(times, 1)
        return FollowedWindow((), window, groups, ())
    if are_summaries(window):
        return _follow_summaries(fitted, window, groups, times, level)
    rows = as_logits(cast("ArrayLike", window))
    moments = _as_times(times, len(rows))
    keys = as_groups(groups, samples=len(rows))
    if level == 0 or len(rows) < 2:
        return FollowedWindow((), rows, keys, ())
    ordered = OrderedWindow.of_rows(fitted, rows, keys)
    starts = None if moments is None else moments[ordered.ends[:-1].astype(np.int64)]
    segmentation = find_change_points(ordered, level=level, times=starts)
    first = [int(ordered.ends[piece]) for piece in segmentation.begins]
    return FollowedWindow(
        _dated(segmentation.changes, moments, first[1:]),
        rows[first[-1] :],
        None if keys is None else keys[first[-1] :],
        tuple((rows[int(ordered.ends[piece]) :], weight) for piece, weight in _worth(segmentation)),
        segmentation.pattern,
        segmentation.scatter,
    )


def _follow_summaries(
    fitted: FittedQuantifier,
    window: Sequence[WindowSummary],
    groups: ArrayLike | None,
    times: ArrayLike | None,
    level: float,
) -> FollowedWindow:
    if groups is not None:
        raise InvalidInputError(
            "expected no groups: a summary contains the groups of its samples.", field="groups"
        )
    moments = _as_times(times, len(window))
    inhabited = [place for place, summary in enumerate(window) if summary.samples]
    if level == 0 or len(inhabited) < 2:
        return FollowedWindow((), WindowSummary.merge(window), None, ())
    starts = None if moments is None else moments[inhabited]
    segmentation = find_change_points(OrderedWindow.of_summaries(fitted, window), level=level, times=starts)

    def since(piece: int) -> WindowSummary:
        return WindowSummary.merge(window[inhabited[piece] :])

    first = [inhabited[piece] for piece in segmentation.begins]
    return FollowedWindow(
        _dated(segmentation.changes, moments, first[1:]),
        since(segmentation.begins[-1]),
        None,
        tuple((since(piece), weight) for piece, weight in _worth(segmentation)),
        segmentation.pattern,
        segmentation.scatter,
    )


def _worth(segmentation: Segmentation) -> list[tuple[int, float]]:
    """Alternatives that count in the variance."""
    return [(piece, weight) for piece, weight in segmentation.alternatives if weight >= _SMALLEST_WEIGHT]


def _dated(
    changes: Sequence[ChangePoint], moments: Floats | None, places: Sequence[int]
) -> tuple[ChangePoint, ...]:
    if moments is None:
        return tuple(changes)
    at = [datetime.fromtimestamp(float(moments[place]), UTC) for place in places]
    return tuple(replace(change, changed_at=moment) for change, moment in zip(changes, at, strict=True))


def _as_times(times: ArrayLike | None, length: int) -> Floats | None:
    if times is None:
        return None
    moments = as_parameter(times, field="times")
    if moments.shape != (length,) or (np.diff(moments) < 0).any():
        raise InvalidInputError(f"expected {length} ascending times, one for each part.", field="times")
    if length and not (moments[0] >= 0 and moments[-1] <= _LARGEST_TIME):
        raise InvalidInputError("expected seconds since 1970.", field="times")
    return moments


def window_digest(window: Window, groups: ArrayLike | None) -> tuple[int, str | None]:
    """Number of samples, and SHA-256 (hex) over logits and groups; 0 and None for illegal arrays."""
    if isinstance(window, WindowSummary):
        return window.samples, window.digest
    if are_summaries(window):
        try:
            whole = WindowSummary.merge(window)
        except InvalidInputError:
            return 0, None
        return whole.samples, whole.digest
    try:
        logits = as_logits(cast("ArrayLike", window))
        keys = as_groups(groups, samples=logits.shape[0])
    except InvalidInputError:
        return 0, None
    digest = hashlib.sha256(f"{logits.shape}\n".encode())
    digest.update(logits.astype("<f4", copy=False).tobytes())
    if keys is not None:
        # Which samples belong together is what counts, not how the pseudonyms sort: each is named by its first sample.
        _, first, member = np.unique(keys, return_index=True, return_inverse=True)
        digest.update(first[member].astype("<i8").tobytes())
    return logits.shape[0], digest.hexdigest()


def points_of(window: ArrayLike | WindowSummary) -> tuple[Logits, Integers]:
    """Logits of distinct rows, (U, C), and their numbers of samples, (U,)."""
    if isinstance(window, WindowSummary):
        return window.points()
    logits = as_logits(window)
    counts: Integers = np.ones(len(logits), dtype=np.int64)
    return logits, counts


def mean_features(window: ArrayLike | WindowSummary, reference: AssumptionReference) -> Floats:
    """Mean features of the assumption test over the samples, shape (M,)."""
    if isinstance(window, WindowSummary):
        return window.moments / window.samples
    logits = as_logits(window)
    return reference.feature_sums(logits) / len(logits)


def scores_of(head: PostProcessingHead, bucket: Bucket) -> BucketScores:
    """Scores of a bucket for the sequential test.

    Raises:
        InvalidInputError: the logits are not finite or do not fit the head.
    """
    if isinstance(bucket, WindowSummary):
        return _summary_scores(head, bucket)
    if isinstance(bucket, tuple):
        logits, groups = cast("tuple[ArrayLike, ArrayLike | None]", bucket)
        return bucket_scores(head, logits, groups=groups)
    return bucket_scores(head, bucket)


def _summary_scores(head: PostProcessingHead, summary: WindowSummary) -> BucketScores:
    logits, counts = summary.points()
    clusters = summary.clusters()
    if clusters is None:
        return bucket_scores(head, logits, counts=counts)
    sizes = clusters.sizes
    if round(float(sizes.sum())) == summary.samples:
        return bucket_scores(head, logits[clusters.row], counts=clusters.counts, groups=clusters.group)
    # Only a sample of the groups is kept: their samples are taken to say all the same.
    design_effect = float((sizes**2).sum() / sizes.sum())
    return bucket_scores(head, logits, counts=counts, design_effect=design_effect, largest=float(sizes.max()))
