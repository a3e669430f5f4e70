"""Reads measured transfers that were published as a folder of `transfer_*.npz` and `tasks_*.csv`.

The layout is that of the outcomes of Godau et al. (task-fingerprinting, 2024): arrays by scenario, measure,
repetition, source and target, and one row of meta-data for each task.
"""

import csv
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lifelong_core.develop.knowledge.assembly import make_trainings
from lifelong_core.develop.knowledge.entry import SCENARIOS, Scenario, TaskCard, TransferOutcomes
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.values.arrays import Floats
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.npz import DAMAGED_HINT, read_npz

TargetSize: TypeAlias = Literal["shrunk", "full"]
"""Were large targets reduced to `SHRUNK_SAMPLES` images before training?"""
SHRUNK_SAMPLES = 800

_SCENARIOS: Mapping[str, Scenario] = {
    "arch": "architecture",
    "pretrain": "pretraining",
    "augmentation": "augmentation",
    "multi_task": "co_training",
}
"""Names of the scenarios in the files."""
_FULL_SCENARIOS = ("arch", "multi_task")
"""Scenarios of `outcomes_full`."""
_AXES: Mapping[str, tuple[str, ...]] = {
    "outcomes": ("scenarios", "measures", "repetitions", "sources", "targets"),
    "baseline": ("measures", "repetitions", "targets"),
    "distances": ("methods", "sources", "targets"),
}
_SUFFIX: Mapping[TargetSize, str] = {"shrunk": "", "full": "_full"}
_MAXIMUM_BYTES = 2**30
_MISSING = ("", "nan", "none", "null")
"""Cells of the CSV without a value, in lower case."""

_Row = Mapping[str, str]


@dataclass(frozen=True)
class _File:
    """Arrays of one file, and the names along their axes."""

    arrays: Mapping[str, Floats]
    names: Mapping[str, tuple[str, ...]]


def read_transfer_folder(folder: Path | str, *, targets: TargetSize = "shrunk") -> TransferOutcomes:
    """Outcomes of all `transfer_*.npz` of the folder, with the cards of all `tasks_*.csv`.

    Several files are merged; where two hold a value of the same pair, the first file (by name) counts. Names of
    tasks become lower case, and characters that no name can have become "-". Distances that are not finite
    count as not known. Arrays but `tasks`, `scenarios`, `measures` and `outcomes` may be missing, as may
    columns but `task`, `num_classes` and `num_samples`. Fewer sources or targets than tasks are named by arrays
    `sources` and `targets`.

    Args:
        folder: with the files.
        targets: "full": outcomes with all images of the target, which exist for architecture and co_training.

    Raises:
        InvalidInputError: a file is missing or damaged, an array has another shape, a scenario is not known, or
            a task has no row, or a row without classes or samples.
    """
    rows = _read_rows(Path(folder))
    files = [_read_file(file, targets) for file in _find(Path(folder), "transfer_*.npz")]
    names = {axis: _unique(name for file in files for name in file.names[axis]) for axis in files[0].names}
    scenarios: tuple[Scenario, ...] = tuple(
        scenario for scenario in SCENARIOS if names["scenarios"].count(scenario)
    )
    names["scenarios"] = scenarios
    names["sources"] = names["targets"] = names["tasks"]
    return TransferOutcomes(
        cards=tuple(_card(task, rows) for task in names["tasks"]),
        scenarios=scenarios,
        measures=names["measures"],
        outcomes=_merge(files, "outcomes", names),
        baseline=_merge(files, "baseline", names),
        methods=names["methods"],
        distances=_merge(files, "distances", names),
    )


def read_splits(folder: Path | str) -> dict[str, str]:
    """Split of each task of the folder that has one, such as development or validation.

    Raises:
        InvalidInputError: there is no `tasks_*.csv`, or it cannot be read.
    """
    return {task: row["split"] for task, row in _read_rows(Path(folder)).items() if "split" in row}


def read_knowledge_folder(folder: Path | str) -> KnowledgeBase:
    """The folder as a knowledge base: one entry for each task, with the trainings of shrunk and of full targets.

    Its `outcomes()` are those of `read_transfer_folder`: for each target, those of its shrunk form are more.

    Raises:
        InvalidInputError: as `read_transfer_folder`.
    """
    rows = _read_rows(Path(folder))
    shrunk, full = read_transfer_folder(folder), read_transfer_folder(folder, targets="full")
    samples = {
        task: SHRUNK_SAMPLES
        for task, row in rows.items()
        if row.get("shrinkable", "").lower() in ("1", "1.0", "true")
    }
    entries = KnowledgeBase.from_outcomes(shrunk, samples).entries
    return KnowledgeBase.from_entries(
        entry.model_copy(update={"trainings": (*entry.trainings, *make_trainings(full, target, None))})
        if task in samples
        else entry
        for target, (task, entry) in enumerate(entries.items())
    )


def _find(folder: Path, pattern: str) -> list[Path]:
    if found := sorted(folder.glob(pattern)):
        return found
    raise InvalidInputError(
        f"no file {pattern} is in {folder}.",
        field="folder",
        hint="Name the folder that holds transfer_*.npz and tasks_*.csv.",
    )


