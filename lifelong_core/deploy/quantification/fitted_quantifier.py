"""Base class of all quantifiers: fitted once on a calibration set, then applied to windows."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.calibration.affine import AffineCalibration, fit_weighted
from lifelong_core.deploy.checks import as_level
from lifelong_core.deploy.documents import canonical
from lifelong_core.deploy.label_shift.assumption_test import AssumptionReference
from lifelong_core.deploy.labeled import LabeledLogits, check_every_class
from lifelong_core.deploy.numerics.newton import member_sums
from lifelong_core.deploy.numerics.simplex import smooth
from lifelong_core.deploy.quantification.cautions import MINIMUM_SEPARATION, Separation, find_cautions
from lifelong_core.deploy.quantification.codebook import Codebook, LogitScale
from lifelong_core.deploy.quantification.group_sketch import GroupSketch
from lifelong_core.deploy.quantification.prevalence_estimate import Analysis, PrevalenceEstimate, t_interval
from lifelong_core.deploy.quantification.uncertainty import (
    Clusters,
    Influence,
    combine,
)
from lifelong_core.deploy.quantification.window_summary import WindowSummary
from lifelong_core.values.arrays import Floats, Logits, as_groups, as_logits, centre_rows
from lifelong_core.values.errors import InvalidInputError, UnidentifiableError

Result = TypeVar("Result")

REVISION = 3
"""Revision of the methods and of the summaries' codebook. Raise it when their results change, so that old summaries and
evidence are not mixed with new ones."""

_BATCH = 1 << 16
"""Rows whose features are in memory at once while a summary is made."""


class FittedQuantifier(ABC):
    """Estimator of the prevalence of a window of unlabelled logits, fitted on a calibration set of the same model.

    Attributes:
        calibration: the calibration set.
        settings: the method's settings, all of them.
    """

    method: ClassVar[str]
    decisions_only: ClassVar[bool] = False
    """Whether the method uses only the most probable class; another method may then separate more classes."""
    defaults: ClassVar[Mapping[str, float]] = MappingProxyType({})

    def __init__(
        self, calibration: LabeledLogits, settings: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        """Fit on a calibration set.

        Raises:
            UnidentifiableError: a class has no calibration sample, or the method cannot tell the classes
                apart.
        """
        check_every_class(calibration)
        self.calibration = calibration
        self.settings: Mapping[str, float] = MappingProxyType({**self.defaults, **settings})
        self._separation: Separation | None = None
        self._once: dict[Callable[[Any], object], object] = {}
        self._fit()

    def once(self, compute: Callable[["FittedQuantifier"], Result]) -> Result:
        """Value of a pure function of this quantifier; the first call computes it, later calls return the same object.

        Packages above this one keep with the quantifier what they compute from it.
        """
        if compute not in self._once:
            self._once[compute] = compute(self)
        return cast("Result", self._once[compute])

    @cached_property
    def cautions(self) -> tuple[str, ...]:
        """Limits of every estimate from this calibration set, as sentences; empty for a sound set."""
        return find_cautions(self.calibration, None if self._separation is None else self._separation.blurred)

    @cached_property
    def assumption_reference(self) -> AssumptionReference:
        """Reference of the calibration set for the test "only the prevalence has changed"."""
        return AssumptionReference.of(self.calibration)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over method, settings, calibration set and REVISION."""
        parts = {
            "method": self.method,
            "settings": dict(self.settings),
            "calibration": self.calibration.digest,
            "revision": REVISION,
        }
        return hashlib.sha256(canonical(parts).encode()).hexdigest()

    def prevalence(self, logits: ArrayLike | WindowSummary) -> Floats:
        """Point estimate alone, shape (C,), from logits of shape (N, C), N >= 1, or from a summary of them.

        Raises:
            InvalidInputError: no sample, logits that are not finite, another number of classes, or a summary that
                another quantifier made or that is damaged.
        """
        return self._solve(*self._rows(logits))

    def summarize(self, logits: ArrayLike, groups: ArrayLike | None = None) -> WindowSummary:
        """Summarise a batch in bounded memory; the sum of summaries is the summary of the window.

        Args:
            logits: shape (N, C), N >= 0.
            groups: shape (N,); samples of one group may depend on each other, also across batches.

        Raises:
            InvalidInputError: a shape or a value does not fit.
        """
        rows = as_logits(logits, classes=self.calibration.classes)
        keys = as_groups(groups, samples=rows.shape[0])
        cells, member = np.unique(self._codebook.cells(rows), return_inverse=True)
        features = np.zeros((cells.size, self._width))
        logit_sums = np.zeros((cells.size, rows.shape[1]))
        for begin in range(0, rows.shape[0], _BATCH):
            batch = slice(begin, begin + _BATCH)
            present, local = np.unique(member[batch], return_inverse=True)
            features[present] += member_sums(self._features(rows[batch]), local)
            logit_sums[present] += member_sums(centre_rows(rows[batch]), local)
        return WindowSummary(
            self.digest,
            cells,
            np.bincount(member, minlength=cells.size).astype(np.int64),
            features,
            logit_sums,
            self.assumption_reference.feature_sums(rows),
            self.logit_scale.sums(rows),
            None if keys is None else GroupSketch.of(keys, cells[member]),
        )

    def rescale(self, window: ArrayLike | WindowSummary, factor: float) -> Logits | WindowSummary:
        """The window with all logits times a positive factor; a summary's samples count as at their cell's mean.

        Raises:
            InvalidInputError: a shape or a value does not fit, or another quantifier made the summary.
        """
        if not isinstance(window, WindowSummary):
            return (as_logits(window, classes=self.calibration.classes) * factor).astype(np.float32)
        self._check_maker(window)
        points, counts = window.points()
        features = self._features((points * factor).astype(np.float32)) * counts[:, np.newaxis]
        return replace(window, feature_sums=features, logit_sums=window.logit_sums * factor)

    @cached_property
    def logit_scale(self) -> LogitScale:
        """Log norms of the calibration set's logits."""
        return LogitScale.of(self.calibration)

    @cached_property
    def _codebook(self) -> Codebook:
        return Codebook.of(self.calibration)

    def estimate(
        self,
        logits: ArrayLike | WindowSummary,
        *,
        groups: ArrayLike | None = None,
        confidence: float = 0.95,
        rng: int | np.random.Generator = 0,  # noqa: ARG002 - methods that draw samples will need it
    ) -> PrevalenceEstimate:
        """Estimate the prevalence of the window's population, with an interval for each class.

        The intervals include two sources of uncertainty: the sampling of the window (of its groups, where given), and
        the sampling of each class of the calibration set (of its groups, where it has them). Both enter by first-order
        influence functions (the sandwich variance of an M-estimator); see `uncertainty.combine`.

        Args:
            logits: shape (N, C), N >= 1, or a summary of them.
            groups: shape (N,); samples of one group may depend on each other. A summary contains its groups.
            confidence: nominal coverage of each class's interval.
            rng: seed or generator; the present methods draw no random numbers, so equal inputs give equal results.

        Raises:
            InvalidInputError: no sample, a shape or a value does not fit.
        """
        return self.analyse(logits, groups=groups, confidence=confidence).estimate

    def analyse(
        self,
        logits: ArrayLike | WindowSummary,
        *,
        groups: ArrayLike | None = None,
        confidence: float = 0.95,
    ) -> Analysis:
        """Estimate with the parts of its covariance, for statistics that depend on the estimated prevalence.

        Raises:
            InvalidInputError: no sample, a shape or a value does not fit.
        """
        level = as_level(confidence, "confidence")
        features, counts = self._rows(logits)
        samples = round(float(counts.sum()))
        clusters = self.clusters(logits, groups, samples)
        prevalence = self._solve(features, counts)
        influence = self._influence(features, counts, smooth(prevalence, samples))
        spread = combine(influence, self.calibration, counts, clusters)
        deviation = self._second_solution(features, counts, prevalence) - prevalence
        doubt = np.outer(deviation, deviation)
        if self._separation is not None:
            doubt += self._separation.ambiguity(prevalence)
        covariance = spread.covariance + doubt
        low, high = t_interval(prevalence, covariance, spread.degrees_of_freedom, level)
        estimate = PrevalenceEstimate(
            prevalence=prevalence,
            low=low,
            high=high,
            confidence=level,
            n=samples,
            effective_n=spread.effective_n,
            method=self.method,
            covariance=covariance,
            degrees_of_freedom=spread.degrees_of_freedom,
            cautions=self.cautions,
        )
        return Analysis(estimate, influence, doubt, self.calibration, counts, clusters, np.zeros_like(doubt))

    def densities(self, window: ArrayLike | WindowSummary) -> Floats:
        """Densities of the classes at the window's distinct points, shape (U, C), up to a factor per point.

        Where the method has no densities, they are posteriors of an affine calibration over the calibration set's
        prevalence.

        Raises:
            InvalidInputError: a shape or a value does not fit, or another quantifier made the summary.
        """
        self._check_maker(window)
        classes = self.calibration.classes
        logits = (
            window.points()[0] if isinstance(window, WindowSummary) else as_logits(window, classes=classes)
        )
        return self._affine.probabilities(logits) / self.calibration.prevalence

    def density_effects(
        self,
        window: ArrayLike | WindowSummary,  # noqa: ARG002
        slopes: Iterable[Floats],
    ) -> Floats:
        """Effects of each calibration sample, through the densities' parameters, on K statistics of a window, (M, K).

        Args:
            window: logits, (N, C), or a summary by this quantifier.
            slopes: of each statistic, shape (U, C): its change per change of the log densities at each distinct row.

        Returns:
            Effects in the scale of `Influence.calibration`; 0 where the method does not know the uncertainty of its
            densities.
        """
        return np.zeros((self.calibration.samples, len(list(slopes))))

    @cached_property
    def _affine(self) -> AffineCalibration:
        data = self.calibration
        return fit_weighted(data.logits, data.labels, np.ones(data.samples))

    @abstractmethod
    def _fit(self) -> None:
        """Compute all that depends on the calibration set only."""

    @abstractmethod
    def _features(self, rows: Logits) -> Floats:
        """Features of the method, one row per sample, shape (N, F)."""

    @abstractmethod
    def _solve(self, features: Floats, counts: Floats) -> Floats:
        """Point estimate, shape (C,), given the features of U distinct rows and their counts, (U,)."""

    @abstractmethod
    def _influence(self, features: Floats, counts: Floats, prevalence: Floats) -> Influence:
        """Influence of each sample on the estimate, linearised at a (smoothed) prevalence."""

    def _second_solution(self, features: Floats, counts: Floats, prevalence: Floats) -> Floats:  # noqa: ARG002
        """Second estimate, (C,), with weaker assumptions; its difference from the first adds variance."""
        return prevalence

    def _rows(self, window: ArrayLike | WindowSummary) -> tuple[Floats, Floats]:
        """Features of the window's distinct rows, shape (U, F), and their counts, shape (U,)."""
        if not isinstance(window, WindowSummary):
            rows = as_logits(window, classes=self.calibration.classes)
            if rows.shape[0] == 0:
                raise InvalidInputError("expected at least one sample.", field="logits")
            counts: Floats = np.ones(len(rows))
            return self._features(rows), counts
        self._check_maker(window)
        if window.samples == 0:
            raise InvalidInputError("expected at least one sample.", field="logits")
        return window.mean_features(), window.counts.astype(np.float64)

    def _check_maker(self, summary: ArrayLike | WindowSummary) -> None:
        """Check that this quantifier made the summary, and that the summary is whole."""
        if not isinstance(summary, WindowSummary):
            return
        if summary.quantifier_digest != self.digest:
            raise InvalidInputError(
                "another quantifier made this summary.",
                field="summary",
                hint="Summarize the logits again with this one.",
            )
        expected = (self._width, self.calibration.classes, self.assumption_reference.size)
        if summary.widths != expected:
            raise InvalidInputError(
                f"expected sums of {expected} features, logits and moments, got {summary.widths}.",
                field="summary",
                hint="Summarize the logits again.",
            )

    @cached_property
    def _width(self) -> int:
        """Number of the method's features F."""
        return self._features(self.calibration.logits[:1]).shape[1]

    def clusters(
        self, window: ArrayLike | WindowSummary, groups: ArrayLike | None, samples: int
    ) -> Clusters | None:
        """Groups of a window's samples; None: all are independent.

        Raises:
            InvalidInputError: groups beside a summary, one of another quantifier, or another number of groups.
        """
        self._check_maker(window)
        if isinstance(window, WindowSummary):
            if groups is not None:
                raise InvalidInputError(
                    "expected no groups: a summary contains the groups of its samples.", field="groups"
                )
            return window.clusters()
        keys = as_groups(groups, samples=samples)
        return None if keys is None else Clusters.of(keys)

    def _check_separated(self, features: Floats) -> None:
        """Reject features whose class means are linearly dependent (thesis section 6.1.3, assumption ii, Ex. 6.5).

        Where they may be dependent, given so few samples, every later interval includes the uncertainty.

        Raises:
            UnidentifiableError: the simplex of the class means is thinner than MINIMUM_SEPARATION.
        """
        self._separation = Separation.of(features, self.calibration)
        if self._separation.thinnest < MINIMUM_SEPARATION:
            first, second = sorted(self._separation.pair)
            advice = "Use a method that looks at probabilities, m" if self.decisions_only else "M"
            raise UnidentifiableError(
                f"{self.method} cannot tell how prevalent classes {first} and {second} are: mixes that differ in "
                f"them give the same outputs (separation {self._separation.thinnest:.1e}, "
                f"needed {MINIMUM_SEPARATION:.0e}).",
                field="calibration",
                hint=f"{advice}erge the classes, or improve the model.",
            )


def mean_feature(features: Floats, counts: Floats) -> Floats:
    """Mean feature over the samples, shape (F,), from the features of distinct rows, (U, F), with their counts,
    (U,).
    """
    return counts @ features / counts.sum()
