"""What is wrong with a document, in the words of those who fill it in."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from lifelong_core.errors import InvalidInputError

LONGEST_VALUE = 80
"""Characters of a value that are shown."""

EXPECTED: Mapping[str, tuple[str, str | None]] = MappingProxyType(
    {
        "int_type": ("a whole number", "3"),
        "int_from_float": ("a whole number", "3"),
        "int_parsing": ("a whole number", "3"),
        "float_type": ("a number", "0.95"),
        "float_parsing": ("a number", "0.95"),
        "finite_number": ("a finite number", "0.95"),
        "bool_type": ("true or false", None),
        "bool_parsing": ("true or false", None),
        "string_type": ("a text", '"patient"'),
        "string_too_short": ("a text that is not empty", '"patient"'),
        "string_too_long": ("a text of at most {max_length} characters", None),
        "tuple_type": ("a list", "[0.9, 0.1]"),
        "list_type": ("a list", "[0.9, 0.1]"),
        "too_short": ("a list of at least {min_length}", "[0.9, 0.1]"),
        "too_long": ("a list of at most {max_length}", None),
        "greater_than": ("a number above {gt:g}", None),
        "greater_than_equal": ("a number of at least {ge:g}", None),
        "less_than": ("a number below {lt:g}", None),
        "less_than_equal": ("a number of at most {le:g}", None),
        "literal_error": ("{expected}", None),
        "dict_type": ("names with their values", '{{"number_of_classes": 2}}'),
        "mapping_type": ("names with their values", '{{"number_of_classes": 2}}'),
        "model_type": ("names with their values", '{{"number_of_classes": 2}}'),
    }
)
"""By kind of problem: what was expected, and an example; numbers come from the limits of the field."""

PLAIN: Mapping[str, tuple[str, str | None]] = MappingProxyType(
    {
        "missing": ("it is missing.", None),
        "extra_forbidden": (
            "there is no such field, or it was given already under another name.",
            "Check the spelling.",
        ),
        "json_invalid": ("this is not JSON: {error}.", "The file may be cut off, or of another kind."),
    }
)
"""By kind of problem: what is wrong where no other value was expected, and what to do."""


def as_input_error(error: ValidationError) -> InvalidInputError:
    """The first problem that was found, in plain words: where, what was expected, what was given, and an example."""
    first = error.errors(include_url=False)[0]
    kind, context = first["type"], first.get("ctx", {})
    own = context.get("error")
    if isinstance(own, InvalidInputError):
        return own
    field, where = _place(first["loc"])
    if kind in PLAIN:
        message, mend = PLAIN[kind]
        return InvalidInputError(message.format(**context), field=field, mend=mend)
    if kind not in EXPECTED:
        message = str(own) if kind == "value_error" else first["msg"].replace("Input should", "it should")
        return InvalidInputError(f"{message}{where}.", field=field)
    expected, example = EXPECTED[kind]
    return InvalidInputError(
        f"expected {expected.format(**context)}{where}, got {_given(first)}.",
        field=field,
        mend=None if example is None else f"For example {example.format()}.",
    )


def _place(location: tuple[int | str, ...]) -> tuple[str, str]:
    """The name of the field, and where in its value the problem is."""
    depth = next((k for k, part in enumerate(location) if isinstance(part, int)), len(location))
    field = ".".join(str(part) for part in location[:depth]) or "document"
    inside = location[depth:]
    if not inside:
        return field, ""
    if len(inside) == 1:
        return field, f" as entry {int(inside[0]) + 1}"
    if len(inside) == 2 and isinstance(inside[1], int):
        return field, f" in row {int(inside[0]) + 1}, column {inside[1] + 1}"
    steps = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in inside)
    return field, f" at {''.join(steps)}"


def _given(problem: ErrorDetails) -> str:
    context = problem.get("ctx", {})
    if "actual_length" in context:
        return str(context["actual_length"])
    return shown(problem["input"])


def shown(value: Any) -> str:
    """A value as it is named in a message.

    Examples:
        >>> shown(True), shown(None), shown("maybe")
        ('true', 'nothing', "'maybe'")
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value).removesuffix(".0") if isinstance(value, float) else repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."
