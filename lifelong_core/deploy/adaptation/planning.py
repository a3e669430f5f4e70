"""Sample size planning: the width of intervals before a window exists."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.deploy.checks import as_level
from lifelong_core.deploy.labeled import LabeledLogits, independent_cases
from lifelong_core.deploy.numerics.newton import member_sums
from lifelong_core.deploy.quantification.fitted_quantifier import FittedQuantifier
from lifelong_core.deploy.quantification.prevalence_estimate import Analysis
from lifelong_core.values.array_value import ArrayValue
from lifelong_core.values.arrays import Floats, Integers, as_parameter, as_prevalence, read_only
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.scientific import t_quantile

LARGEST_WINDOW = 10**9
"""Largest window that a plan considers."""

MOST_CASES = 10**6
"""Largest number of further calibration cases of a class that a plan asks for."""

_SMALLEST_COMPOSED, _LARGEST_COMPOSED = 4_000, 20_000


@dataclass(frozen=True, eq=False)
class SamplePlan(ArrayValue):
    """Components of the interval width for a prevalence, before there is a window.

    The variance of the estimate for class k is `window_variance[k] / n`, which shrinks with the window's size n, and
    two parts that the calibration set fixes however large the window is: `sum_j calibration_variance[k, j]` and
    `disagreement[k]`.

    Examples:
        >>> plan = SamplePlan.assumed(classes=2, accuracy=0.9, cases_per_class=500)
        >>> plan.half_widths(1000).round(3).tolist(), plan.floor().round(3).tolist()
        ([0.045, 0.045], [0.023, 0.023])
        >>> plan.size_needed(0.03)
        4181
        >>> plan.size_needed(0.02) is None  # not with this calibration set
        True
        >>> plan.cases_needed(0.02).tolist()
        [851, 851]
        >>> plan.extend([851, 851]).size_needed(0.02)
        7505
    """

    method: str
    """name of the quantifier; "assumed" without a calibration set"""
    confidence: float
    """of each class's interval"""
    prevalence: Floats
    """shape (C,), expected prevalence"""
    cases: Floats
    """shape (C,), calibration cases of each class; cases of one group count once"""
    window_variance: Floats
    """shape (C,), variance that one sample of the window contributes"""
    calibration_variance: Floats
    """shape (C, C): [k, j] is the variance of class k's estimate due to the calibration cases of class j"""
    calibration_degrees: Floats
    """shape (C,), degrees of freedom of the columns of `calibration_variance`; 0: unknown"""
    disagreement: Floats
    """shape (C,), variance that more samples do not reduce: the squared difference of the method's two solutions, and
    mixes that look alike; computed for a window without sampling noise, which adds next to nothing to it"""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in (
            "prevalence",
            "cases",
            "window_variance",
            "calibration_variance",
            "calibration_degrees",
            "disagreement",
        ):
            object.__setattr__(self, name, read_only(as_parameter(getattr(self, name), field=name)))

    @classmethod
    def assumed(
        cls,
        classes: int,
        accuracy: float,
        cases_per_class: float,
        *,
        prevalence: ArrayLike | None = None,
        confidence: float = 0.95,
    ) -> Self:
        """Plan by a rule of thumb, before there is a calibration set.

        Every class is recognised with probability `accuracy` and confused with every other class equally often. The
        variance is that of adjusted classify and count (Forman 2008), in closed form. Methods that use probabilities
        need fewer samples; classes that are confused more often need more.

        Args:
            classes: number C of classes, at least 2.
            accuracy: balanced accuracy, above 1 / C.
            cases_per_class: calibration cases of each class.
            prevalence: shape (C,), expected prevalence; None: equal classes.
            confidence: nominal coverage of each class's interval.

        Raises:
            InvalidInputError: a value is out of range.
        """
        if classes < 2:
            raise InvalidInputError("expected at least two classes.", field="classes")
        if not 1 / classes < accuracy < 1:
            raise InvalidInputError(
                f"expected a number above 1/{classes} (guessing) and below 1, got {accuracy:g}.",
                field="accuracy",
                hint="For a very good model, give for example 0.99.",
            )
        if not 2 <= cases_per_class < np.inf:
            raise InvalidInputError("expected at least two cases.", field="cases_per_class")
        shares = np.full(classes, 1 / classes) if prevalence is None else _expected(prevalence, classes)
        error = (1 - accuracy) / (classes - 1)
        separation = accuracy - error
        rates = np.where(np.eye(classes, dtype=bool), accuracy, error)
        decided = rates @ shares
        return cls(
            method="assumed",
            confidence=as_level(confidence, "confidence"),
            prevalence=shares,
            cases=np.full(classes, float(cases_per_class)),
            window_variance=decided * (1 - decided) / separation**2,
            calibration_variance=rates * (1 - rates) * shares**2 / cases_per_class / separation**2,
            calibration_degrees=np.full(classes, cases_per_class - 1.0),
            disagreement=np.zeros(classes),
        )

    def half_widths(self, size: float) -> Floats:
        """Half the width of each class's interval for a window of `size` independent samples, shape (C,).

        The values are typical ones before the interval is cut off at 0 and 1: at 1 or more the prevalence is unknown.
        They are infinite where the calibration set does not show its own spread. For samples in groups (patients),
        `size` is the effective size.

        The values are never below the `floor`. With a handful of calibration cases Welch's approximation would give
        windows of medium size shorter intervals than endless ones: their variance adds degrees of freedom, and the
        quantile falls faster than the variance rises. A larger window never has less information, so the plan ignores
        this effect.

        Raises:
            InvalidInputError: fewer than two samples.
        """
        if not size >= 2:
            raise InvalidInputError("expected at least two samples.", field="size")
        return np.maximum(self._reach(self.window_variance / size, size - 1), self.floor())

    def floor(self) -> Floats:
        """Half the width of each class's interval for an endless window, shape (C,)."""
        return self._reach(np.zeros_like(self.window_variance), np.inf)

    def size_needed(self, half_width: float) -> int | None:
        """Size of the smallest window that gives every class at most this half-width.

        None: no window suffices, because the calibration set is too small; see `cases_needed`.

        Raises:
            InvalidInputError: the half-width is not between 0 and 1.
        """
        wanted = _half_width(half_width)
        if self.half_widths(LARGEST_WINDOW).max() > wanted:
            return None
        low, high = 1, LARGEST_WINDOW
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.half_widths(middle).max() <= wanted else (middle, high)
        return high

    def cases_needed(self, half_width: float) -> Integers | None:
        """Further calibration cases of each class, shape (C,), that let a window reach this half-width.

        With them the calibration set causes at most half of the variance: the window then needs at most twice the
        samples that it would need with an endless calibration set. Most cases go to the classes where they help most
        (Neyman 1934).

        None: more than MOST_CASES of a class, or the calibration set does not show its own spread.

        Raises:
            InvalidInputError: the half-width is not between 0 and 1.
        """
        wanted = _half_width(half_width)
        allowed = (wanted / self._normal_quantile) ** 2 / 2
        total = self.calibration_variance.sum(axis=1)
        # The two solutions lie apart because the calibration set is small: more cases fix that too.
        raised = np.divide(total + self.disagreement, total, out=np.ones_like(total), where=total > 0)
        needed = np.zeros_like(self.cases)
        for parts in self.calibration_variance * raised[:, np.newaxis]:
            needed = np.maximum(needed, _allocation(parts * self.cases, self.cases, allowed))
        if self.calibration_degrees.min() == 0:
            return None
        while needed.max() <= MOST_CASES and self.extend(needed).floor().max() > 0.75 * wanted:
            # So few cases that quantiles of the t distribution exceed the normal one, which was reckoned with.
            needed += np.maximum((self.cases + needed) / 4, 1.0)
        return None if needed.max() > MOST_CASES else np.ceil(needed - 1e-9).astype(np.int64)

    def extend(self, further: ArrayLike) -> Self:
        """Plan after adding calibration cases like the present ones, shape (C,) of each class.

        Raises:
            InvalidInputError: another shape, or a negative number.
        """
        added = as_parameter(further, field="further")
        if added.shape != self.cases.shape or added.min() < 0:
            raise InvalidInputError("expected one number of cases per class, none negative.", field="further")
        cases = self.cases + added
        before, variance = self.calibration_variance, self.calibration_variance * (self.cases / cases)
        shrunk = np.ones_like(self.disagreement)
        np.divide(variance.sum(axis=1), before.sum(axis=1), out=shrunk, where=before.sum(axis=1) > 0)
        return replace(
            self,
            cases=cases,
            calibration_variance=variance,
            calibration_degrees=self.calibration_degrees + added,
            disagreement=self.disagreement * shrunk,
        )

    def to_document(self) -> dict[str, Any]:
        """The plan as JSON values."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {
            "schema_version": 1,
            **{
                key: value.tolist() if isinstance(value, np.ndarray) else value
                for key, value in fields.items()
            },
        }

    @property
    def _normal_quantile(self) -> float:
        return float(t_quantile(np.inf, (1 + self.confidence) / 2))

    def _reach(self, window: Floats, window_degrees: float) -> Floats:
        """t quantile times standard error; degrees of freedom by Welch and Satterthwaite as in `combine`."""
        fixed = self.calibration_variance.sum(axis=1)
        if self.calibration_degrees.min() == 0:
            return np.full_like(fixed, np.inf)
        squares = window**2 / window_degrees
        squares = squares + (self.calibration_variance**2 / self.calibration_degrees).sum(axis=1)
        freedom = np.full_like(fixed, 1e9)
        np.divide((window + fixed) ** 2, squares, out=freedom, where=squares > 0)
        quantile = t_quantile(np.maximum(freedom, 1.0), (1 + self.confidence) / 2)
        return quantile * np.sqrt(window + fixed + self.disagreement)


def plan_samples(
    fitted: FittedQuantifier, *, prevalence: ArrayLike | None = None, confidence: float = 0.95
) -> SamplePlan:
    """Plan the width of the intervals of a fitted quantifier in a population with this prevalence.

    The quantifier analyses a window composed of its own calibration cases in the expected mix. The influences of single
    samples (see `quantification.uncertainty`) give the variance that each sample of the window and each calibration
    case of each class adds.

    Args:
        fitted: the quantifier with its calibration set.
        prevalence: shape (C,), expected prevalence; None: that of the calibration set.
        confidence: nominal coverage of each class's interval.

    Raises:
        InvalidInputError: a shape or a value does not fit.

    Examples:
        >>> from lifelong_core.deploy import quantifier
        >>> rng = np.random.default_rng(0)
        >>> labels = rng.permutation(np.repeat([0, 1], 300))
        >>> calibration = LabeledLogits(3 * np.eye(2)[labels] + rng.normal(size=(600, 2)), labels)
        >>> plan = plan_samples(quantifier("PACC").fit(calibration), prevalence=[0.9, 0.1])
        >>> plan.half_widths(1000).round(3).tolist()
        [0.025, 0.025]
    """
    data = fitted.calibration
    shares = data.prevalence if prevalence is None else _expected(prevalence, data.classes)
    size = int(np.clip(2 * data.samples, _SMALLEST_COMPOSED, _LARGEST_COMPOSED))
    analysis = fitted.analyse(data.logits[_composed(data, shares, size)], confidence=confidence)
    scores = analysis.influence.window - np.average(
        analysis.influence.window, axis=0, weights=analysis.counts
    )
    cases = independent_cases(data).astype(np.float64)
    return SamplePlan(
        method=fitted.method,
        confidence=analysis.estimate.confidence,
        prevalence=shares,
        cases=cases,
        window_variance=np.average(scores**2, axis=0, weights=analysis.counts),
        calibration_variance=_calibration_parts(analysis),
        calibration_degrees=_calibration_degrees(data, cases),
        disagreement=np.diag(analysis.doubt),
    )


def _composed(data: LabeledLogits, shares: Floats, size: int) -> Integers:
    """Rows of the calibration set in this mix; the rows of one class occur equally often."""
    wanted = np.rint(shares * size).astype(np.int64)
    rows = [
        members[np.arange(count) * members.size // max(count, 1)]
        for members, count in (
            (np.flatnonzero(data.labels == k), count) for k, count in enumerate(wanted.tolist())
        )
    ]
    return np.concatenate(rows).astype(np.int64)


def _calibration_parts(analysis: Analysis) -> Floats:
    """Variance of each class's estimate (rows) due to the calibration cases of each class (columns), shape (C, C).

    With groups in the calibration set, the parts of single cases are raised to the variance that the groups cause. A
    single case has the spread of the other classes, as in `combine`.
    """
    data, scores = analysis.calibration, analysis.influence.calibration
    counts = data.counts
    residuals = scores - (member_sums(scores, data.labels) / counts[:, np.newaxis])[data.labels]
    squares = member_sums(residuals**2, data.labels).T
    parts = squares / (np.maximum(counts - 1, 1) * counts)
    parts[:, counts == 1] = (squares.sum(axis=1) / max(data.samples - data.classes, 1))[:, np.newaxis]
    window = analysis.influence.window - analysis.counts @ analysis.influence.window / analysis.counts.sum()
    alone = np.average(window**2, axis=0, weights=analysis.counts) / analysis.counts.sum()
    total = np.diag(analysis.spread(analysis.influence).covariance) - alone
    found = parts.sum(axis=1)
    if data.groups is not None:
        parts *= np.divide(total, found, out=np.ones_like(found), where=found > 0)[:, np.newaxis]
    return parts


def _calibration_degrees(data: LabeledLogits, cases: Floats) -> Floats:
    """Degrees of freedom of each class's part as in `combine`, shape (C,); a single group shows no spread."""
    if data.groups is None and data.samples > data.classes:
        return np.maximum(cases - 1, 1.0)
    return cases - 1


def _allocation(spread: Floats, cases: Floats, allowed: float) -> Floats:
    """Smallest numbers of further cases of each class, (C,), for sum_j spread_j / (cases_j + further_j) <= allowed."""
    roots = np.sqrt(spread)
    growing = roots > 0
    while growing.any():
        kept = float((spread[~growing] / cases[~growing]).sum())
        if kept >= allowed:  # only by rounding: what does not grow was below its share
            break
        ideal = roots * roots[growing].sum() / (allowed - kept)
        short = growing & (ideal <= cases)
        if not short.any():
            return np.where(growing, ideal - cases, 0.0)
        growing &= ~short
    return np.zeros_like(cases)


def _expected(prevalence: ArrayLike, classes: int) -> Floats:
    return as_prevalence(prevalence, classes=classes)


def _half_width(value: float) -> float:
    number = as_parameter(value, field="half_width")
    if number.ndim or not 0 < number < 1:
        raise InvalidInputError("expected a number between 0 and 1.", field="half_width")
    return float(number)
