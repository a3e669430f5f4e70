"""Test of "only the prevalence changed": whether a mix of the calibration classes explains a window.

A prevalence shift leaves p(logits | class) unchanged (thesis Def. 6.4), so the mean of any feature over the window is,
up to random error, the mean of its class means under some prevalence. Three tests look for a feature with a mean that
no prevalence explains; the p-value is three times the smallest one (Bonferroni):

- steps: all classes' scores cut into cells, as one over-identified system of moments (Hansen 1982), with an F
  distribution because the covariance is estimated from a limited number of samples (Hotelling 1931);
- waves: the maximum mean discrepancy of the logits themselves by random Fourier features (Gretton et al. 2012),
  beyond what any prevalence explains; a sum of weighted chi squares, approximated by three moments;
- drifts: detectors of drifts that occur in practice (a moved logit, scaled logits, noise, samples between the classes),
  each a t test.

All three need only the mean of bounded features over the window, so that summaries of its parts merge exactly. The
test includes the sampling error of the calibration set, class by class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.checks import as_class_names, as_level
from lifelong_core.deploy.label_shift.drift import ClassSpread, DriftDetectors, remove_directions, tangents
from lifelong_core.deploy.label_shift.features import FeatureMap
from lifelong_core.deploy.label_shift.result import (
    AssumptionTest,
    ComponentTest,
    drift_disagreements,
    step_disagreements,
    worst_first,
)
from lifelong_core.deploy.labeled import LabeledLogits, check_every_class
from lifelong_core.deploy.numerics.simplex import simplex_least_squares, smooth, tangent_basis
from lifelong_core.values.arrays import Floats, as_logits, as_parameter
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import f_tail, normal_quantile, t_probability

RELIABLE_FROM = 500
"""Least number of calibration samples with which the test keeps its level."""

RELIABLE_WINDOW = 100
"""Least number of independent samples in the window with which the test keeps its level."""

_BLOCK = 8192
_SMALLEST_AXIS = 1e-3
"""Principal axes of the steps with a smaller share of the largest axis's variance are left out."""
_FREEDOM_PER_AXIS = 4.0
"""Degrees of freedom of the covariance that each axis needs."""
_FREE = 1e-9
_NO_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class AssumptionReference:
    """Statistics of a calibration set for the test; a deterministic function of the set."""

    samples: int
    feature_map: FeatureMap
    steps: ClassSpread
    """spread of the step features"""
    waves: ClassSpread
    """spread of the cosine and sine features"""
    drifts: ClassSpread
    """drift detectors, cross-fitted"""
    detectors: DriftDetectors

    @classmethod
    def of(cls, calibration: LabeledLogits) -> Self:
        """Compute the reference of a calibration set.

        Raises:
            UnidentifiableError: a class has no calibration sample.
        """
        check_every_class(calibration)
        feature_map = FeatureMap.of(calibration)
        own = feature_map.of_calibration(calibration)
        detectors = DriftDetectors.of(calibration, feature_map, own)
        return cls(
            samples=calibration.samples,
            feature_map=feature_map,
            steps=ClassSpread.of(own[:, : feature_map.steps], calibration),
            waves=ClassSpread.of(own[:, feature_map.steps :], calibration),
            drifts=ClassSpread.of(detectors.values, calibration),
            detectors=detectors,
        )

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.feature_map.middle.size

    @cached_property
    def size(self) -> int:
        """Number of features M."""
        return self.steps.means.shape[1] + self.waves.means.shape[1]

    def features(self, logits: ArrayLike) -> Floats:
        """Features of samples, shape (N, M), in -1..1; the test needs only their mean over a window.

        Raises:
            InvalidInputError: logits are not finite or have another number of classes.
        """
        return self.feature_map(as_logits(logits, classes=self.classes))

    def feature_sums(self, logits: ArrayLike) -> Floats:
        """Sums of the features over all rows, shape (M,), in little memory; sums of buckets add up.

        Raises:
            InvalidInputError: logits are not finite or have another number of classes.
        """
        rows = as_logits(logits, classes=self.classes)
        sums = np.zeros(self.size)
        for start in range(0, rows.shape[0], _BLOCK):
            sums += self.feature_map(rows[start : start + _BLOCK]).sum(axis=0)
        return sums


