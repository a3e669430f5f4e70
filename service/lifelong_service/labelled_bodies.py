"""Labelled logits in a request: JSON, the bytes of an npz file, or such a file in a multipart form."""

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, StringConstraints
from starlette.datastructures import UploadFile
from starlette.requests import Request

from lifelong_core.errors import InvalidInputError, PayloadTooLargeError
from lifelong_service.bodies import media_type
from lifelong_service.parameters import MAXIMUM_GROUP_LENGTH, check_fields
from lifelong_service.schemas.requests import ListOf, RequestDocument

NPZ_TYPES = ("application/x-npz", "application/octet-stream", "application/zip")
LABELLED_TYPES = ("application/json", *NPZ_TYPES, "multipart/form-data")

Group: TypeAlias = Annotated[str, StringConstraints(max_length=MAXIMUM_GROUP_LENGTH)]
"""As an array, all keys take as much memory as the longest."""

Labelled = TypeVar("Labelled")

_CORRUPT = (
    SyntaxError,
    tokenize.TokenError,
    struct.error,
    zlib.error,
    RuntimeError,
    OverflowError,
    MemoryError,
)
"""What zipfile and numpy raise beside ValueError: the headers of arrays are Python expressions, entries may be
encrypted, compressed in ways that nobody knows, or claim any size."""


class LabelledRows(RequestDocument):
    """Labelled logits: (N, C) raw outputs, N class indices, and perhaps N group keys (patients)."""

    logits: ListOf[ListOf[float]]
    labels: ListOf[int]
    groups: ListOf[Group] | None = None


@dataclass(frozen=True)
class LabelledBody:
    """What was sent."""

    content: bytes
    is_json: bool


def labelled_request_body(document: type[BaseModel], part: str) -> dict[str, Any]:
    """How the description of the API shows such a body.

    Args:
        document: what a JSON body holds; it has to be among the bodies of `lifelong_service.openapi`.
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


async def read_labelled(request: Request, part: str) -> LabelledBody:
    """The body; of a multipart form the part named so, or `file`.

    Raises:
        InvalidInputError: the form has other fields.
    """
    kind = media_type(request.headers)
    if kind != "multipart/form-data":
        return LabelledBody(await request.body(), kind == "application/json")
    async with request.form(max_files=1, max_fields=8) as form:
        check_fields(form, (part, "file"))
        parts = [value for value in form.values() if isinstance(value, UploadFile)]
        return LabelledBody(await parts[0].read() if parts else b"", is_json=False)


def unpacked(body: bytes, read: Callable[[bytes], Labelled], *, limit: int, field: str) -> Labelled:
    """What an npz file holds; nothing that the file claims is believed.

    Args:
        body: the file.
        read: what reads it, with InvalidInputError for arrays that do not fit.
        limit: how many bytes it may unpack to.
        field: how errors name the file.

    Raises:
        PayloadTooLargeError: it unpacks to more than the limit.
        InvalidInputError: it is corrupt, or an array does not fit.
    """
    try:
        _check_unpacked_size(body, limit, field)
        return read(body)
    except _CORRUPT as error:
        raise InvalidInputError(
            "the npz file is corrupt.",
            field=field,
            mend="Write it with numpy.savez(file, logits=..., labels=...).",
        ) from error


def _check_unpacked_size(body: bytes, limit: int, field: str) -> None:
    """A few kilobytes of npz can unpack to gigabytes; its directory says so beforehand."""
    try:
        with zipfile.ZipFile(BytesIO(body)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile:
        return  # the reader says better what is wrong
    if size > limit:
        raise PayloadTooLargeError(
            f"the npz file unpacks to {size} bytes, at most {limit} are taken.",
            field=field,
            mend="Send fewer samples, or raise LIFELONG_MAXIMUM_MODEL_BYTES.",
        )
