"""Values of metric parameters: an answer, or a value that follows from answers."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from lifelong_core.arrays import Floats
from lifelong_core.design.problem_fingerprint import ProblemFingerprint
from lifelong_core.metrics import zero_one_costs

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


DERIVED: Mapping[str, tuple[tuple[str, ...], Callable[..., ParameterValue]]] = MappingProxyType(
    {
        "zero_one_costs": (("number_of_classes",), equal_costs),
        "importance_costs": (("class_weights",), importance_costs),
        "target": (("target_metric", "target_value"), target),
    }
)
"""By name of the source: the fields that it needs, and the function of their values."""


def fields_behind(source: str) -> tuple[str, ...]:
    """The fields that a parameter's value depends on."""
    return DERIVED[source][0] if source in DERIVED else (source,)


def parameter_value(source: str, fingerprint: ProblemFingerprint) -> ParameterValue:
    """The value of a parameter; its fields are answered."""
    answers = [getattr(fingerprint, field) for field in fields_behind(source)]
    return DERIVED[source][1](*answers) if source in DERIVED else answers[0]