def assumption_test(
    reference: AssumptionReference,
    mean_features: ArrayLike,
    *,
    n: int,
    effective_n: float | None = None,
    level: float = 0.01,
    class_names: Sequence[str] | None = None,
) -> AssumptionTest:
    """Test "only the prevalence changed" on one window.

    Args:
        reference: reference of the calibration set.
        mean_features: shape (M,), mean of `reference.features` over the window.
        n: samples in the window.
        effective_n: equivalent number of independent samples, if smaller.
        level: largest probability of a rejection when the hypothesis is true.
        class_names: names for the texts; by default the classes are numbered.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> labels = rng.permutation(np.repeat([0, 1, 2], 400))
        >>> calibration = LabeledLogits(3 * np.eye(3)[labels] + rng.normal(size=(1200, 3)), labels)
        >>> reference = AssumptionReference.of(calibration)
        >>> rare = rng.permutation(np.repeat([0, 1, 2], [850, 100, 50]))
        >>> window = 3 * np.eye(3)[rare] + rng.normal(size=(1000, 3))
        >>> assumption_test(reference, reference.features(window).mean(axis=0), n=1000).rejected
        False
        >>> test = assumption_test(reference, reference.features(0.7 * window).mean(axis=0), n=1000)
        >>> test.rejected, test.disagreements[0].kind
        (True, 'scaled_logits')
    """
    means = as_parameter(mean_features, field="mean_features")
    if means.shape != (reference.size,):
        raise InvalidInputError(
            f"expected shape ({reference.size},), got {means.shape}.", field="mean_features"
        )
    samples = _checked_samples(n, effective_n)
    names = None if class_names is None else as_class_names(class_names)
    if names is not None and len(names) != reference.classes:
        raise InvalidInputError(f"expected {reference.classes} names.", field="class_names")
    steps, waves = np.split(means, [reference.feature_map.steps])
    prevalence, uncertainty = _mix(reference.steps, steps, samples)
    weights = smooth(prevalence, samples)
    step_test = _step_test(reference.steps, steps, weights, samples)
    wave_test = _wave_test(reference.waves, waves, weights, samples)
    # No detector has exactly equal means in all classes: the error of the mix moves it slightly.
    by_class = reference.drifts.means
    moved = by_class.T @ uncertainty @ by_class
    errors = np.sqrt(np.diag(reference.drifts.covariance(weights, samples) + moved))
    drifts, drift_test = _drift_test(reference, means, prevalence, errors, samples)
    tests = (step_test, wave_test, drift_test)
    p_value = min(1.0, len(tests) * min(test.p_value for test in tests))
    checked_level = as_level(level, "level")
    covariance = reference.steps.covariance(weights, samples)
    found = [
        *drift_disagreements(reference.detectors, drifts, errors, names),
        *step_disagreements(reference.feature_map, reference.steps, steps, prevalence, covariance, names),
    ]
    return AssumptionTest(
        statistic=max(0.0, -float(normal_quantile(max(p_value, np.finfo(np.float64).tiny)))),
        p_value=p_value,
        level=checked_level,
        rejected=p_value < checked_level,
        reliable=reference.samples >= RELIABLE_FROM and samples >= RELIABLE_WINDOW,
        tests=tests,
        disagreements=worst_first(found),
    )


def _mix(spread: ClassSpread, means: Floats, samples: float) -> tuple[Floats, Floats]:
    """Prevalence (C,) that explains the steps by least squares, and its covariance (C, C).

    The squares have no covariance weights, because these depend on the prevalence. With weights, the noisy mean of a
    class with few calibration samples would reduce its share, and so its noise in the covariance.
    """
    classes = spread.counts.size
    if means.size == 0:
        return spread.counts / spread.counts.sum(), np.zeros((classes, classes))
    prevalence = simplex_least_squares(spread.means.T, means)
    basis = tangent_basis(classes)
    sensitivity = basis @ np.linalg.pinv(spread.means.T @ basis)
    covariance = spread.covariance(smooth(prevalence, samples), samples)
    return prevalence, sensitivity @ covariance @ sensitivity.T


