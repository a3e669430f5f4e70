"""Names of classes in texts: found by what was typed, in a list, with their numbers, and as names of decisions."""

from collections import Counter
from collections.abc import Sequence
from textwrap import shorten

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
