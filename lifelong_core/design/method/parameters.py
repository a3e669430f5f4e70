"""Values of metric parameters: an answer, or a value that follows from answers."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from lifelong_core.design.problem_fingerprint import ProblemFingerprint
from lifelong_core.metrics import zero_one_costs
from lifelong_core.values.arrays import Floats

Matrix: TypeAlias = tuple[tuple[float, ...], ...]
ParameterValue: TypeAlias = int | float | tuple[float, ...] | tuple[str, float] | Matrix


def as_matrix(costs: Floats) -> Matrix:
    """Costs as rows of numbers, one row per true class.

    Examples:
        >>> as_matrix(zero_one_costs(2))
        ((0.0, 1.0), (1.0, 0.0))
    """
    return tuple(tuple(row) for row in costs.tolist())


def equal_costs(classes: int) -> Matrix:
    """Costs of 1 for every wrong decision."""
    return as_matrix(zero_one_costs(classes))


def importance_costs(weights: tuple[float, ...]) -> Matrix:
    """Costs of an error on each class equal to the weight of the class.

    Examples:
        >>> importance_costs((1.0, 5.0))
        ((0.0, 1.0), (5.0, 0.0))
    """
    others = len(weights) - 1
    return tuple((weight,) * i + (0.0,) + (weight,) * (others - i) for i, weight in enumerate(weights))


def target(metric: str, value: float) -> tuple[str, float]:
    """The value that a target metric has to reach."""
    return metric, value


def assumed_shares(assumption: str, classes: int) -> tuple[float, ...] | None:
    """The class shares of an assumption; None: the shares of the test data.

    Examples:
        >>> assumed_shares("balanced", 4), assumed_shares("test_data", 4)
        ((0.25, 0.25, 0.25, 0.25), None)
    """
    return (1 / classes,) * classes if assumption == "balanced" else None


DERIVED: Mapping[str, tuple[tuple[str, ...], Callable[..., ParameterValue | None]]] = MappingProxyType(
    {
        "zero_one_costs": (("number_of_classes",), equal_costs),
        "importance_costs": (("class_weights",), importance_costs),
        "target": (("target_metric", "target_value"), target),
        "assumed_shares": (("assumed_prevalences", "number_of_classes"), assumed_shares),
    }
)
"""By name of the source: the fields that it needs, and the function of their values."""


ELSE = " else "
"""Between the names of sources, of which the first whose fields are all answered counts."""


def alternatives(source: str) -> tuple[str, ...]:
    """The sources from which a value may come, the first one first.

    Examples:
        >>> alternatives("target_prevalences else assumed_shares")
        ('target_prevalences', 'assumed_shares')
    """
    return tuple(source.split(ELSE))


def fields_behind(source: str) -> tuple[str, ...]:
    """The fields that a parameter's value depends on, over all alternatives."""
    return tuple(
        field for one in alternatives(source) for field in (DERIVED[one][0] if one in DERIVED else (one,))
    )


def parameter_value(source: str, fingerprint: ProblemFingerprint) -> ParameterValue | None:
    """The value of a parameter from one source, whose fields are answered; None: the metric's default."""
    answers = [getattr(fingerprint, field) for field in fields_behind(source)]
    return DERIVED[source][1](*answers) if source in DERIVED else answers[0]
