"""Sequential evidence that the prevalence differs from the assumed one, valid for any number of looks.

Each bet (see `betting`) has its own capital M. It starts at 0, gets one unit before every look, and is multiplied by
the payoff of the bucket: M <- (M + 1) L. It is the sum of the test supermartingales that start at each look, an
e-detector (Shin, Ramdas and Rinaldo 2024): if the true mean score lies in the zone, E[M_t] <= t, also at stopping
times. The same holds for the weighted mean over bets. False alarms at the level A therefore occur on average after at
least A looks, and within the first t looks with a probability of at most t / A, for buckets of any size. Each sample
must be in exactly one bucket; samples may arrive late and in any order.

The assumptions: given all earlier buckets, the population's prevalence differs from the assumed one by a move of at
most `tolerance` of the samples between classes; the outputs within a class are distributed as in the calibration set
(the assumption test checks this); and the calibration set is within its own zone, which holds for 99 of 100. A
prevalence that jitters from bucket to bucket around the assumed one by more than the tolerance violates this, because
the samples of one bucket then depend on each other. The evidence is therefore reduced by the scatter of earlier buckets
beyond their sampling error. This is approximate, because the scatter must be estimated first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Self, cast

import numpy as np

from lifelong_core.deploy.documents import FlatDocument
from lifelong_core.deploy.shift.betting import (
    BucketScores,
    fixed_bets,
    learned_bets,
    log_growth,
    precision,
)
from lifelong_core.deploy.shift.reference import ScoreReference
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import LARGEST_NUMBER, Floats, as_parameter, read_only
from lifelong_core.values.errors import InvalidInputError

MEMORIES = np.array([1_000.0, 4_000.0, 16_000.0])
"""Memory of the learned bets, in samples; weights of older samples decrease exponentially."""

LEARNED_WEIGHT = 0.5
"""Weight of the learned bets in the mean over all bets; the fixed bets have the remaining weight."""

LARGEST_LOG_CAPITAL = 30.0
"""Limit of the log capital, so that the evidence decreases after a shift has ended."""

SCATTER_LOOKS = 100.0
"""Memory of the scatter of the buckets' means, in looks; weights of older looks decrease exponentially."""

PRIOR_LOOKS = 5.0
"""Initial looks without excess scatter."""

MOST_MISSING = 100_000
"""Largest number of missing samples that is computed."""

LARGEST_RISE = 5.0
"""Limit of one look's scatter, relative to the mean so far, because a shift is a single jump."""


@dataclass(frozen=True, eq=False)
class ShiftEvidence(FlatDocument, ArrayValue):
    """State of the sequential test after some looks; its size does not depend on their number."""

    key: str
    """digest of the inputs of the test: quantifier, head and policy"""
    looks: int
    """buckets with at least one sample"""
    samples: int
    log_capitals: Floats
    """shape (J,), log(1 + M) of each bet, the fixed ones first"""
    memory_sums: Floats
    """shape (K, C), exponentially weighted sums of (score - expectation)"""
    memory_samples: Floats
    """shape (K,), exponentially weighted numbers of samples"""
    last_deviation: Floats
    """shape (C,), mean of (score - expectation) in the last bucket"""
    last_variance: Floats
    """shape (C,), variance of that mean, from the scatter of its samples or groups"""
    scatter: float
    """exponentially weighted sum over looks of (difference between successive buckets' means, squared) / (its expected
    value without scatter)"""
    scatter_looks: float
    """exponentially weighted number of these looks"""

    def __post_init__(self) -> None:
        """Check every field, and freeze the arrays.

        Raises:
            InvalidInputError: a type, a shape or a value does not fit.
        """
        if not isinstance(cast("object", self.key), str):
            raise InvalidInputError("expected a string.", field="key")
        for name in ("looks", "samples"):
            object.__setattr__(self, name, _as_count(getattr(self, name), name))
        for name in ("scatter", "scatter_looks"):
            object.__setattr__(self, name, _as_number(getattr(self, name), name))
        for name, dimensions in (
            ("log_capitals", 1),
            ("memory_sums", 2),
            ("memory_samples", 1),
            ("last_deviation", 1),
            ("last_variance", 1),
        ):
            array = as_parameter(getattr(self, name), field=name)
            if array.ndim != dimensions:
                raise InvalidInputError(f"expected {dimensions} dimensions, got {array.ndim}.", field=name)
            object.__setattr__(self, name, read_only(array))
        classes = self.last_deviation.size
        if classes < 2:
            raise InvalidInputError("expected two classes or more.", field="last_deviation")
        if self.memory_sums.shape != (self.memory_samples.size, classes):
            raise InvalidInputError("expected one row per memory, one column per class.", field="memory_sums")
        if self.last_variance.size != classes:
            raise InvalidInputError("expected one number per class.", field="last_variance")
        if self.log_capitals.size <= MEMORIES.size:
            raise InvalidInputError(f"expected more than {MEMORIES.size} numbers.", field="log_capitals")
        for name in ("log_capitals", "memory_samples", "last_variance", "scatter"):
            if (np.asarray(getattr(self, name)) < 0).any():
                raise InvalidInputError("expected nothing negative.", field=name)
        if (self.log_capitals > LARGEST_LOG_CAPITAL + 1).any():
            raise InvalidInputError(f"expected at most {LARGEST_LOG_CAPITAL + 1:g}.", field="log_capitals")
        if self.scatter_looks <= 0:
            raise InvalidInputError("expected a positive number.", field="scatter_looks")
        if self.samples < self.looks:
            raise InvalidInputError("expected at least one sample per look.", field="samples")

    @classmethod
    def start(cls, key: str, *, classes: int, bets: int) -> Self:
        """Evidence before the first look."""
        memories = MEMORIES.size
        return cls(
            key=key,
            looks=0,
            samples=0,
            log_capitals=np.zeros(bets),
            memory_sums=np.zeros((memories, classes)),
            memory_samples=np.zeros(memories),
            last_deviation=np.zeros(classes),
            last_variance=np.zeros(classes),
            scatter=PRIOR_LOOKS,
            scatter_looks=PRIOR_LOOKS,
        )

    @property
    def log_e_value(self) -> float:
        """Logarithm of the e-detector, the weighted mean of all capitals; at least 0."""
        capitals = np.expm1(self.log_capitals)
        fixed, learned = np.split(capitals, [-MEMORIES.size])
        value = (1 - LEARNED_WEIGHT) * fixed.mean() + LEARNED_WEIGHT * learned.mean()
        return math.log(max(value, 1.0))

    @property
    def dispersion(self) -> float:
        """Variance of the means of successive buckets relative to that of their samples, at least 1."""
        return max(1.0, self.scatter / self.scatter_looks)


