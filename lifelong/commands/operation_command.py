"""Commands of operations: arguments and options follow from the fields of the call, the help from its texts."""

import json
from collections.abc import Callable, Mapping, Sequence
from inspect import cleandoc
from typing import Any, Literal, get_args, get_origin

import annotated_types
import click
from pydantic.fields import FieldInfo

from lifelong.commands import common
from lifelong.commands.connection import connect
from lifelong.commands.tables import print_rows
from lifelong.printing import echo
from lifelong_core.entities.entity import document_of
from lifelong_core.operations.operation import LARGEST, Answer, Call
from lifelong_core.values.names import Name

_LEGAL_NAME = get_args(Name)[1]


def operation_command(
    call: type[Call[Answer]],
    name: str,
    *,
    text: Callable[[Answer, Any], str] | None = None,
    rows: Callable[[Answer], Sequence[Mapping[str, Any]]] | None = None,
    empty: str = "",
    below: str | None = None,
    flags: Mapping[str, str] | None = None,
    metavars: Mapping[str, str] | None = None,
    kinds: Mapping[str, click.ParamType] | None = None,
    help_text: str | None = None,
    is_position: Sequence[str] = (),
    examples: Sequence[str] = (),
) -> click.Command:
    """Return the command of an operation; with `--json` it prints the answer as a document.

    Fields in the path of the operation are arguments; the others are options.

    Args:
        call: the input of the operation.
        name: of the command.
        text: the answer in words; or
        rows: the answer as rows of a table, which `--json` prints, too.
        empty: what is printed if there is no row.
        below: the last column of the table, a longer text.
        flags: names of options that differ from their field.
        metavars: names of values in the help.
        kinds: types of options that the field does not say.
        help_text: the help, if it is not the description of the operation.
        is_position: further fields that are arguments.
        examples: command lines for the help.
    """
    operation = call.operation
    flags, metavars, kinds = flags or {}, metavars or {}, kinds or {}

    def run(*, as_json: bool, **given: Any) -> None:
        chosen = {name: value for name, value in given.items() if value is not None and value != ()}
        filled = call.read(chosen)
        with connect() as connection:
            answer = connection.send(filled)
        if rows is not None:
            print_rows(rows(answer), as_json=as_json, empty=empty, below=below)
        elif as_json:
            echo(json.dumps(document_of(answer, operation.answer)))
        elif text is not None:
            echo(text(answer, filled))

    parameters: list[click.Parameter] = [
        _argument(name, call.model_fields[name], metavars.get(name))
        for name in (*operation.path_fields, *is_position)
    ]
    parameters += [
        _option(name, call.model_fields[name], flags.get(name), metavars.get(name), kinds.get(name))
        for name in operation.other_fields
        if name not in is_position
    ]
    parameters.append(click.Option(["--json", "as_json"], is_flag=True, help=common.JSON_HELP))
    description = cleandoc(help_text or operation.description)
    if examples:
        description += "\n\n\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)
    return click.Command(name, callback=run, params=parameters, help=description)


def _argument(name: str, field: FieldInfo, metavar: str | None) -> click.Argument:
    return click.Argument([name], type=_type(field.annotation, field.metadata), metavar=metavar)


def _option(
    name: str, field: FieldInfo, flag: str | None, metavar: str | None, kind: click.ParamType | None
) -> click.Option:
    words = [flag or f"--{name.replace('_', '-')}", name]
    if field.annotation is bool:
        return click.Option(words, is_flag=True, default=None, help=field.description)
    several = get_origin(_without_none(field.annotation)) in (list, set, tuple)
    return click.Option(
        words,
        type=kind or _type(field.annotation, field.metadata),
        multiple=several,
        required=field.is_required(),
        help=field.description,
        metavar=metavar,
    )


def _without_none(annotation: Any) -> Any:
    parts = [part for part in get_args(annotation) if part is not type(None)]
    return parts[0] if type(None) in get_args(annotation) else annotation


def _type(annotation: Any, metadata: Sequence[Any]) -> Any:
    """The parameter type of a field: its range, its choices, or its plain type."""
    kind, limits = _without_none(annotation), list(metadata)
    while hasattr(kind, "__metadata__"):
        limits += kind.__metadata__
        kind = get_args(kind)[0]
    limits += [limit for item in limits if isinstance(item, FieldInfo) for limit in item.metadata]
    if _LEGAL_NAME in limits:
        return common.Name()
    if get_origin(kind) in (list, set, tuple):
        return _type(get_args(kind)[0], ())
    if get_origin(kind) is Literal:
        return click.Choice([str(choice) for choice in get_args(kind)])
    if kind in (int, float):
        least = _limit(limits, annotated_types.Ge, "ge")
        most = _limit(limits, annotated_types.Le, "le")
        if least is not None or most is not None:
            return (click.IntRange if kind is int else click.FloatRange)(least, most)
    return kind


def _limit(limits: Sequence[Any], kind: type, name: str) -> Any:
    limit = next((getattr(item, name) for item in limits if isinstance(item, kind)), None)
    return None if limit == LARGEST else limit
