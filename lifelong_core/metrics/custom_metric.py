"""Metrics of users: a function with its card, given as a value to `compute_metrics` and `validate`."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from lifelong_core.metrics.catalogue import METRICS
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.errors import InvalidInputError

Need: TypeAlias = Literal["labels", "decisions", "probabilities"]

ACRONYM = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
LONGEST_TEXT = 1000
_HINT = "For example CustomMetric(acronym='LOSS', name='Mean loss', function=mean_loss, ...)."


@dataclass(frozen=True, kw_only=True, eq=False)
class CustomMetric:
    """A function of a user that computes one number from labelled outputs, with its card.

    Attributes:
        acronym: letters, digits and underscores; none of METRICS.
        name: for readers.
        function: called with the arrays of `needs` by their names, read-only; returns a number, nan where it is
            undefined. Equal arrays must give equal numbers: intervals call it for resampled samples.
        meaning: one sentence for readers who do not know the metric.
        orientation: which values are better: "up" or "down".
        needs: what the function gets: "labels" (N,), true classes; "decisions" (N,), classes, C to abstain;
            "probabilities" (N, C). Samples without a valid output are left out.
        bounds: least and largest value; infinite where there is none.

    Raises:
        InvalidInputError: a part of the card does not fit; the field is its name.

    Examples:
        >>> from lifelong_core.metrics import CustomMetric, compute_metrics
        >>> def mean_loss(labels, probabilities):
        ...     return (1 - probabilities[range(len(labels)), labels]).mean()
        >>> loss = CustomMetric(
        ...     acronym="LOSS", name="Mean loss", function=mean_loss, meaning="Probability that a true class lacks.",
        ...     orientation="down", needs=("labels", "probabilities"), bounds=(0, 1),
        ... )
        >>> probabilities = [[0.75, 0.25], [0.5, 0.5]]
        >>> compute_metrics(["AC", "LOSS"], labels=[0, 1], probabilities=probabilities, custom=[loss])["LOSS"]
        0.375
    """

    acronym: str
    name: str
    function: Callable[..., Any]
    meaning: str
    orientation: Literal["up", "down"]
    needs: tuple[Need, ...]
    bounds: tuple[float, float] = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        """Check the card."""
        if not ACRONYM.fullmatch(self.acronym):
            raise _unfit("acronym", "expected a letter, then at most 39 letters, digits and underscores.")
        if self.acronym in METRICS:
            raise _unfit("acronym", f"{self.acronym} is a metric of the pool.")
        for field in ("name", "meaning"):
            if not 0 < len(getattr(self, field).strip()) <= LONGEST_TEXT:
                raise _unfit(field, f"expected a text of at most {LONGEST_TEXT} characters.")
        if not callable(self.function):
            raise _unfit("function", "expected a function.")
        if self.orientation not in ("up", "down"):
            raise _unfit("orientation", 'expected "up" or "down".')
        if not self.needs or not set(self.needs) <= set(get_args(Need)):
            raise _unfit("needs", f"expected a tuple with some of {', '.join(get_args(Need))}.")
        if not self.bounds[0] < self.bounds[1]:
            raise _unfit("bounds", f"expected two ascending numbers, got {self.bounds}.")

    @property
    def worst(self) -> float:
        """Bound at the bad end; infinite where there is none."""
        return self.bounds[0] if self.orientation == "up" else self.bounds[1]

    def value(
        self, *, labels: Integers, decisions: Integers | None, probabilities: Floats | None, invalid: int = 0
    ) -> float:
        """The metric of samples.

        Args:
            labels: shape (n,), of the samples with a valid output.
            decisions: shape (n,).
            probabilities: shape (n, C).
            invalid: number of samples without a valid output. As for other metrics, their share counts as the worst
                value (FP5.3); where there is none, the metric is undefined with them.

        Raises:
            InvalidInputError: what it needs was not given, or the function fails, or returns something else than a
                number within the bounds; the field is `custom.` and the acronym.
        """
        given = {"labels": labels, "decisions": decisions, "probabilities": probabilities}
        for need in self.needs:
            if given[need] is None:
                raise InvalidInputError(f"{self.acronym} needs {need}.", field=need)
        if labels.size == 0 and not invalid:
            return math.nan
        value = self._call({need: _view(given[need]) for need in self.needs}) if labels.size else 0.0
        if not invalid:
            return value
        share = invalid / (labels.size + invalid)
        return (1 - share) * value + share * self.worst if math.isfinite(self.worst) else math.nan

    def _call(self, arrays: dict[str, NDArray[Any]]) -> float:
        try:
            value = float(self.function(**arrays))
        except Exception as error:
            raise InvalidInputError(
                f"the function failed: {type(error).__name__}: {str(error)[:200]}",
                field=f"custom.{self.acronym}",
                hint=f"It is called with {', '.join(self.needs)} by these names, and returns one number.",
            ) from error
        low, high = self.bounds
        margin = 1e-9 * max(1.0, abs(value)) if math.isfinite(value) else 0.0
        if value < low - margin or value > high + margin:
            raise InvalidInputError(
                f"the function returned {value:g}, which is not in {self.bounds}.",
                field=f"custom.{self.acronym}",
            )
        return value


def custom_by_acronym(custom: Iterable[CustomMetric]) -> dict[str, CustomMetric]:
    """The metrics by acronym.

    Raises:
        InvalidInputError: not custom metrics, or two have one acronym.
    """
    by_acronym: dict[str, CustomMetric] = {}
    for metric in custom:
        if not isinstance(metric, CustomMetric):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                f"expected a CustomMetric, got {type(metric).__name__}.", field="custom", hint=_HINT
            )
        if metric.acronym in by_acronym:
            raise InvalidInputError(f"{metric.acronym} is given twice.", field="custom")
        by_acronym[metric.acronym] = metric
    return by_acronym


def _unfit(field: str, message: str) -> InvalidInputError:
    return InvalidInputError(message, field=field, hint=_HINT)


def _view(array: Any) -> NDArray[Any]:
    """The array, which the function cannot change."""
    view = np.asarray(array).view()
    view.setflags(write=False)
    return view