def update_evidence(
    evidence: ShiftEvidence | None,
    reference: ScoreReference,
    buckets: Sequence[BucketScores],
    *,
    key: str,
    tolerance: float,
) -> ShiftEvidence:
    """Update the evidence with new buckets, one after the other; it reaches an alarm at log(average run length).

    Args:
        evidence: evidence of the earlier looks. The test restarts if it is None, has another key, or has the bets of
            another version of the product.
        reference: reference of the head that gave the scores.
        buckets: new buckets, with each sample in exactly one; empty buckets are skipped.
        key: digest of all inputs of the test.
        tolerance: share of the population, 0 to 1, that may move between classes without a shift. (The prevalence of
            each class changes by at most this share, the L1 distance by at most twice as much.)

    Raises:
        InvalidInputError: a bucket has another number of classes, or the tolerance is no share.

    Examples:
        >>> import numpy as np
        >>> from lifelong_core.deploy import LabeledLogits, fit_head
        >>> from lifelong_core.deploy.shift.reference import ScoreReference
        >>> from lifelong_core.deploy.shift.betting import bucket_scores
        >>> rng = np.random.default_rng(0)
        >>> def sample(*counts):
        ...     labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        ...     return 2 * np.eye(len(counts))[labels] + rng.normal(size=(labels.size, len(counts))), labels
        >>> calibration = LabeledLogits(*sample(4000, 4000))
        >>> head = fit_head(calibration, [[0, 1], [1, 0]])
        >>> reference = ScoreReference.of(calibration, head)
        >>> def look(evidence, *counts):
        ...     bucket = bucket_scores(head, sample(*counts)[0])
        ...     return update_evidence(evidence, reference, [bucket], key=head.digest, tolerance=0.01)
        >>> evidence = None
        >>> for hour in range(24):
        ...     evidence = look(evidence, 250, 250)
        >>> alarm = float(np.log(175_200))  # one false alarm in twenty years of hourly looks, at most
        >>> evidence.log_e_value < alarm
        True
        >>> for hour in range(8):
        ...     evidence = look(evidence, 300, 200)
        >>> evidence.log_e_value > alarm
        True
    """
    if not 0 <= tolerance <= 1:
        raise InvalidInputError(f"expected a number from 0 to 1, got {tolerance}.", field="tolerance")
    for bucket in buckets:
        if bucket.classes != reference.classes:
            raise InvalidInputError(
                f"expected scores of {reference.classes} classes, got {bucket.classes}.", field="buckets"
            )
    bettor = _Bettor.of(reference, tolerance)
    if evidence is None or evidence.key != key or not bettor.has_bets_of(evidence):
        evidence = ShiftEvidence.start(key, classes=reference.classes, bets=bettor.bets)
    for bucket in buckets:
        if bucket.samples:
            evidence = bettor.look(evidence, bucket)
    return evidence


