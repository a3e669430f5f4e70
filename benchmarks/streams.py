"""Windows in order of time whose prevalence changes at known moments, and their samples."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.datasets import with_labels
from lifelong_core.deploy import LabeledLogits

WINDOW = 5000
"""samples"""
BUCKET = 500
"""samples of one summary; a window has ten"""
AGES = (500, 1000, 2000)
"""samples since an abrupt change"""
SIZES = (0.2, 0.5, 1.0)
"""L1 distances of an abrupt change"""
JITTER = 40.0
"""concentration of the Dirichlet distribution of a bucket's mix: an L1 distance of about 0.24 from the mean"""
WEEK = 7 * 86_400
SOME_WEEK = 2900 * WEEK
"""seconds since 1970"""
LARGEST_GROUP = 20
SHARED = 0.5
"""share of a patient's samples that are of the patient's own class; the others are drawn independently"""


@dataclass(frozen=True, eq=False)
class Stream:
    """The prevalence of each sample of a window, oldest first."""

    name: str
    prevalences: np.ndarray
    """shape (WINDOW, C)"""
    changes: tuple[int, ...] = ()
    """abrupt changes, in samples before the end of the window, oldest first"""
    size: float = 0.0
    """L1 distance of the last abrupt change"""
    groups: np.ndarray | None = None
    """shape (WINDOW,), patients; None: all samples are independent"""
    comes_back: bool = False
    """the mixes of the window come again"""
    begin: float = 0.0
    """seconds from the beginning of a week to the first sample"""
    interval: float = 100.0
    """seconds between two samples"""

    @property
    def times(self) -> np.ndarray:
        """Seconds since 1970 of each sample, shape (WINDOW,)."""
        return SOME_WEEK + self.begin + self.interval * np.arange(WINDOW)

    @property
    def now(self) -> np.ndarray:
        """The prevalence at the end of the window."""
        return self.prevalences[-1]

    @property
    def ahead(self) -> np.ndarray:
        """The mean prevalence that a head meets from now on."""
        return self.prevalences.mean(axis=0) if self.comes_back else self.now

    @property
    def before(self) -> np.ndarray:
        """The prevalence at the beginning of the window."""
        return self.prevalences[0]

    @property
    def drifts(self) -> bool:
        """Does the prevalence change otherwise than at `changes`?"""
        return not self.changes and not self.is_steady

    @property
    def is_steady(self) -> bool:
        """Does the prevalence never change?"""
        return bool((self.prevalences == self.before).all())

    def draw(self, population: LabeledLogits, rng: np.random.Generator) -> LabeledLogits:
        """Samples of the stream; they have groups where the stream has them."""
        labels = labels_of(self.prevalences, rng, self.groups)
        drawn = with_labels(population, labels, rng)
        return LabeledLogits(drawn.logits, drawn.labels, self.groups)


def labels_of(
    prevalences: np.ndarray, rng: np.random.Generator, groups: np.ndarray | None = None
) -> np.ndarray:
    """One class for each row of prevalences, (N, C); samples of one group depend on each other."""
    uniform = rng.random(len(prevalences))
    if groups is not None:
        common = rng.random(int(groups.max()) + 1)[groups]
        uniform = np.where(rng.random(groups.size) < SHARED, common, uniform)
    steps = np.cumsum(prevalences, axis=1)[:, :-1]
    return (uniform[:, np.newaxis] >= steps).sum(axis=1)


