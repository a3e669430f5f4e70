"""Names of classes in texts: in a list, with their numbers, and as names of decisions."""

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
