"""Files of predicted uncertainties and of the outputs of members, as `validate` reads them."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from lifelong.commands.cycles.inputs import name_file_in_errors
from lifelong_core.values.arrays import as_logits, softmax
from lifelong_core.values.csv_files import separator_of, with_decimal_point
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.mistaken_probabilities import expect_logits, look_like_probabilities
from lifelong_core.values.npz import UNREADABLE, read_npz

COLUMNS = ("uncertainty", "uncertainties")
"""Names of the column of a CSV file with several columns"""
NPY = b"\x93NUMPY"
ZIP = b"PK"


def read_uncertainties(path: Path) -> Any:
    """The uncertainties in a file, one for each sample: npy, or CSV.

    A CSV file has one number a line, or several columns and a header that names one of them `uncertainty`.

    Raises:
        InvalidInputError: no such file, or not numbers.
    """
    content = _content(path)
    with name_file_in_errors(path, InvalidInputError):
        if content.startswith(NPY):
            return _read_npy(content, "uncertainties")
        return _read_csv(content)


def read_member(path: Path) -> Any:
    """Probabilities (N, C) of one member: npz with logits or probabilities, or npy with either.

    Raises:
        InvalidInputError: no such file, or neither of them.
    """
    content = _content(path)
    with name_file_in_errors(path, InvalidInputError):
        if content.startswith(NPY):
            return _as_member(_read_npy(content, "members"))
        if not content.startswith(ZIP):
            raise InvalidInputError("expected an npz or npy file.", field="members")
        found = read_npz(content, (), ("logits", "probabilities"), field="members")
        if len(found) != 1:
            held = "both" if found else "neither"
            raise InvalidInputError(
                f"expected the array logits or probabilities, got {held}.", field="members"
            )
        ((name, array),) = found.items()
        return array if name == "probabilities" else as_probabilities_of(array, "members")


def as_probabilities_of(logits: Any, field: str) -> Any:
    """The softmax of finite logits.

    Raises:
        InvalidInputError: another shape, a value that is not finite, or probabilities.
    """
    found = as_logits(logits, field=field)
    expect_logits(found, field=field)
    return softmax(found.astype(np.float64))


def _as_member(array: Any) -> Any:
    """Probabilities as they are, and the softmax of logits."""
    checked = as_logits(array, field="members")
    is_probabilities = checked.shape == array.shape and look_like_probabilities(checked)
    return array if is_probabilities else as_probabilities_of(checked, "members")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read ({error.strerror}).") from error


def _read_npy(content: bytes, field: str) -> Any:
    try:
        return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except UNREADABLE as error:
        raise InvalidInputError(
            "expected a npy file that is whole, without pickled objects.", field=field
        ) from error


def _read_csv(content: bytes) -> Any:
    try:
        text = content.decode("utf-8-sig")
        separator = separator_of(text.partition("\n")[0])
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInputError("expected a CSV or npy file.", field="uncertainties") from error
    header = [name.strip().lower() for name in rows[0]] if rows else []
    named = [place for place, name in enumerate(header) if name in COLUMNS]
    if len(named) > 1 or (not named and len(header) != 1):
        raise InvalidInputError(
            "expected one number a line, or one column with the name uncertainty.", field="uncertainties"
        )
    column = named[0] if named else 0
    values: list[float] = []
    for line, row in enumerate(rows[1:] if named else rows, start=2 if named else 1):
        try:
            values.append(float(with_decimal_point(row[column], separator)))
        except (ValueError, IndexError) as error:
            raise InvalidInputError(
                f"expected a number in row {line}, got {','.join(row)[:80]!r}.", field="uncertainties"
            ) from error
    return np.array(values)