def samples_to_alarm(
    evidence: ShiftEvidence,
    reference: ScoreReference,
    prevalence: Floats,
    *,
    tolerance: float,
    average_run_length: float,
) -> int | None:
    """About how many further samples raise an alarm if the population has this prevalence.

    It is the time at which the best bet, known in advance, makes up for the weight of a single bet; half of the log
    growth is lost to the square of the bet at its optimal length (Kelly 1956).

    Args:
        evidence: evidence so far.
        reference: reference of the head.
        prevalence: shape (C,), of the population.
        tolerance: as for `update_evidence`.
        average_run_length: the alarm is at its logarithm.

    Returns:
        At least 1; `MOST_MISSING` + 1: more than that; None: this prevalence lies within the zone, so no number of
        samples raises an alarm.
    """
    recent = (reference.class_means @ prevalence - reference.expectation)[np.newaxis]
    bets, tolls = learned_bets(reference, precision(reference), recent, tolerance)
    growth = float((bets * recent).sum() - tolls.sum()) / 2
    if growth <= 0:
        return None
    wanted = math.log(average_run_length * evidence.log_capitals.size) - evidence.log_e_value
    return MOST_MISSING + 1 if wanted > growth * MOST_MISSING else max(1, math.ceil(wanted / growth))


def _as_count(value: object, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidInputError("expected a whole number.", field=field)
    if value < 0:
        raise InvalidInputError("expected a number that is not negative.", field=field)
    return int(value)


def _as_number(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.float64):
        raise InvalidInputError("expected a number.", field=field)
    if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
        raise InvalidInputError(f"expected a number of at most {LARGEST_NUMBER:g} in size.", field=field)
    return float(value)


@dataclass(frozen=True)
class _Bettor:
    """Constants of all looks."""

    reference: ScoreReference
    tolerance: float
    precision: Floats
    fixed: Floats
    fixed_tolls: Floats

    @classmethod
    def of(cls, reference: ScoreReference, tolerance: float) -> Self:
        fixed = fixed_bets(reference, tolerance)
        return cls(reference, tolerance, precision(reference), fixed, reference.tolls(fixed, tolerance))

    @property
    def bets(self) -> int:
        return self.fixed.shape[0] + MEMORIES.size

    def has_bets_of(self, evidence: ShiftEvidence) -> bool:
        return evidence.log_capitals.size == self.bets and evidence.memory_sums.shape == (
            MEMORIES.size,
            self.reference.classes,
        )

    def look(self, evidence: ShiftEvidence, bucket: BucketScores) -> ShiftEvidence:
        """Choose the bets from the evidence, and update their capitals with the bucket."""
        expectation = self.reference.expectation
        samples = bucket.samples
        deviation = bucket.sums - samples * expectation
        squares = np.maximum(
            np.diag(bucket.squares_around(expectation)), 0
        )  # a difference: rounding goes below
        variance = squares / samples**2
        scatter, scatter_looks = _scatter(evidence, deviation / samples, variance)
        fading = np.exp(-samples / MEMORIES)
        return ShiftEvidence(
            key=evidence.key,
            looks=evidence.looks + 1,
            samples=evidence.samples + samples,
            log_capitals=self._capitals(evidence, bucket),
            memory_sums=evidence.memory_sums * fading[:, np.newaxis] + deviation,
            memory_samples=evidence.memory_samples * fading + samples,
            last_deviation=deviation / samples,
            last_variance=variance,
            scatter=scatter,
            scatter_looks=scatter_looks,
        )

    def _capitals(self, evidence: ShiftEvidence, bucket: BucketScores) -> Floats:
        """log(1 + M) of each bet after the bucket."""
        recent = evidence.memory_sums / np.maximum(evidence.memory_samples, 1.0)[:, np.newaxis]
        learned, learned_tolls = learned_bets(self.reference, self.precision, recent, self.tolerance)
        bets = np.vstack([self.fixed, learned])
        growth = log_growth(
            bets,
            np.concatenate([self.fixed_tolls, learned_tolls]),
            self.reference.expectation,
            bucket,
            evidence.dispersion,
        )
        # A bet of zeros gets no unit: otherwise its capital would grow by one with each look.
        before = np.expm1(evidence.log_capitals) + bets.any(axis=1)
        after = np.log(before, out=np.full(self.bets, -np.inf), where=before > 0) + growth
        return np.logaddexp(0, np.minimum(after, LARGEST_LOG_CAPITAL))


def _scatter(evidence: ShiftEvidence, deviation: Floats, variance: Floats) -> tuple[float, float]:
    """Sum and number of the looks' squared differences over their expectation, including one more look."""
    explained = float((variance + evidence.last_variance).sum())
    if evidence.looks == 0 or explained <= 0:
        return evidence.scatter, evidence.scatter_looks
    excess = float(((deviation - evidence.last_deviation) ** 2).sum()) / explained
    fading = 1 - 1 / SCATTER_LOOKS
    return (
        evidence.scatter * fading + min(excess, LARGEST_RISE * evidence.dispersion),
        evidence.scatter_looks * fading + 1,
    )
