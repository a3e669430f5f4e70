"""Names of classes: found by what was typed, in lists, as names of decisions, and in another order."""

from collections import Counter
from collections.abc import Sequence
from textwrap import shorten
from typing import Any

from lifelong_core.design.problem_fingerprint import ProblemFingerprint

ABSTAIN = "abstain"
"""Name of the decision for no class."""

MOST_LISTED = 12
"""Classes of a short list; of more, the rest is counted."""

LONGEST_LIST = 200
"""Characters of a short list."""

MOST_NUMBERED = 50
"""Classes of a numbered list; of more, only the first ones and the last are listed."""

MOST_DIGITS = 9
"""Digits of the number of a class; longer numbers are refused, never cut."""


class ClassLookup:
    """Finds classes by their exact name, else by their name in any case, else by their number.

    Numbers are read only where no class has a number as its name. Names are folded once, not at each search.

    Examples:
        >>> lookup = ClassLookup(["Nevus", "A", "a"], 3)
        >>> [lookup.find(text) for text in ("nevus", "a", "2", "mole")]
        [0, 2, 2, None]
    """

    def __init__(self, names: Sequence[str] | None, classes: int | None) -> None:
        self.names = tuple(names or ())
        self.classes = len(self.names) or classes
        """None: any number is one of a class"""
        self.folded = tuple(name.casefold() for name in self.names)
        self.has_numbers = not any(name.isdecimal() for name in self.names)
        """whether classes can be given by their number"""
        self._exact = {name: index for index, name in enumerate(self.names)}
        self._of_folded = {name: index for index, name in enumerate(self.folded)}
        self._count = Counter(self.folded)

    def find(self, text: str) -> int | None:
        """The class that a text without surrounding blanks names; None: none, or several."""
        if text in self._exact:
            return self._exact[text]
        typed = text.casefold()
        if self._count[typed] == 1:
            return self._of_folded[typed]
        if self._count[typed] or not self.has_numbers or not text.isdecimal() or len(text) > MOST_DIGITS:
            return None
        return int(text) if self.classes is None or int(text) < self.classes else None

    def fits_several(self, text: str) -> bool:
        """Whether a text names several classes, which differ only in case."""
        return text not in self._exact and self._count[text.casefold()] > 1


def decision_names(class_names: Sequence[str], decisions: int) -> tuple[str, ...]:
    """The names of the classes, and `abstain` where there are more decisions than classes."""
    extra = (ABSTAIN,) if decisions > len(class_names) else ()
    return (*class_names, *extra)


def list_class_names(names: Sequence[str]) -> str:
    """A short list of the names of classes.

    Examples:
        >>> list_class_names(["benign", "malignant"]), list_class_names(["x"] * 20)[-12:]
        ('benign, malignant', 'and 8 others')
    """
    listed = shorten(", ".join(names[:MOST_LISTED]), LONGEST_LIST, placeholder=" ...")
    return listed if len(names) <= MOST_LISTED else f"{listed} and {len(names) - MOST_LISTED} others"


def number_class_names(names: Sequence[str]) -> str:
    """The names of classes with their numbers.

    Examples:
        >>> number_class_names(["benign", "malignant"])
        '0 benign, 1 malignant'
    """
    numbered = [f"{number} {name}" for number, name in enumerate(names)]
    listed = (
        numbered if len(names) <= MOST_NUMBERED else [*numbered[: MOST_NUMBERED - 1], "...", numbered[-1]]
    )
    return ", ".join(listed)


def reorder_class_answers(
    fingerprint: ProblemFingerprint, before: Sequence[str], after: Sequence[str]
) -> dict[str, Any]:
    """The answers to change so that each class keeps its own after a change of class names.

    Corrected names leave the classes in their places. If classes are added or removed, only the target class follows
    its name; it is withdrawn if its name is removed.

    Args:
        fingerprint: the answers, in the order of `before`.
        before: the names of the classes, each once.
        after: the new names.

    Examples:
        >>> answers = ProblemFingerprint(target_class=1, costs=((0, 1), (9, 0)))
        >>> reorder_class_answers(answers, ["benign", "malignant"], ["malignant", "benign"])
        {'costs': [[0.0, 9.0], [1.0, 0.0]], 'target_class': 0}
        >>> reorder_class_answers(answers, ["benign", "malignant"], ["benign", "unclear", "malignant"])
        {'target_class': 2}
    """
    target = fingerprint.target_class
    name = None if target is None or target >= len(before) else before[target]
    if set(before) == set(after):
        moved = _in_order(fingerprint, [before.index(name) for name in after])
    elif len(before) == len(after):
        return {}
    else:
        moved = {}
    if name is not None:
        moved["target_class"] = after.index(name) if name in after else None
    return moved


def _in_order(fingerprint: ProblemFingerprint, order: list[int]) -> dict[str, Any]:
    """Answers with one value per class, in another order; the column for abstaining stays last."""
    moved: dict[str, Any] = {}
    for field in ("class_weights", "target_prevalences"):
        values = getattr(fingerprint, field)
        if values is not None and len(values) == len(order):
            moved[field] = [values[k] for k in order]
    costs = fingerprint.costs
    if costs is not None and len(costs) == len(order) <= len(costs[0]):
        columns = [*order, *range(len(order), len(costs[0]))]
        moved["costs"] = [[costs[row][column] for column in columns] for row in order]
    return moved