def _step_test(spread: ClassSpread, means: Floats, weights: Floats, samples: float) -> ComponentTest:
    """Test of over-identification by the generalised method of moments, with the covariance at these class weights.

    If the best prevalence is on the border of the simplex, each class at 0 adds a degree of freedom: given its face,
    the distance to the simplex has as many degrees of freedom as there are directions off that face.
    """
    if means.size == 0:
        return ComponentTest("steps", 0.0, 1.0)
    whiten, freedom = _whitening(spread, weights, samples)
    target, classes = whiten @ means, whiten @ spread.means.T
    if target.size == 0:
        return ComponentTest("steps", 0.0, 1.0)
    prevalence = simplex_least_squares(classes, target)
    statistic = float(((target - classes @ prevalence) ** 2).sum())
    surplus = target.size - (int((prevalence > _FREE).sum()) - 1)
    denominator = freedom - surplus + 1
    if surplus < 1 or denominator < 1:
        return ComponentTest("steps", statistic, 1.0)
    ratio = statistic * denominator / (freedom * surplus)
    return ComponentTest("steps", statistic, f_tail(surplus, denominator, ratio))


def _whitening(spread: ClassSpread, prevalence: Floats, samples: float) -> tuple[Floats, float]:
    """Principal axes of the features, scaled to unit variance (K', K), and the covariance's degrees of freedom.

    The axes are those with the largest variances, as many as the covariance's degrees of freedom allow.
    """
    covariance = spread.covariance(prevalence, samples)
    deviations = np.sqrt(np.diag(covariance))
    scale = np.where(deviations > 0, deviations, 1.0)
    freedom = spread.degrees_of_freedom(prevalence, samples, scale)
    sizes, axes = np.linalg.eigh(covariance / scale / scale[:, np.newaxis])
    sizes, axes = sizes[::-1], axes[:, ::-1]
    most = int(max(2.0, freedom / _FREEDOM_PER_AXIS))
    kept = (sizes > _SMALLEST_AXIS * max(float(sizes.max(initial=0)), np.finfo(np.float64).tiny))[:most]
    used = np.flatnonzero(kept)
    return (axes[:, used] / np.sqrt(sizes[used])).T / scale, freedom


def _wave_test(spread: ClassSpread, means: Floats, prevalence: Floats, samples: float) -> ComponentTest:
    """Maximum mean discrepancy between the window and the best mix of the classes."""
    mix = simplex_least_squares(spread.means.T, means)
    identity = np.eye(means.size)
    directions = tangents(spread.means[mix > _FREE])
    unexplained = remove_directions(directions, identity, identity)
    residual = unexplained @ (means - spread.means.T @ mix)
    statistic = float(residual @ residual)
    covariance = spread.covariance(prevalence, samples)
    sizes = np.maximum(np.linalg.eigvalsh(unexplained @ covariance @ unexplained), 0.0)
    first, second, third = (float((sizes**power).sum()) for power in (1, 2, 3))
    if first < _NO_VARIANCE:
        return ComponentTest("waves", statistic, 1.0)
    # Hall (1983), Buckley and Eagleson (1988): a shifted and scaled chi square with the same three moments.
    degrees = second**3 / third**2
    value = degrees + (statistic - first) * np.sqrt(degrees / second)
    freedom = spread.degrees_of_freedom(prevalence, samples, np.ones(means.size))
    return ComponentTest("waves", statistic, f_tail(degrees, freedom, value / degrees))


def _drift_test(
    reference: AssumptionReference, means: Floats, prevalence: Floats, errors: Floats, samples: float
) -> tuple[Floats, ComponentTest]:
    """Distance of each detector from its mean under this prevalence, in standard errors (J,), and their test."""
    detectors, spread = reference.detectors, reference.drifts
    count = len(detectors.drifts)
    if count == 0:
        return np.zeros(0), ComponentTest("drifts", 0.0, 1.0)
    distance = detectors.weights @ (means - detectors.middle) - prevalence @ spread.means
    sizes = np.divide(distance, errors, out=np.zeros(count), where=errors > 0)
    statistic = float(np.abs(sizes).max())
    scale = np.where(errors > 0, errors, 1.0)
    freedom = spread.degrees_of_freedom(smooth(prevalence, samples), samples, scale)
    tail = float(t_probability(freedom, -statistic))
    return sizes, ComponentTest("drifts", statistic, min(1.0, 2 * count * tail))


def _checked_samples(n: int, effective_n: float | None) -> float:
    if int(n) != n or n < 1:
        raise InvalidInputError("expected a positive whole number.", field="n")
    effective = float(as_parameter(n if effective_n is None else effective_n, field="effective_n"))
    if not 0 < effective <= n * (1 + 1e-9):
        raise InvalidInputError(f"expected a number above 0 and at most n, {n}.", field="effective_n")
    return effective
