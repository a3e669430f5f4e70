"""Groups of cases (patient, study): from a CSV file, or from the names of the files."""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from lifelong_core.store.lifecycle.privacy import number_groups
from lifelong_core.values.arrays import Integers, as_groups
from lifelong_core.values.class_labels import composed, is_missing
from lifelong_core.values.csv_files import read_csv
from lifelong_core.values.errors import InvalidInputError


def groups_from_csv(table: Path, names: Sequence[str]) -> Integers:
    """The group of each file by a table with the columns `file` and `group`; shape (N,).

    Groups become numbers: only which files belong together is of use, and no patient's key leaves the machine.

    Args:
        table: the CSV file; `file` is `class/file`, or the file's name alone where that is unique. A file without a
            group is its own.
        names: `class/file` of each file.

    Raises:
        InvalidInputError: the table cannot be read, lacks a column or a file, or gives a file two groups.
    """
    group_of: dict[str, str] = {}
    for row in read_csv(table, required=("file", "group"), field="--groups"):
        file, group = row["file"].replace("\\", "/").removeprefix("./"), row["group"].strip()
        if group_of.setdefault(file, group) != group:
            raise InvalidInputError(
                f"{table}: {file} has two groups.",
                field="--groups",
                hint="Name files of the same name by class/file.",
            )
    names = [composed(name) for name in names]
    short = [PurePosixPath(name).name for name in names]
    ambiguous = {name for name in short if name in group_of and short.count(name) > 1}
    if ambiguous:
        raise InvalidInputError(
            f"{table}: several classes have a file {min(ambiguous)}.",
            field="--groups",
            hint="Name it by class/file.",
        )
    found = [group_of.get(name, group_of.get(own)) for name, own in zip(names, short, strict=True)]
    missing = [name for name, group in zip(names, found, strict=True) if group is None]
    if missing:
        raise InvalidInputError(
            f"{table} has no group for {len(missing)} of {len(names)} files, e.g. {missing[0]}.",
            field="--groups",
            hint="Add a row for every file; the cell is empty where a file has no group.",
        )
    return _numbered([group for group in found if group is not None])


def groups_from_pattern(pattern: str, names: Sequence[str]) -> Integers:
    """The group of each file by a regular expression with a part `(?P<group>...)`; shape (N,), numbers.

    Args:
        pattern: must match the whole name of the file, without its folder.
        names: `class/file` of each file.

    Raises:
        InvalidInputError: it is no such expression, or does not match a file.
    """
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise InvalidInputError(
            f"{pattern!r} is no regular expression: {error}.", field="--group-pattern"
        ) from error
    if "group" not in expression.groupindex:
        raise InvalidInputError(
            f"{pattern!r} has no part named group.",
            field="--group-pattern",
            hint="Write it like '(?P<group>[^_]+)_.*', where patient7_001.png gives patient7.",
        )
    matches = [expression.fullmatch(PurePosixPath(name).name) for name in names]
    missing = [
        name
        for name, match in zip(names, matches, strict=True)
        if match is None or is_missing(match["group"] or "")
    ]
    if missing:
        raise InvalidInputError(
            f"{pattern!r} does not match {len(missing)} of {len(names)} files, e.g. {missing[0]}.",
            field="--group-pattern",
            hint="It must match the whole name of the file, its ending included.",
        )
    return _numbered([match["group"] for match in matches if match])


def _numbered(groups: Sequence[str]) -> Integers:
    numbers = number_groups(as_groups(np.array(groups, dtype=np.str_), samples=len(groups)))
    if numbers is None:
        raise TypeError("groups that are there have numbers")
    return numbers
