"""Rows of a CSV file of labels: one row for each line, so that a stray quote spoils no other row."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO
from uuid import UUID

from lifelong_core.values.csv_files import SEPARATOR_LINE, separator_of, with_decimal_point
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.names import check_name

COLUMNS = ("prediction_id", "request_id", "row", "model", "environment", "label", "source", "propensity")
"""Columns of a label, named as in `/v1/feedback`."""
IGNORED_COLUMNS = ("decision", "expected_cost", "group", "logged_at")
"""Columns that labelling plans also have."""
_HINT = (
    "The first line names the columns: label, prediction_id or request_id, and perhaps row, model, environment, source,"
    f" propensity; {', '.join(IGNORED_COLUMNS)} are ignored."
)
LONGEST_REQUEST_ID, LONGEST_SOURCE = 128, 64

LONGEST_LINE = 4000
"""Largest number of bytes of a line; the fields of a label together are far shorter."""


@dataclass(frozen=True)
class LabelRow:
    """A label as an object of `/v1/feedback`, and the number of its line."""

    line: int
    document: dict[str, Any]


@dataclass(frozen=True)
class RejectedRow:
    """A row that was not stored: the number of its line, a code for the reason, and the reason."""

    line: int
    reason: str
    message: str
    prediction_id: str = ""
    request_id: str = ""


@dataclass(frozen=True)
class UnlabelledRow:
    """A row without a label, as in a labelling plan that is filled in by and by."""

    line: int


Row = LabelRow | RejectedRow | UnlabelledRow


@dataclass(frozen=True)
class _Header:
    """Names of the columns, "" where a name is empty, and the separator."""

    names: tuple[str, ...]
    separator: str


def read_rows(file: BinaryIO, *, field: str = "FILE", source: str = "") -> Iterator[Row]:
    """Yield the rows of a CSV file in UTF-8, one at a time; empty lines are left out.

    The separator is a comma, a semicolon or a tab. With a semicolon or a tab, a propensity may have a decimal comma.

    Args:
        file: at its start.
        field: of errors about the file as a whole.
        source: of labels without one.

    Raises:
        InvalidInputError: the file is empty or not UTF-8, or its header lacks a column or has an unknown one.
    """
    lines = read_lines(file)
    header = _header(lines, field)
    for number, line in lines:
        if line is not None and not line.strip():
            continue
        try:
            cells = _cells(line, header)
        except ValueError as error:
            yield RejectedRow(number, "malformed", str(error))
            continue
        if any(cells.values()):
            yield _row(number, cells, header, source)


def _header(lines: Iterator[tuple[int, bytes | None]], field: str) -> _Header:
    """Read lines up to the header, the first one that is not empty."""
    for _, line in lines:
        try:
            text = "" if line is None else line.decode("utf-8-sig").strip(" \r")
        except UnicodeDecodeError as error:
            raise InvalidInputError(
                "the file is not UTF-8.", field=field, hint="Save it as CSV in UTF-8."
            ) from error
        if line is None:
            break
        if text and not SEPARATOR_LINE.fullmatch(text):
            return _parse_header(text, field)
    raise InvalidInputError("the file has no header.", field=field, hint=_HINT)


def _parse_header(text: str, field: str) -> _Header:
    separator = separator_of(text)
    try:
        cells = _split(text, separator)
    except ValueError as error:
        raise InvalidInputError(f"the header is {error}.", field=field, hint=_HINT) from error
    names = tuple(re.sub(r"[\s-]+", "_", cell.strip()).lower() for cell in cells)
    unknown = [name for name in names if name and name not in (*COLUMNS, *IGNORED_COLUMNS)]
    if unknown:
        raise InvalidInputError(f"there is no column {unknown[0][:80]!r}.", field=field, hint=_HINT)
    twice = [name for name in names if name and names.count(name) > 1]
    if twice:
        raise InvalidInputError(f"two columns have the name {twice[0]!r}.", field=field, hint=_HINT)
    if "label" not in names:
        raise InvalidInputError("the column 'label' is missing.", field=field, hint=_HINT)
    if "prediction_id" not in names and "request_id" not in names:
        raise InvalidInputError(
            "the columns 'prediction_id' and 'request_id' are missing.", field=field, hint=_HINT
        )
    return _Header(names, separator)


def _split(text: str, separator: str) -> list[str]:
    """The cells of one line.

    Raises:
        ValueError: a quote is wrong.
    """
    try:
        return next(csv.reader([text], delimiter=separator, strict=True, skipinitialspace=True))
    except csv.Error as error:
        raise ValueError(f"not CSV ({error})") from error


def _cells(line: bytes | None, header: _Header) -> dict[str, str]:
    """The cells of a line by column, without spaces around them.

    Raises:
        ValueError: the line is not one of this file; the message says why.
    """
    if line is None:
        raise ValueError(f"longer than {LONGEST_LINE:,} bytes")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8") from error
    if "\0" in text:
        raise ValueError("holds the character U+0000")
    values = _split(text, header.separator)
    surplus = values[len(header.names) :]
    if len(values) < len(header.names) or any(value.strip() for value in surplus):
        raise ValueError(f"has {len(values)} cells, the header has {len(header.names)}")
    cells = {name: value.strip() for name, value in zip(header.names, values, strict=False)}
    return {name: value for name, value in cells.items() if name in COLUMNS}


def _row(number: int, cells: dict[str, str], header: _Header, source: str) -> Row:
    if not cells["label"]:
        return UnlabelledRow(number)
    ids = {name: cells.get(name, "")[:LONGEST_REQUEST_ID] for name in ("prediction_id", "request_id")}
    try:
        return LabelRow(number, _document(cells, header, source))
    except InvalidInputError as error:
        return RejectedRow(number, "malformed", str(error), **ids)


def _document(cells: dict[str, str], header: _Header, source: str) -> dict[str, Any]:
    """The label as an object of `/v1/feedback`.

    Raises:
        InvalidInputError: a cell does not fit its column.
    """
    given: dict[str, Any] = {name: value for name, value in cells.items() if value}
    if ("prediction_id" in given) == ("request_id" in given):
        raise InvalidInputError("expected either prediction_id or request_id.", field="prediction_id")
    if "prediction_id" in given:
        given["prediction_id"] = _uuid(given["prediction_id"])
    if "environment" in given:
        check_name(given["environment"], field="environment")
    if "row" in given:
        given["row"] = _index(given["row"])
    if "propensity" in given:
        given["propensity"] = _propensity(given["propensity"], header.separator)
    if source and "source" not in given:
        given["source"] = source
    for name, longest in (("request_id", LONGEST_REQUEST_ID), ("source", LONGEST_SOURCE)):
        if len(given.get(name, "")) > longest:
            raise InvalidInputError(f"expected at most {longest} characters.", field=name)
    return given


def _uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError as error:
        raise InvalidInputError(f"{text[:80]!r} is not a UUID.", field="prediction_id") from error


def _index(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise InvalidInputError(f"expected an index from 0, got {text[:80]!r}.", field="row")
    return int(text)


def _propensity(text: str, separator: str) -> float:
    try:
        value = float(with_decimal_point(text, separator))
    except ValueError:
        value = float("nan")
    if not 0 < value <= 1:
        raise InvalidInputError(f"expected a probability in (0, 1], got {text[:80]!r}.", field="propensity")
    return value


def read_lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yield the number of each line, from 1, and its bytes without its end; None: it is longer than LONGEST_LINE."""
    number = 0
    while line := file.readline(LONGEST_LINE + 2):
        number += 1
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        is_too_long = len(content) > LONGEST_LINE
        while is_too_long and line and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE)
        yield number, None if is_too_long else content