def _read_file(file: Path, targets: TargetSize) -> _File:
    suffix = _SUFFIX[targets]
    held = read_npz(
        file.read_bytes(),
        ("tasks", "scenarios", "measures", "outcomes"),
        ("sources", "targets", "methods", *(f"{name}{suffix}" for name in _AXES)),
        field=file.name,
        maximum_bytes=_MAXIMUM_BYTES,
        hint=DAMAGED_HINT,
    )
    arrays = {name: _numbers(held[name + suffix], file) for name in _AXES if name + suffix in held}
    tasks = _task_names(held["tasks"])
    scenarios = held["scenarios"].tolist()
    if targets == "full":
        scenarios = [name for name in scenarios if name in _FULL_SCENARIOS] if "outcomes" in arrays else []
    if unknown := [name for name in scenarios if name not in _SCENARIOS]:
        raise InvalidInputError(
            f"the scenario {unknown[0]!r} of {file.name} is not known.",
            field="scenarios",
            hint=f"Known ones are {', '.join(_SCENARIOS)}.",
        )
    counts = [arrays[name].shape[axis] for name, axis in (("outcomes", 2), ("baseline", 1)) if name in arrays]
    names = {
        "tasks": tasks,
        "sources": _task_names(held["sources"]) if "sources" in held else tasks,
        "targets": _task_names(held["targets"]) if "targets" in held else tasks,
        "scenarios": tuple(_SCENARIOS[name] for name in scenarios),
        "measures": tuple(held["measures"].tolist()),
        "methods": tuple(held["methods"].tolist()) if "methods" in held else (),
        "repetitions": tuple(map(str, range(max(counts, default=0)))),
    }
    for name, array in arrays.items():
        expected = tuple(len(names[axis]) for axis in _AXES[name])
        if array.shape != expected:
            raise InvalidInputError(
                f"{name}{suffix} of {file.name} has the shape {array.shape}, expected {expected}: "
                f"{', '.join(_AXES[name])}.",
                field=f"{name}{suffix}",
            )
    return _File(arrays, names)


def _numbers(array: NDArray[Any], file: Path) -> Floats:
    """The array with nan for infinite values."""
    if array.dtype.kind not in "fiu":
        raise InvalidInputError(f"expected numbers, got {array.dtype}.", field=file.name)
    numbers = array.astype(np.float64)
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def _merge(files: Iterable[_File], name: str, names: Mapping[str, tuple[str, ...]]) -> Floats:
    """The array over the union of the names; a value of the first file that has one counts."""
    merged = np.full([len(names[axis]) for axis in _AXES[name]], np.nan)
    for file in files:
        if name in file.arrays:
            here = np.ix_(*([names[axis].index(one) for one in file.names[axis]] for axis in _AXES[name]))
            merged[here] = np.where(np.isnan(merged[here]), file.arrays[name], merged[here])
    return merged


def _read_rows(folder: Path) -> dict[str, _Row]:
    """Rows of all tasks by name, without empty cells; of two rows of a task the first counts."""
    rows: dict[str, _Row] = {}
    for file in _find(folder, "tasks_*.csv"):
        try:
            with file.open(encoding="utf-8-sig", newline="") as stream:
                held = [row for row in csv.DictReader(stream) if row.get("task")]
        except (UnicodeDecodeError, csv.Error) as error:
            raise InvalidInputError("expected a CSV file in UTF-8.", field=file.name) from error
        for row in held:
            filled = {
                column: cell.strip()
                for column, cell in row.items()
                if isinstance(cell, str) and cell.strip().lower() not in _MISSING
            }
            rows.setdefault(_legal_name(row["task"]), filled)
    return rows


def _card(task: str, rows: Mapping[str, _Row]) -> TaskCard:
    row = rows.get(task, {})
    missing = [column for column in ("num_classes", "num_samples") if column not in row]
    if missing:
        raise InvalidInputError(
            f"the row of the task {task} has no {missing[0]}." if row else f"no row is of the task {task}.",
            field="tasks_*.csv",
            hint="Add it: each task of the npz files needs a name, num_classes and num_samples.",
        )

    return TaskCard.from_document(
        {
            "name": task,
            "dataset": row.get("dataset"),
            "keywords": _keywords(row.get("keywords", "")),
            "modality": row.get("domain"),
            "classes": _whole(row, "num_classes"),
            "samples": _whole(row, "num_samples"),
            "imbalance": max(_number(row, "imbalance_ratio") or 1.0, 1.0),
            "smallest_pixels": _whole(row, "min_resolution"),
            "largest_pixels": _whole(row, "max_resolution"),
            "intrinsic_dimension": _number(row, "intrinsic_dim"),
        }
    )


def _keywords(cell: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in cell.split(";") if word.strip())


def _whole(row: _Row, column: str) -> int | None:
    number = _number(row, column)
    return None if number is None else round(number)


def _number(row: _Row, column: str) -> float | None:
    """The positive number in this column; None: there is none, or another number, which means nothing here.

    Raises:
        InvalidInputError: the cell is no number.
    """
    if column not in row:
        return None
    try:
        number = float(row[column])
    except ValueError as error:
        raise InvalidInputError(
            f"expected a number for the task {row['task']}, got {row[column][:40]!r}.", field=column
        ) from error
    return number if 0 < number < math.inf else None


def _task_names(array: NDArray[Any]) -> tuple[str, ...]:
    names = tuple(_legal_name(str(name)) for name in array.tolist())
    if len(set(names)) < len(names):
        raise InvalidInputError("two tasks have the same name.", field="tasks")
    return names


def _legal_name(name: str) -> str:
    """The name in lower case, with "-" for characters that names of tasks cannot have."""
    return re.sub(r"[^a-z0-9._-]", "-", name.strip().lower()).lstrip("._-")[:64]


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
