"""Labelled logits from a file: npz, or CSV."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lifelong_core.deploy import LabeledLogits
from lifelong_core.store.lifecycle.privacy import without_group_keys
from lifelong_core.values.arrays import Logits, as_logits
from lifelong_core.values.class_labels import class_index, composed, describe_labels
from lifelong_core.values.csv_files import Table, read_csv
from lifelong_core.values.errors import InvalidInputError

SUFFIXES = (".npz", ".csv")


def read_labelled_logits(path: Path, class_names: Sequence[str]) -> LabeledLogits:
    """The calibration set in a file, with numbers in the place of group keys.

    Args:
        path: an npz file with the arrays `logits` (N, C), `labels` (N,) and perhaps `groups` (N,); or a CSV file with
            the column `label`, a column for each class (`logit_0`, `logit_1`, ..., `logit_<class>` or `<class>`; for
            two classes perhaps only `logit`), and perhaps `group`. A label is a class name, or its index from 0 unless
            a class has a number as its name.
        class_names: of the task.

    Raises:
        InvalidInputError: the file cannot be read, or does not fit the task; the message names the file.
    """
    try:
        if path.suffix.lower() == ".csv":
            labelled = labelled_table(path, class_names)
        else:
            labelled = LabeledLogits.from_bytes(path.read_bytes(), class_names=class_names)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read ({error.strerror}).", field="calibration") from error
    except InvalidInputError as error:
        message = error.message if str(path) in error.message else f"{path}: {error.message}"
        raise type(error)(message, field=error.field, hint=error.hint) from error
    return without_group_keys(labelled)


def read_logits_table(
    path: Path, class_names: Sequence[str] | None, *, field: str, times: str | None = None
) -> tuple[Table, Logits]:
    """The rows of a CSV file, and their logits (N, C).

    Args:
        path: of the file; its columns are those of the logits and perhaps `label` and `group`.
        class_names: None: those of the columns, in their order.
        field: of errors about the file as a whole.
        times: a further column that may be there.

    Raises:
        InvalidInputError: it cannot be read, or its columns do not fit.
    """
    rows = read_csv(path, required=(), field=field)
    names = class_names_of(rows) if class_names is None else class_names
    columns = [name for name in rows.columns if name != times]
    return rows, as_logits(rows.numbers(_logit_columns(columns, names)), classes=len(names))


def class_names_of(rows: Table) -> list[str]:
    """The classes that the columns of the logits name, `logit_<class>` or `<class>`; for `logit` alone, 0 and 1."""
    names = [name.removeprefix("logit_") for name in rows.columns if name not in ("label", "group")]
    return ["0", "1"] if names == ["logit"] else names


def labelled_table(path: Path, class_names: Sequence[str] | None) -> LabeledLogits:
    """The calibration set in a CSV file, see `read_labelled_logits`."""
    rows, logits = read_logits_table(path, class_names, field="calibration")
    if "label" not in rows.columns:
        raise InvalidInputError(
            f"it lacks the column 'label'; it has {', '.join(rows.columns)}.", field="calibration"
        )
    names = class_names_of(rows) if class_names is None else class_names
    labels = [_label(row["label"], names, row=index) for index, row in enumerate(rows, start=2)]
    groups = np.array([row["group"] for row in rows]) if "group" in rows.columns else None
    return LabeledLogits(logits, np.array(labels), groups)


def _logit_columns(columns: Sequence[str], class_names: Sequence[str]) -> list[str]:
    """The column of each class; for two classes perhaps one column, that of the second.

    Raises:
        InvalidInputError: there is none for a class, or there are columns of nothing known.
    """
    names = [composed(name) for name in class_names]
    schemes = [
        [f"logit_{k}" for k in range(len(names))],
        [f"logit_{name}" for name in names],
        names,
        *([["logit"], ["logit_1"], [f"logit_{names[1]}"]] if len(names) == 2 else []),
    ]
    found = next((scheme for scheme in schemes if set(scheme) <= set(columns)), None)
    if found is None:
        raise InvalidInputError(
            f"expected a column for each class ({', '.join(schemes[0])}, or named like the classes), got "
            f"{', '.join(columns)}.",
            field="logits",
            hint=f"The first line is e.g. label,{','.join(schemes[0])}"
            + (", or label,logit with the logit of the second class." if len(names) == 2 else "."),
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
    index = class_index(text, class_names)
    if index is None:
        raise InvalidInputError(
            f"row {row}: {text[:40]!r} is no class.", field="label", hint=describe_labels(class_names)
        )
    return index
