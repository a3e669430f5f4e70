"""The body of /v1/logits: JSON, or the bytes of an npy file."""

import math
import tokenize
from array import array
from io import BytesIO
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import WithJsonSchema

from lifelong_core.values.arrays import (
    Logits,
    as_logits,
    expect_logits,
    look_like_probabilities,
    may_sum_to_one_by_chance,
)
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError
from lifelong_service.http.bodies import parse_document
from lifelong_service.http.parameters import check_group, request_context
from lifelong_service.prediction.requests import LogitsRequest

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


MOST_BY_CHANCE = 4
"""Different rows in succession that may look like probabilities though they are logits on a grid: of two classes, of
deviation 1 to 2 and on steps of 0.1 or 1/16, 0.2 to 1.2 % of the rows do so."""


class ProbabilityWatch:
    """Refuses probabilities; a few logits on a grid (quantised or rounded) that sum to 1 by chance are answered."""

    def __init__(self) -> None:
        self._rows: dict[str, set[bytes]] = {}

    def check(self, logits: Logits, client: str) -> None:
        """Make sure that the rows of a client are not, and do not go on to be, probabilities.

        Raises:
            InvalidInputError: every row looks like class probabilities, too exactly or too often for a chance.
        """
        if not look_like_probabilities(logits):
            self._rows.pop(client, None)
            return
        rows = self._rows.setdefault(client, set())
        if len(rows) <= MOST_BY_CHANCE:
            rows |= {row.tobytes() for row in logits[: MOST_BY_CHANCE + 1]}
        if max(len(rows), len(logits)) > MOST_BY_CHANCE or not may_sum_to_one_by_chance(logits):
            expect_logits(logits)


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
