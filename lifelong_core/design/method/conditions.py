"""Conditions over answers as data: read from a document, evaluated with three values, never executed.

`{field: [answers]}` holds where the field has one of the answers, several fields where all of them do; `all`, `any`
and `not` combine conditions. A condition over unanswered fields may be undecided: then its value is None.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias, cast

from pydantic import BeforeValidator, InstanceOf

from lifelong_core.design.problem_fingerprint import Answer, Answers, ProblemFingerprint
from lifelong_core.metrics import zero_one_costs
from lifelong_core.values.arrays import Floats

Matrix: TypeAlias = tuple[tuple[float, ...], ...]
ParameterValue: TypeAlias = int | float | tuple[float, ...] | tuple[str, float] | Matrix

ELSE = " else "
"""Between the names of sources, of which the first whose fields are all answered counts."""


class Condition(ABC):
    """A condition on answers: it holds, does not hold, or is undecided."""

    @abstractmethod
    def holds(self, answers: Answers) -> bool | None:
        """True, False, or None if it depends on a missing answer."""

    @abstractmethod
    def fields(self) -> Iterator[str]:
        """The fields of the condition, in the order of the document."""

    @abstractmethod
    def undecided(self, answers: Answers) -> str | None:
        """The first field that the condition waits for; None if it is decided."""


@dataclass(frozen=True)
class Is(Condition):
    """A field has one of some answers."""

    field: str
    values: tuple[Answer, ...]

    def holds(self, answers: Answers) -> bool | None:
        """None where the field is unanswered."""
        answer = answers.get(self.field)
        return None if answer is None else answer in self.values

    def fields(self) -> Iterator[str]:
        """The one field."""
        yield self.field

    def undecided(self, answers: Answers) -> str | None:
        """The field, if it is unanswered."""
        return self.field if self.holds(answers) is None else None


@dataclass(frozen=True)
class _Several(Condition):
    parts: tuple[Condition, ...]

    def fields(self) -> Iterator[str]:
        """The fields of the parts."""
        for part in self.parts:
            yield from part.fields()

    def undecided(self, answers: Answers) -> str | None:
        """The field that the first undecided part waits for."""
        if self.holds(answers) is not None:
            return None
        return next(field for part in self.parts if (field := part.undecided(answers)) is not None)


@dataclass(frozen=True)
class AllOf(_Several):
    """Every part holds; without parts it always does."""

    def holds(self, answers: Answers) -> bool | None:
        """False as soon as one part is false."""
        values = [part.holds(answers) for part in self.parts]
        return False if False in values else None if None in values else True


@dataclass(frozen=True)
class AnyOf(_Several):
    """At least one part holds."""

    def holds(self, answers: Answers) -> bool | None:
        """True as soon as one part is true."""
        values = [part.holds(answers) for part in self.parts]
        return True if True in values else None if None in values else False


@dataclass(frozen=True)
class Not(Condition):
    """A part does not hold."""

    part: Condition

    def holds(self, answers: Answers) -> bool | None:
        """None where the part is undecided."""
        value = self.part.holds(answers)
        return None if value is None else not value

    def fields(self) -> Iterator[str]:
        """The fields of the part."""
        return self.part.fields()

    def undecided(self, answers: Answers) -> str | None:
        """The field that the part waits for."""
        return self.part.undecided(answers)


ALWAYS = AllOf(())
NEVER = AnyOf(())


def parse_condition(data: object) -> Condition:
    """A condition from its data.

    Raises:
        ValueError: the data has another form.

    Examples:
        >>> condition = parse_condition({"decision_rule": ["argmax"], "not": {"class_imbalance": [True]}})
        >>> condition.holds({"decision_rule": "argmax", "class_imbalance": False})
        True
        >>> condition.holds({"decision_rule": "none"}), condition.holds({"decision_rule": "argmax"})
        (False, None)
        >>> condition.undecided({"decision_rule": "argmax"})
        'class_imbalance'
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"expected a condition {{field: [answers]}}, got {data!r}")  # noqa: TRY004 - for pydantic
    entries = cast("Mapping[str, object]", data)
    parts = tuple(_parse_entry(key, value) for key, value in entries.items())
    return parts[0] if len(parts) == 1 else AllOf(parts)


def _parse_entry(key: str, value: object) -> Condition:
    if key == "not":
        return Not(parse_condition(value))
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise ValueError(f"expected a list behind {key!r}, got {value!r}")
    entries = cast("Sequence[Any]", value)
    if key in ("all", "any"):
        parts = tuple(parse_condition(part) for part in entries)
        return AllOf(parts) if key == "all" else AnyOf(parts)
    if not all(isinstance(answer, bool | str) for answer in entries):
        raise ValueError(f"expected answers behind {key!r}, got {value!r}")
    return Is(key, tuple(entries))


ConditionData = Annotated[InstanceOf[Condition], BeforeValidator(parse_condition)]
"""The type of a pydantic field that is read by `parse_condition`."""


def parse_offer(data: object) -> Condition:
    """A condition from its data, or `false` for one that never holds."""
    return NEVER if data is False else parse_condition(data)


OfferData = Annotated[InstanceOf[Condition], BeforeValidator(parse_offer)]
"""The type of a pydantic field that is read by `parse_offer`."""


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