def pair_at(classes: int, distance: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A random prevalence and another one at this L1 distance."""
    while True:
        before, goal = rng.dirichlet(np.ones(classes), size=2)
        if np.abs(goal - before).sum() >= distance:
            return before, _towards(before, goal, distance)


def moved(prevalence: np.ndarray, distance: float, rng: np.random.Generator) -> np.ndarray:
    """Another prevalence at this L1 distance, towards one that is drawn from Dirichlet(1)."""
    while True:
        goal = rng.dirichlet(np.ones(prevalence.size))
        if np.abs(goal - prevalence).sum() >= distance:
            return _towards(prevalence, goal, distance)


def steady(classes: int, rng: np.random.Generator) -> Stream:
    """No change."""
    return _piecewise("no change", [rng.dirichlet(np.ones(classes))], ())


def steady_groups(classes: int, rng: np.random.Generator) -> Stream:
    """No change, samples in groups."""
    return _grouped(_piecewise("groups, no change", [rng.dirichlet(np.ones(classes))], ()), rng)


def abrupt_name(distance: float, age: int) -> str:
    """Of a stream with one change."""
    return f"abrupt, L1 {distance:.1f}, {age:,} ago"


def abrupt(distance: float, age: int) -> "Draw":
    """One change."""

    def draw(classes: int, rng: np.random.Generator) -> Stream:
        before, after = pair_at(classes, distance, rng)
        return _piecewise(abrupt_name(distance, age), [before, after], (age,))

    return draw


def abrupt_groups(classes: int, rng: np.random.Generator) -> Stream:
    """One change, samples in groups."""
    before, after = pair_at(classes, 0.5, rng)
    return _grouped(_piecewise("groups, L1 0.5, 1,000 ago", [before, after], (1000,)), rng)


def two_changes(classes: int, rng: np.random.Generator) -> Stream:
    """Two changes with L1 distances from 0.3 to 0.8, each segment with 800 samples or more."""
    older = int(rng.integers(2400, 4200))
    newer = int(rng.integers(800, older - 800))
    first, second = pair_at(classes, rng.uniform(0.3, 0.8), rng)
    return _piecewise(
        "two changes", [first, second, moved(second, rng.uniform(0.3, 0.8), rng)], (older, newer)
    )


def back_and_forth(classes: int, rng: np.random.Generator) -> Stream:
    """An episode of 1,500 samples that ended 1,000 samples ago."""
    usual, episode = pair_at(classes, 0.7, rng)
    return _piecewise("back and forth", [usual, episode, usual], (2500, 1000))


def gradual(classes: int, rng: np.random.Generator) -> Stream:
    """A drift over ten buckets by L1 1.0 whose middle is the end of the window."""
    before, goal = pair_at(classes, 1.0, rng)
    done = np.clip((np.arange(WINDOW) - WINDOW / 2) / WINDOW, 0, 0.5)[:, np.newaxis]
    return Stream("gradual", (1 - done) * before + done * goal)


def jittering(classes: int, rng: np.random.Generator) -> Stream:
    """Each bucket has a mix of its own around one mean."""
    mean = rng.dirichlet(np.ones(classes))
    mixes = rng.dirichlet(JITTER * mean + 1e-3, size=WINDOW // BUCKET)
    return Stream("jittering", np.repeat(mixes, BUCKET, axis=0), comes_back=True)


def day_and_night(classes: int, rng: np.random.Generator) -> Stream:
    """Five days of 1,000 samples, the first half of each with another mix; the window begins at any time of a day."""
    return _rhythm("day and night", classes, period=1000, share=0.5, seconds=WEEK / 7, rng=rng)


def weekends(classes: int, rng: np.random.Generator) -> Stream:
    """Three weeks, two days of each with another mix; the window begins at any time of a week."""
    return _rhythm("weekends", classes, period=1667, share=2 / 7, seconds=WEEK, rng=rng)


Draw = Callable[[int, np.random.Generator], Stream]
"""Draws a stream with so many classes."""

UNCHANGED: tuple[Draw, ...] = (steady, steady_groups)
CHANGED: tuple[Draw, ...] = (
    *(abrupt(distance, age) for distance in SIZES for age in AGES),
    abrupt_groups,
    two_changes,
    back_and_forth,
    gradual,
    jittering,
    day_and_night,
    weekends,
)


def _towards(prevalence: np.ndarray, goal: np.ndarray, distance: float) -> np.ndarray:
    return prevalence + distance / np.abs(goal - prevalence).sum() * (goal - prevalence)


def _piecewise(name: str, mixes: list[np.ndarray], changes: tuple[int, ...]) -> Stream:
    lengths = -np.diff([WINDOW, *changes, 0])
    size = float(np.abs(mixes[-1] - mixes[-2]).sum()) if changes else 0.0
    return Stream(name, np.repeat(mixes, lengths, axis=0), changes, size)


def _rhythm(
    name: str, classes: int, *, period: int, share: float, seconds: float, rng: np.random.Generator
) -> Stream:
    usual, other = pair_at(classes, 0.7, rng)
    first = int(rng.integers(period))
    is_other = (first + np.arange(WINDOW)) % period < share * period
    prevalences = np.where(is_other[:, np.newaxis], other, usual)
    interval = seconds / period
    return Stream(name, prevalences, comes_back=True, begin=first * interval, interval=interval)


def _grouped(stream: Stream, rng: np.random.Generator) -> Stream:
    """The same stream with patients of 1 to LARGEST_GROUP samples, one after the other."""
    sizes = rng.integers(1, LARGEST_GROUP + 1, size=WINDOW)
    groups = np.repeat(np.arange(WINDOW), sizes)[:WINDOW]
    return replace(stream, groups=groups)
