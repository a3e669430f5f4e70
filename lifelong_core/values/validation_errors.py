"""Pydantic's validation errors as our errors: field, expected value, given value and hint."""

import difflib
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeVar, get_args

from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic_core import ErrorDetails

from lifelong_core.values.errors import InvalidInputError

LONGEST_VALUE = 80
"""Largest number of characters of a value in a message."""

LONGEST_LIST = 300
"""Largest number of characters of a list of known names in a message."""

MOST_READ = 100
"""Number of problems among which the reported one is chosen."""

EXPECTED: Mapping[str, tuple[str, str | None]] = MappingProxyType(
    {
        "int_type": ("a whole number", "3"),
        "int_from_float": ("a whole number", "3"),
        "int_parsing": ("a whole number", "3"),
        "int_parsing_size": ("a whole number of fewer digits", "3"),
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
        "enum": ("{expected}", None),
        "string_pattern_mismatch": ("a text of the form {pattern}", None),
        "uuid_parsing": ("a UUID", '"0190b5a8-7c1e-7000-8000-3f6d9c1e2a4b"'),
        "uuid_type": ("a UUID", '"0190b5a8-7c1e-7000-8000-3f6d9c1e2a4b"'),
        "path_type": ("a path", '"lifelong-data"'),
        "set_type": ("a list", '["read"]'),
        "frozen_set_type": ("a list", '["read"]'),
        "dict_type": ("names with their values", '{{"name": "value"}}'),
        "mapping_type": ("names with their values", '{{"name": "value"}}'),
        "model_type": ("names with their values", '{{"name": "value"}}'),
        "model_attributes_type": ("names with their values", '{{"name": "value"}}'),
    }
)
"""By kind of problem: the expected value and an example; numbers come from the limits of the field."""

