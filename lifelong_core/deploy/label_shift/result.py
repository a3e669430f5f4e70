"""Result of the test "only the prevalence changed"."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, TypeAlias, cast

from lifelong_core.deploy.documents import canonical, parse_document, take_fields
from lifelong_core.values.errors import InvalidInputError

DisagreementKind: TypeAlias = Literal[
    "moved_logit",
    "scaled_logits",
    "noisy_logits",
    "unseen_class",
    "scores_moved",
    "scores_spread",
    "confidence_moved",
    "unlike_every_class",
]


@dataclass(frozen=True)
class ComponentTest:
    """One of the component tests of the p-value."""

    name: Literal["steps", "waves", "drifts"]
    statistic: float
    """steps: Hansen's J; waves: squared distance of mean features; drifts: the largest in standard errors"""
    p_value: float
    """of this component alone"""


@dataclass(frozen=True)
class Disagreement:
    """Deviation of the window from every mix of the calibration classes; an indication, not a separate test."""

    kind: DisagreementKind
    class_index: int | None
    """None: it affects all classes"""
    size: float
    """signed, in standard errors"""
    amount: float | None
    """size of the change if it is the only one: added to the logit; factor of the logits (saturates beyond 0.8 and
    1.2); share of samples far from every class; None where it has no unit or is unknown"""
    text: str
    """the disagreement as a sentence"""


@dataclass(frozen=True)
class AssumptionTest:
    """Test of "p(logits | class) is as in the calibration set" on one window."""

    statistic: float
    """standard normal quantile of 1 - `p_value`, at least 0: comparable between windows"""
    p_value: float
    """smallest p-value of a component, times their number (Bonferroni)"""
    level: float
    rejected: bool
    """p_value < level: no prevalence explains the window"""
    reliable: bool
    """False: the calibration set or the window is too small for the test to keep its level"""
    tests: tuple[ComponentTest, ...]
    disagreements: tuple[Disagreement, ...]
    """the few largest, in descending order; relevant only where the test rejects"""

    def to_document(self) -> dict[str, Any]:
        """All fields as JSON values; every number survives the round trip exactly."""
        return {
            "schema_version": 1,
            **asdict(self),
            "tests": [asdict(test) for test in self.tests],
            "disagreements": [asdict(item) for item in self.disagreements],
        }

    def to_json(self) -> str:
        """`to_document` as a string, equal for equal results."""
        return canonical(self.to_document())

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read a document of `to_document`.

        Raises:
            InvalidInputError: a field is missing or unknown.
        """
        found = take_fields(document, 1, required=tuple(item.name for item in fields(cls)))
        tests = _items(found, "tests", ComponentTest)
        disagreements = _items(found, "disagreements", Disagreement)
        found["tests"] = tuple(ComponentTest(**item) for item in tests)
        found["disagreements"] = tuple(Disagreement(**item) for item in disagreements)
        return cls(**found)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a string of `to_json`.

        Raises:
            InvalidInputError: not JSON, or a field is missing or unknown.
        """
        return cls.from_document(parse_document(text, field="assumption_test"))


def _items(
    document: Mapping[str, Any], field: str, kind: type[ComponentTest] | type[Disagreement]
) -> list[dict[str, Any]]:
    """Return the list of objects in this field, each with exactly the fields of its kind."""
    names = {item.name for item in fields(kind)}
    items = document[field]
    if not isinstance(items, list):
        raise InvalidInputError("expected a list.", field=field)
    found: list[dict[str, Any]] = []
    for item in cast("list[Any]", items):
        if not isinstance(item, Mapping) or set(cast("Mapping[str, Any]", item)) != names:
            raise InvalidInputError(f"expected objects with the fields {sorted(names)}.", field=field)
        found.append(dict(cast("Mapping[str, Any]", item)))
    return found
