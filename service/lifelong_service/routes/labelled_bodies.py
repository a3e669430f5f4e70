"""Labelled logits in a request: JSON, the bytes of an npz file, or such a file in a multipart form."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, StringConstraints
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request

from lifelong_core.deploy.checks import LONGEST_CLASS_NAME
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.errors import PayloadTooLargeError
from lifelong_core.values.names import MAXIMUM_GROUP_LENGTH
from lifelong_service.bodies.limits import media_type
from lifelong_service.bodies.parameters import check_fields
from lifelong_service.bodies.parsing import parse_in_turn
from lifelong_service.guard.access import worker_of

NPZ_TYPES = ("application/x-npz", "application/octet-stream", "application/zip")
LABELLED_TYPES = (*NPZ_TYPES, "application/json", "multipart/form-data")

Group: TypeAlias = Annotated[str, StringConstraints(max_length=MAXIMUM_GROUP_LENGTH)]
"""Longest key in characters: in an array, all keys take as much memory as the longest."""

ClassName: TypeAlias = Annotated[str, StringConstraints(max_length=LONGEST_CLASS_NAME)]

Set = TypeVar("Set")

_CHARACTER_BYTES = 4
_NUMBER_AS_TEXT = 32
"""Characters of a number among texts in an array."""


class LabelledRows(RequestDocument):
    """Labelled logits: (N, C) raw outputs, or N for two classes, N labels, and optionally N group keys.

    Labels are class names, or indices unless a class has a number as its name.
    """

    logits: list[list[float]] | list[float]
    labels: list[int] | list[ClassName]
    groups: list[Group] | None = None


def labelled_request_body(document: type[BaseModel], part: str) -> dict[str, Any]:
    """Return the OpenAPI description of a body with labelled logits.

    Args:
        document: model of the JSON body, one of the bodies in `lifelong_service.openapi`.
        part: the part of a multipart form that holds the file.
    """
    binary = {"type": "string", "format": "binary"}
    return {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": f"#/components/schemas/{document.__name__}"}},
                **{kind: {"schema": binary} for kind in NPZ_TYPES},
                "multipart/form-data": {
                    "schema": {"type": "object", "properties": {part: binary}, "required": [part]}
                },
            },
        }
    }


def check_columns(columns: Mapping[str, Sequence[object] | None], maximum_bytes: int) -> None:
    """Check that the arrays of JSON columns fit into memory: all strings take as much as the longest.

    Args:
        columns: by the name of the field.
        maximum_bytes: limit of all columns together.

    Raises:
        PayloadTooLargeError: they do not.
    """
    total = 0
    for name, values in columns.items():
        longest = max((len(value) for value in values or () if isinstance(value, str)), default=0)
        total += len(values or ()) * max(_NUMBER_AS_TEXT, longest) * _CHARACTER_BYTES
        if total > maximum_bytes:
            raise PayloadTooLargeError(
                f"its texts take {total} bytes as an array, at most {maximum_bytes} are accepted.",
                field=name[:80],
                hint="Send shorter texts or fewer samples.",
            )


async def read_labelled(
    request: Request,
    part: str,
    *,
    model: str,
    from_json: Callable[[bytes, int, Sequence[str]], Set],
    from_npz: Callable[[bytes, int, Sequence[str]], Set],
) -> Set:
    """Return the labelled set in the body.

    Args:
        request: the request.
        part: the part of a multipart form that holds the npz file, unless that is named `file`.
        model: whose classes the labels are.
        from_json: reads a JSON body; its further arguments are the largest size of the arrays in bytes and the classes.
        from_npz: reads an npz file; its further arguments are the same.

    Raises:
        NotFoundError: there is no such model.
        InvalidInputError: the form has other fields, or the set does not fit.
    """
    worker = worker_of(request)
    maximum = worker.settings.maximum_labelled_bytes
    names = await run_in_threadpool(worker.store.models.class_names, model)
    content = await _content(request, part)
    if media_type(request.headers) == "application/json":
        return await parse_in_turn(lambda: from_json(content, maximum, names), len(content))

    def unpacked() -> Set:
        try:
            return from_npz(content, maximum, names)
        except PayloadTooLargeError as error:
            error.hint = "Send fewer samples, or raise LIFELONG_MAXIMUM_LABELLED_BYTES."
            raise

    return await parse_in_turn(unpacked, len(content))


async def _content(request: Request, part: str) -> bytes:
    if media_type(request.headers) != "multipart/form-data":
        return await request.body()
    async with request.form(max_files=1, max_fields=8) as form:
        check_fields(form, (part, "file"))
        parts = [value for value in form.values() if isinstance(value, UploadFile)]
        return await parts[0].read() if parts else b""