PLAIN: Mapping[str, tuple[str, str | None]] = MappingProxyType(
    {
        "missing": ("it is missing.", None),
        "json_invalid": ("this is not JSON: {error}.", "It may be cut off, or of another format."),
    }
)
"""By kind of problem: the message without an expected value, and the hint."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 4 * LONGEST_VALUE
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxdict = LONGEST_VALUE

_UNION_MEMBER = re.compile(r"(int|float|str|bool|uuid|list|tuple|dict|constrained-\w+)(\[.*\])?")
"""Suffixes that pydantic appends to the location of a value that fits no member of a union."""

Document = TypeVar("Document", bound=BaseModel)


def read_json(document: type[Document], text: str | bytes, *, is_request: bool = False) -> Document:
    """The document in a JSON text.

    Raises:
        InvalidInputError: it is not JSON, or does not fit; the message names the field.
    """
    try:
        return document.model_validate_json(text)
    except ValidationError as error:
        raise as_input_error(error, document, is_request=is_request) from error


def as_input_error(
    error: ValidationError, document: object = None, *, is_request: bool = False
) -> InvalidInputError:
    """`describe_problems` of an error of pydantic."""
    return describe_problems(error.errors(include_url=False), document, is_request=is_request)


def describe_problems(
    problems: Sequence[ErrorDetails], document: object = None, *, is_request: bool = False
) -> InvalidInputError:
    """One error for all problems of a document: the most informative problem and the number of others.

    A misspelt name has priority, because it explains a missing field. Otherwise the first problem is reported.

    Args:
        problems: from pydantic, at least one.
        document: the validated model class or annotation, the source of suggested field names.
        is_request: True: the field is the path with all indices (`labels.1.label`), for programs, and messages repeat
            no value, because it may be a patient's key.
    """
    problems = _without_consequences(problems)
    write = _Writer(document, is_request=is_request)
    for problem in islice(problems, MOST_READ):
        if problem["type"] == "extra_forbidden":
            unknown = write.unknown_name(problem)
            if unknown.hint and unknown.hint.startswith("Did you mean"):
                return _with_count(unknown, len(problems) - 1)
    first = problems[0]
    alternatives = _union_members(first, problems)
    if len(alternatives) > 1:
        return _with_count(write.unexpected_value(alternatives), len(problems) - len(alternatives))
    return _with_count(write.problem(first), len(problems) - 1)


def _without_consequences(problems: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """The problems except lists that are too short only because pydantic left out their wrong entries."""
    parents = {
        problem["loc"][:depth] for problem in problems[:MOST_READ] for depth in range(len(problem["loc"]))
    }
    return [
        problem for problem in problems if not (problem["type"] == "too_short" and problem["loc"] in parents)
    ]


@dataclass(frozen=True)
class _Writer:
    """Describes single problems; the attributes are the arguments of `describe_problems`."""

    document: object
    is_request: bool

    def problem(self, problem: ErrorDetails) -> InvalidInputError:
        """The error for any problem."""
        kind, context = problem["type"], problem.get("ctx", {})
        own = context.get("error")
        if isinstance(own, InvalidInputError):
            return own
        if kind == "extra_forbidden":
            return self.unknown_name(problem)
        if kind in EXPECTED:
            return self.unexpected_value([problem])
        field, where = self._place(problem["loc"])
        if kind in PLAIN:
            message, hint = PLAIN[kind]
            return InvalidInputError(message.format(**context), field=field, hint=hint)
        if kind == "value_error":
            return InvalidInputError(f"{_without_full_stop(str(own))}{where}.", field=field)
        message = problem["msg"].replace("Input should", "it should")
        return InvalidInputError(f"{message}{where}{self._given(problem)}.", field=field)

    def unexpected_value(self, problems: Sequence[ErrorDetails]) -> InvalidInputError:
        """The error for a value that fits no member of a union."""
        first = problems[0]
        field, where = self._place(first["loc"] if len(problems) == 1 else first["loc"][:-1])
        forms: dict[str, str | None] = {}
        for problem in problems:
            form, example = EXPECTED[problem["type"]]
            forms[form.format(**problem.get("ctx", {}))] = example
        message = f"expected {' or '.join(forms)}{where}{self._given(first)}."
        if first["type"] in ("literal_error", "enum"):
            allowed = re.findall(r"'([^']*)'", str(first.get("ctx", {}).get("expected", "")))
            return InvalidInputError(message, field=field, hint=suggest(first["input"], allowed))
        examples = [example.format() for example in forms.values() if example is not None]
        hint = f"For example {' or '.join(examples)}." if examples else None
        return InvalidInputError(message, field=field, hint=hint)

    def unknown_name(self, problem: ErrorDetails) -> InvalidInputError:
        """The error for an unknown field name."""
        *parents, name = problem["loc"]
        known = _field_names(self.document, parents)
        field, _ = self._place(problem["loc"])
        if name in known:
            message = "this field was given already under another name."
            return InvalidInputError(message, field=field, hint="Give it once.")
        hint = suggest(name, known)
        if hint is None:
            names = ", ".join(known)
            hint = f"Known fields: {names}." if 0 < len(names) <= LONGEST_LIST else "Check the spelling."
        return InvalidInputError("there is no such field.", field=field, hint=hint)

    def _place(self, location: tuple[int | str, ...]) -> tuple[str, str]:
        """The path of the field, and the place of the problem in its value: a list entry or a matrix cell."""
        indices = 0
        while not self.is_request and indices < len(location) and isinstance(location[-1 - indices], int):
            indices += 1
        path, inside = location[: len(location) - indices], location[len(location) - indices :]
        is_name = bool(path) and path[-1] == "[key]"
        field = ".".join(str(part)[:LONGEST_VALUE] for part in path[: len(path) - is_name]) or "document"
        positions = [int(part) + 1 for part in inside]
        match positions:
            case []:
                return field, " as the name" if is_name else ""
            case [entry]:
                return field, f" as entry {entry}"
            case [row, column]:
                return field, f" in row {row}, column {column}"
            case _:
                return field, f" at {''.join(f'[{part}]' for part in inside)}"

    def _given(self, problem: ErrorDetails) -> str:
        context = problem.get("ctx", {})
        if "actual_length" in context:
            return f", got {context['actual_length']}"
        return "" if self.is_request else f", got {format_value(problem['input'])}"


def suggest(given: object, known: Sequence[str]) -> str | None:
    """A hint with the known name that is most similar to a wrong one; None: no name is similar.

    Examples:
        >>> suggest("colr", ["colour", "resize"])
        'Did you mean colour?'
        >>> suggest("patient", ["colour", "resize"]) is None
        True
    """
    by_small_letters = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(str(given)[:LONGEST_VALUE].casefold(), by_small_letters, n=1)
    return f"Did you mean {by_small_letters[close[0]]}?" if close else None


def _field_names(document: object, location: Sequence[int | str]) -> list[str]:
    """Field names, aliases included, of the models at a location; empty without a model."""
    models = list(_models_in(document))
    for part in location:
        named = [
            field.annotation
            for model in models
            for name, field in model.model_fields.items()
            if part in _names_of(name, field.validation_alias)
        ]
        if named:  # else an index, a key or a union member: the models of the container apply
            models = [model for annotation in named for model in _models_in(annotation)]
    return [
        alias
        for model in models
        for name, field in model.model_fields.items()
        for alias in _names_of(name, field.validation_alias)
    ]


def _names_of(name: str, alias: object) -> tuple[str, ...]:
    if isinstance(alias, AliasChoices):
        return tuple(choice for choice in alias.choices if isinstance(choice, str))
    return (alias,) if isinstance(alias, str) else (name,)


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """The models in an annotation: itself, items of lists, values of dictionaries, members of unions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        return
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _union_members(first: ErrorDetails, problems: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """The problems of one value with the members of a union, one for each member."""
    return [
        problem
        for problem in islice(problems, MOST_READ)
        if problem["loc"][:-1] == first["loc"][:-1]
        and _UNION_MEMBER.fullmatch(str(*problem["loc"][-1:]))
        and problem["type"] in EXPECTED
    ]


def _with_count(error: InvalidInputError, others: int) -> InvalidInputError:
    if others > 0:
        more = f"(and {others} more problem{'s' if others > 1 else ''})"
        error.message = f"{_without_full_stop(error.message)} {more}."
    return error


def _without_full_stop(text: str) -> str:
    return text.rstrip(". ")


def format_value(value: Any) -> str:
    """A value as text for messages.

    Examples:
        >>> format_value(True), format_value(None), format_value("maybe")
        ('true', 'nothing', "'maybe'")
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value).removesuffix(".0") if isinstance(value, float) else _SHORT.repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."
