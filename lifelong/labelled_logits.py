"""Labelled logits from a file: npz, or CSV."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lifelong.case_groups import read_csv
from lifelong_core.deploy import LabeledLogits
from lifelong_core.errors import InvalidInputError
from lifelong_core.store.lifecycle.privacy import without_group_keys

SUFFIXES = (".npz", ".csv")


def read_labelled_logits(path: Path, class_names: Sequence[str]) -> LabeledLogits:
    """The calibration set in a file, with numbers in the place of group keys.

    Args:
        path: an npz file with the arrays `logits` (N, C), `labels` (N,) and perhaps `groups` (N,); or a CSV file with
            the column `label` (a class name, or its index from 0), a column for each class (`logit_0`, `logit_1`, ...,
            `logit_<class>` or `<class>`), and perhaps `group`.
        class_names: of the task.

    Raises:
        InvalidInputError: the file cannot be read, or does not fit the task; the message names the file.
    """
    try:
        if path.suffix.lower() == ".csv":
            labelled = _from_csv(path, class_names)
        else:
            labelled = LabeledLogits.from_bytes(path.read_bytes())
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read ({error.strerror}).", field="calibration") from error
    except InvalidInputError as error:
        message = error.message if str(path) in error.message else f"{path}: {error.message}"
        raise type(error)(message, field=error.field, hint=error.hint) from error
    return without_group_keys(labelled)


def _from_csv(path: Path, class_names: Sequence[str]) -> LabeledLogits:
    rows = read_csv(path, required=("label",), field="calibration")
    columns = _logit_columns(list(rows[0]), class_names)
    logits = np.empty((len(rows), len(class_names)))
    labels = np.empty(len(rows), dtype=np.int64)
    for index, row in enumerate(rows):
        labels[index] = _label(row["label"].strip(), class_names, row=index + 2)
        for k, column in enumerate(columns):
            try:
                logits[index, k] = float(row[column])
            except ValueError as error:
                raise InvalidInputError(
                    f"row {index + 2}: {row[column][:40]!r} is no number.", field=column
                ) from error
    groups = np.array([row["group"] for row in rows]) if "group" in rows[0] else None
    return LabeledLogits(logits.astype(np.float32), labels, groups)


def _logit_columns(columns: Sequence[str], class_names: Sequence[str]) -> list[str]:
    """The column of each class.

    Raises:
        InvalidInputError: there is none for a class, or there are columns of nothing known.
    """
    schemes = (
        [f"logit_{k}" for k in range(len(class_names))],
        [f"logit_{name}" for name in class_names],
        list(class_names),
    )
    found = next((scheme for scheme in schemes if set(scheme) <= set(columns)), None)
    if found is None:
        raise InvalidInputError(
            f"expected a column for each class ({', '.join(schemes[0])}, or named like the classes), got "
            f"{', '.join(columns)}.",
            field="logits",
            hint=f"The first line is e.g. label,{','.join(schemes[0])}.",
        )
    other = [name for name in columns if name not in (*found, "label", "group")]
    if other:
        raise InvalidInputError(
            f"there is no class for the column {other[0]!r}.",
            field=other[0][:80],
            hint="Leave out columns other than label, group and the logits.",
        )
    return found


def _label(text: str, class_names: Sequence[str], *, row: int) -> int:
    if text in class_names:
        return list(class_names).index(text)
    if text.isdecimal() and int(text) < len(class_names):
        return int(text)
    raise InvalidInputError(
        f"row {row}: {text[:40]!r} is no class.",
        field="label",
        hint=f"Classes are {', '.join(class_names)}, or their indices from 0.",
    )
