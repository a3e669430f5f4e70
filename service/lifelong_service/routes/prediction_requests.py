"""Reads requests of `/v1/predict` and `/v1/logits`: parameters in query or headers; logits as JSON or npy file."""

import math
import tokenize
from array import array
from io import BytesIO
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import WithJsonSchema
from starlette.requests import Request

from lifelong_core.values.arrays import (
    Logits,
    as_logits,
)
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError
from lifelong_core.values.names import DEFAULT_ENVIRONMENT, check_name
from lifelong_service.bodies.json_documents import parse_document
from lifelong_service.bodies.parameters import check_group, check_parameters, check_text
from lifelong_service.prediction.requests import LogitsRequest, RequestContext

HEADERS = {
    "environment": "X-Lifelong-Environment",
    "group": "X-Lifelong-Group",
    "request_id": "X-Lifelong-Request-Id",
    "model": "X-Lifelong-Model",
}
"""Query parameters and their headers; the query takes precedence."""
MAXIMUM_REQUEST_ID_LENGTH = 128
_PREFIX = b"x-lifelong-"
_NPY_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_ROWS = {
    "type": "array",
    "minItems": 1,
    "items": {"anyOf": [{"type": "array", "minItems": 1, "items": {"type": "number"}}, {"type": "number"}]},
    "description": "Shape (N, C): a row per sample, a column per class; before any softmax. One logit z per sample,"
    " (N, 1) or (N,), is read as the logits (0, z) of two classes.",
}


def parameters_of(request: Request) -> dict[str, str]:
    """Return the parameters of a request.

    Raises:
        InvalidInputError: a parameter is unknown (a misspelt `environment` must not become `default`), or a header
            is not ASCII.
    """
    found = {name: _value_of(request, header) for name, header in _given_headers(request).items()}
    if request.scope["query_string"]:
        check_parameters(request.query_params, tuple(HEADERS))
        found |= request.query_params
    return found


def _given_headers(request: Request) -> dict[str, str]:
    """The headers of `HEADERS` that a request has, by the names of their parameters."""
    given = {name for name, _ in request.headers.raw if name.startswith(_PREFIX)}
    return (
        {name: header for name, header in HEADERS.items() if header.lower().encode() in given}
        if given
        else {}
    )


def _value_of(request: Request, header: str) -> str:
    value = request.headers[header]
    if not value.isascii():
        # Clients send UTF-8 or Latin-1: one patient would get two hashes, and an erasure would miss one.
        raise InvalidInputError(
            "expected ASCII: which characters other bytes stand for is not said.",
            field=header,
            hint="Give it in the query instead, percent-encoded as UTF-8.",
        )
    return value


def request_context(given: dict[str, str]) -> RequestContext:
    """Return the context of a prediction, with validated parameters.

    Raises:
        InvalidInputError: a value has other characters or is too long; the message names the parameter.
    """
    return RequestContext(
        model=given.get("model"),
        environment=check_name(given.get("environment", DEFAULT_ENVIRONMENT), field="environment"),
        group=check_group(given.get("group"), field="group"),
        request_id=check_text(given.get("request_id"), field="request_id", maximum=MAXIMUM_REQUEST_ID_LENGTH),
    )


class LogitsBody(RequestDocument):
    """Logits of shape (N, C), one row per sample; `groups` holds one key (or null) per row."""

    logits: Annotated[Any, WithJsonSchema(_ROWS)]
    groups: list[str | None] | None = None
    environment: str | None = None
    model: str | None = None
    request_id: str | None = None
    group: str | None = None


def read_json_request(body: bytes, parameters: dict[str, str], *, maximum_rows: int) -> LogitsRequest:
    """Return the request in a JSON body, whose parameters take precedence over those of query and headers.

    Raises:
        InvalidInputError: the body does not fit; the message names the field.
        PayloadTooLargeError: too many rows.
    """
    document = parse_document(body, LogitsBody)
    named = document.model_dump(include={"environment", "model", "request_id", "group"}, exclude_none=True)
    logits = _checked(_json_array(document.logits), maximum_rows)
    groups = document.groups
    if groups is not None and len(groups) != len(logits):
        raise InvalidInputError(
            f"expected {len(logits)} groups, one per row, got {len(groups)}.",
            field="groups",
            hint="Give null for rows without a group.",
        )
    keys = None
    if groups is not None:
        keys = tuple(check_group(group, field=f"groups.{index}") for index, group in enumerate(groups))
    return LogitsRequest(request_context(parameters | named), logits, keys)


def read_npy_request(body: bytes, parameters: dict[str, str], *, maximum_rows: int) -> LogitsRequest:
    """Return the request in the bytes of an npy file.

    Raises:
        InvalidInputError: not an npy file of numbers, or it is truncated.
        PayloadTooLargeError: too many rows.
    """
    return LogitsRequest(request_context(parameters), _checked(_npy_array(body), maximum_rows))


def _json_array(values: Any) -> NDArray[np.float64]:
    """The array in a list or nested lists. With a text among them, numpy would allocate its length for each number."""
    numbers = array("d")
    try:
        if isinstance(values, list) and values and isinstance(values[0], int | float):
            numbers.fromlist(values)
            return np.frombuffer(numbers)
        lengths = set(map(len, values))
        for row in values:
            numbers.fromlist(row)
    except (TypeError, OverflowError) as error:
        raise InvalidInputError(
            "expected rows of finite numbers.",
            field="logits",
            hint="Send one row per sample and one column per class.",
        ) from error
    if len(lengths) > 1:
        raise InvalidInputError("expected rows of equal length.", field="logits")
    return np.frombuffer(numbers).reshape(len(values), *lengths) if lengths else np.empty((0, 2))


def _checked(values: NDArray[Any], maximum_rows: int) -> Logits:
    try:
        logits = as_logits(values)
    except (OverflowError, RecursionError) as error:
        raise InvalidInputError("expected rows of finite numbers.", field="logits") from error
    if not 0 < len(logits) <= maximum_rows:
        kind = PayloadTooLargeError if len(logits) else InvalidInputError
        raise kind(
            f"expected 1 to {maximum_rows} rows, got {len(logits)}.",
            field="logits",
            hint="Send fewer rows per call, or raise LIFELONG_MAXIMUM_LOGITS_ROWS." if len(logits) else None,
        )
    return logits


def _npy_array(body: bytes) -> NDArray[Any]:
    """Return the array in an npy file. `numpy.load` would allocate any size in the header."""
    file = BytesIO(body)
    try:
        shape, fortran, dtype = _NPY_HEADERS[np.lib.format.read_magic(file)](file)
    except (
        ValueError,
        TypeError,
        KeyError,
        SyntaxError,
        tokenize.TokenError,
        RecursionError,
        MemoryError,
    ) as error:
        raise _not_npy("expected an npy file") from error
    if dtype.kind not in "biuf":
        raise _not_npy(f"expected an array of numbers, got {dtype}")
    content = body[file.tell() :]
    if len(content) != math.prod(shape) * dtype.itemsize or min(shape, default=1) < 0:
        raise _not_npy(f"the file holds {len(content)} bytes for an array of shape {shape} and type {dtype}")
    try:
        return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")
    except (ValueError, OverflowError) as error:  # e.g. zero rows with a number of classes that overflows
        raise _not_npy(f"there is no array of shape {shape}") from error


def _not_npy(what: str) -> InvalidInputError:
    return InvalidInputError(f"{what}.", field="logits", hint="Write it with numpy.save(file, logits).")
