"""Argument checks of the deployment loop."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from numpy.typing import ArrayLike

from lifelong_core.values.arrays import LARGEST_NUMBER, Floats, as_number, as_parameter, read_only
from lifelong_core.values.class_labels import composed
from lifelong_core.values.errors import InvalidInputError

SMALLEST_TEMPERATURE = 1 / LARGEST_NUMBER

LONGEST_CLASS_NAME = 200
_UNUSABLE: dict[str, Callable[[str], bool]] = {
    "begins or ends with a space": lambda name: name != name.strip(),
    "holds a slash, a backslash or a comma": lambda name: any(mark in name for mark in "/\\,"),
    "begins with a full stop or is __MACOSX, as folders that are passed over": lambda name: (
        name.startswith(".") or name == "__MACOSX"
    ),
    "is longer than the 255 bytes of the name of a folder": lambda name: len(name.encode()) > 255,
    "is the decision to abstain, or a column of CSV files (label, group, logit, logit_...)": lambda name: (
        name.casefold() in ("abstain", "label", "group", "logit") or name.casefold().startswith("logit_")
    ),
}
"""Why a name of a class cannot be used."""


def as_whole_number(value: float, smallest: int, largest: int, *, field: str) -> int:
    """A whole number within bounds.

    Raises:
        InvalidInputError: it is not.
    """
    if not smallest <= value <= largest or value != int(value):
        raise InvalidInputError(f"expected a whole number in {smallest}..{largest}.", field=field)
    return int(value)


def as_temperature(values: float | ArrayLike, *, classes: int) -> float | Floats:
    """A positive temperature: one number, or shape (C,), read-only.

    Raises:
        InvalidInputError: not finite, not positive, or another shape.
    """
    array = as_parameter(values, field="temperature")
    if array.shape not in ((), (classes,)):
        raise InvalidInputError(
            f"expected one number or shape ({classes},), got {array.shape}.", field="temperature"
        )
    if not (array >= SMALLEST_TEMPERATURE).all():
        raise InvalidInputError(
            f"expected a positive temperature, at least {SMALLEST_TEMPERATURE:g}.", field="temperature"
        )
    return float(array) if array.ndim == 0 else read_only(array)


def as_level(value: float, field: str) -> float:
    """A number strictly between 0 and 1.

    Raises:
        InvalidInputError: it is not.
    """
    number = as_number(value, field=field)
    if not 0 < number < 1:
        raise InvalidInputError(f"expected a number between 0 and 1, got {number}.", field=field)
    return number


def as_new_class_names(values: Any) -> tuple[str, ...]:
    """Names for the classes of a new task, in Unicode's form NFC, that work wherever a name goes.

    A name is a folder, a column or cell of CSV files, a part of lists, and beside the decision to abstain.

    Raises:
        InvalidInputError: as `as_class_names`; or a name means something else in one of these places, or names differ
            only by case or spaces, or are the numbers 0..C-1 in another order.
    """
    names = as_class_names(values)
    names = as_class_names([composed(name) for name in names])
    for name in names:
        problem = next((why for why, is_so in _UNUSABLE.items() if is_so(name)), None)
        if problem is not None:
            raise InvalidInputError(f"the class name {name!r} {problem}.", field="class_names")
    plain = [" ".join(name.split()).casefold() for name in names]
    twice = [name for name, form in zip(names, plain, strict=True) if plain.count(form) > 1]
    if twice:
        raise InvalidInputError(
            f"class names differ only by case or spaces: {', '.join(map(repr, twice))}.", field="class_names"
        )
    numbers = [str(k) for k in range(len(names))]
    if sorted(names) == sorted(numbers) and list(names) != numbers:
        raise InvalidInputError(
            f"a label 0 would be the class '0' or the first one, {names[0]!r}.",
            field="class_names",
            hint=f"Give them in the order {','.join(numbers)}, which is that of the logits, or as words.",
        )
    return names


def as_class_names(values: Any) -> tuple[str, ...]:
    """At least two different names that can be printed: no control characters, no lone surrogates.

    Raises:
        InvalidInputError: they are not.
    """
    hint = "Name every class once, in the order of the logits."
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidInputError("expected a list of names.", field="class_names", hint=hint)
    names: list[str] = []
    for name in cast(Sequence[Any], values):
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InvalidInputError(
                f"{name!r} is not a name of printable characters.", field="class_names", hint=hint
            )
        if len(name) > LONGEST_CLASS_NAME:
            raise InvalidInputError(
                f"expected names of at most {LONGEST_CLASS_NAME} characters.", field="class_names", hint=hint
            )
        names.append(name)
    if len(names) < 2 or len(set(names)) < len(names):
        raise InvalidInputError(
            f"expected at least two different class names, got {names}.", field="class_names", hint=hint
        )
    return tuple(names)
