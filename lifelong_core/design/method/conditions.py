"""Conditions over answers as data: read from a document, evaluated with three values, never executed.

`{field: [answers]}` holds where the field has one of the answers, several fields where all of them do; `all`, `any`
and `not` combine conditions. A condition over unanswered fields may be undecided: then its value is None.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, InstanceOf

from lifelong_core.design.problem_fingerprint import Answer, Answers


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
