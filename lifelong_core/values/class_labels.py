"""Labels of classes by name or index, forms of Unicode, and missing keys; without pydantic, as `arrays` needs them."""

import re
import unicodedata
from collections.abc import Sequence

_INDEX = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"[+-]?[\d.,]*\d[\d.,]*")
_MISSING = frozenset({"", "nan", "none", "null", "na", "n/a", "#n/a", "<na>"})


def composed(text: str) -> str:
    """The text in Unicode's form NFC, in which names are compared: macOS names files in NFD."""
    return unicodedata.normalize("NFC", text)


def key_form(text: str) -> str:
    """The form in which keys of patients, studies and requests are compared: NFC, without white space around it.

    Headers of HTTP and tables lose that space, and DICOM pads texts to an even length: one key would become two.

    Examples:
        >>> key_form(" 4711 "), key_form("a  b")
        ('4711', 'a  b')
    """
    return composed(text).strip()


def is_missing(key: str) -> bool:
    """Whether a key of a patient or study is what programs write where there is none: an empty cell, NaN, None, null.

    Examples:
        >>> is_missing(" NaN "), is_missing("0")
        (True, False)
    """
    return key.strip().casefold() in _MISSING


def are_numbers(class_names: Sequence[str]) -> bool:
    """Whether some class has a number as its name, so that a label "2" is a name and no index."""
    return any(_NUMBER.fullmatch(name.strip()) for name in class_names)


def class_index(label: int | str, class_names: Sequence[str]) -> int | None:
    """Index of a class given by name or index; None: there is no such class.

    A whole number means the same as its text: a name, or an index where no class has a number as its name.

    Examples:
        >>> [class_index(label, ("1", "2", "3")) for label in (1, "1", 0)], class_index(1, ("nevus", "melanoma"))
        ([0, 0, None], 1)
    """
    text, names = composed(str(label)), [composed(name) for name in class_names]
    if text in names:
        return names.index(text)
    is_index = _INDEX.fullmatch(text) and not are_numbers(names) and int(text) < len(names)
    return int(text) if is_index else None


def describe_labels(class_names: Sequence[str]) -> str:
    """How to write a label: the names, and the indices where `class_index` takes them."""
    indices = "" if are_numbers(class_names) else f", or an index in 0..{len(class_names) - 1}"
    return f"Give one of {', '.join(class_names)}{indices}."
