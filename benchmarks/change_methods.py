"""Answers of our method and of its peers for a window whose prevalence may have changed."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.change_peers import FORGETTING, Segmentation, class_shares, forget
from benchmarks.change_tables import OURS, WHOLE
from benchmarks.datasets import Task
from benchmarks.streams import BUCKET, WINDOW, Stream
from lifelong_core.deploy import (
    AdaptationPolicy,
    FittedQuantifier,
    LabeledLogits,
    PostProcessingHead,
    PrevalenceEstimate,
    WindowSummary,
    adapt,
    fit_head,
    quantifier,
)
from lifelong_core.deploy.adaptation.windows import FollowedWindow, follow_changes

POLICY = AdaptationPolicy()
LARGEST_CALIBRATION = 2000
"""samples of a calibration set; half of a smaller task"""


@dataclass(frozen=True)
class Place:
    """A task with a calibration set that was drawn anew, and what is fitted on it."""

    task: str
    population: LabeledLogits
    calibration: LabeledLogits
    fitted: FittedQuantifier
    segmentations: dict[str, Segmentation]

    @classmethod
    def of(cls, task: Task, segmentations: dict[str, Segmentation], rng: np.random.Generator) -> "Place":
        """With the class shares of the task's own sets."""
        pool = task.pool
        size = min(LARGEST_CALIBRATION, pool.samples // 2)
        calibration = pool.select(rng.integers(pool.samples, size=size))
        while calibration.counts.min() < 2:
            calibration = pool.select(rng.integers(pool.samples, size=size))
        return cls(task.name, pool, calibration, quantifier("auto").fit(calibration), segmentations)

    def head(self, prevalence: np.ndarray | None) -> PostProcessingHead:
        """For this prevalence, or for that of the calibration set."""
        costs = 1 - np.eye(self.calibration.classes)
        if prevalence is None:
            return fit_head(self.calibration, costs)
        known = np.maximum(prevalence, 1 / LARGEST_CALIBRATION)
        return fit_head(self.calibration, costs, target_prevalence=known / known.sum())

    def accuracy(self, head: PostProcessingHead, prevalence: np.ndarray) -> float:
        """Of the head in a population with this prevalence."""
        right = head.apply(self.population.logits).decisions == self.population.labels
        by_class = np.bincount(self.population.labels, right, minlength=prevalence.size)
        return float(prevalence @ (by_class / self.population.counts))


@dataclass(frozen=True)
class Located:
    """A change that a method found."""

    samples_ago: float
    low: float = float("nan")
    high: float = float("nan")


@dataclass(frozen=True)
class Answer:
    """What a method says of a window."""

    method: str
    estimate: PrevalenceEstimate | np.ndarray
    """or the point estimate alone"""
    changes: tuple[Located, ...] | None = None
    """oldest first; None: it looks for none"""
    seconds: float = float("nan")
    fluctuates: bool | None = None
    """changes that come and go are none to follow, it says; None: it does not look"""
    head: PostProcessingHead | None = None
    """that serves from now on; None: the method has no say in it"""


def answers(
    place: Place, stream: Stream, window: LabeledLogits, head: PostProcessingHead
) -> Iterator[Answer]:
    """Every method on one window."""
    rows, summaries = OURS
    yield adapted(place, rows, window.logits, head, groups=window.groups, times=stream.times)
    yield adapted(place, summaries, bucketed(place, window), head, times=stream.times[::BUCKET])
    follows_none = AdaptationPolicy(change_level=0)
    whole = adapted(place, WHOLE, window.logits, head, policy=follows_none, groups=window.groups)
    yield replace(whole, changes=None)
    shares = class_shares(window.logits)
    for method, segmentation in place.segmentations.items():
        found = tuple(Located(ago) for ago in segmentation.changes(shares))
        estimate = whole.estimate if not found else since(place, window, int(found[-1].samples_ago))
        yield Answer(method, estimate, found)
    if not stream.is_steady:
        for rate, prevalence in forget(place.fitted, window.logits).items():
            yield Answer(f"{FORGETTING}, {rate}", prevalence)
    if stream.changes:
        yield Answer("change known", since(place, window, stream.changes[-1]))


def bucketed(place: Place, window: LabeledLogits) -> list[WindowSummary]:
    """Summaries of the window's buckets."""
    parts = (window.select(np.arange(begin, begin + BUCKET)) for begin in range(0, WINDOW, BUCKET))
    return [place.fitted.summarize(part.logits, part.groups) for part in parts]


def adapted(
    place: Place,
    method: str,
    window: np.ndarray | list[WindowSummary],
    head: PostProcessingHead,
    *,
    policy: AdaptationPolicy = POLICY,
    groups: np.ndarray | None = None,
    times: np.ndarray | None = None,
) -> Answer:
    """One cycle."""
    begin = time.perf_counter()
    report = adapt(place.fitted, window, head, policy, groups=groups, times=times)
    seconds = time.perf_counter() - begin
    found = tuple(Located(one.samples_ago, one.low, one.high) for one in report.change_points)
    fluctuates = any(reason.code == "prevalence_fluctuates" for reason in report.reasons)
    assert report.prevalence is not None
    swap = report.candidate if report.outcome == "swap" else None
    return Answer(method, report.prevalence, found, seconds, fluctuates, head=swap or head)


def followed(place: Place, stream: Stream, window: LabeledLogits) -> dict[str, FollowedWindow]:
    """What ours follows, by method; all else that a cycle does is left out."""
    rows, summaries = OURS
    level, times = POLICY.change_level, stream.times
    return {
        rows: follow_changes(place.fitted, window.logits, window.groups, times, level),
        summaries: follow_changes(place.fitted, bucketed(place, window), None, times[::BUCKET], level),
    }


def since(place: Place, window: LabeledLogits, samples: int) -> PrevalenceEstimate:
    """The estimate from the newest samples."""
    groups = None if window.groups is None else window.groups[-samples:]
    return place.fitted.estimate(window.logits[-samples:], groups=groups)
