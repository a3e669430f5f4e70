"""Values of options as `validate` and `recommend` read them: files of models, metrics of users, thresholds."""

import importlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from lifelong_core.design import AcceptanceThreshold
from lifelong_core.design.interview.answer_texts import parse_number
from lifelong_core.metrics import CustomMetric
from lifelong_core.values.arrays import LARGEST_NUMBER
from lifelong_core.values.class_labels import class_index, describe_labels
from lifelong_core.values.control_characters import escape_controls
from lifelong_core.values.errors import InvalidInputError

METRIC = "--metric"
METRIC_HINT = (
    "Write MODULE:NAME, where NAME is a lifelong_core.metrics.CustomMetric in a module that can be imported."
)

THRESHOLD = re.compile(r"(?P<label>.+?)(?:\[(?P<name>[^\]]+)\])?\s*=\s*(?P<value>[^=()]+)")


def named_file(text: str, option: str) -> tuple[str | None, Path]:
    """The name, None without one, and the file of an option.

    Raises:
        click.UsageError: there is no such file.
    """
    if Path(text).is_file():
        return None, Path(text)
    name, _, path = text.partition("=")
    if not Path(path).is_file():
        raise click.UsageError(f"{option}: there is no file {path or text!r}.")
    return name.strip() or None, Path(path)


def data_by_model(given: Sequence[str]) -> dict[str, Path]:
    """The labelled data of each model by its name: as given, else that of the file.

    Raises:
        click.UsageError: there is no such file, or two have one name.
    """
    files: dict[str, Path] = {}
    for text in given:
        named, path = named_file(text, "DATA")
        name = named or path.stem
        if name in files:
            raise click.UsageError(f"two models have the name {name}; give names: NAME=FILE.")
        files[name] = path
    return files


def files_by_model(models: Sequence[str], given: Sequence[str], option: str) -> dict[str, list[Path]]:
    """The files of each model, in the order of the options; the name may be left out where there is one model.

    Raises:
        click.UsageError: there is no such file or model.
    """
    files: dict[str, list[Path]] = {}
    for text in given:
        named, path = named_file(text, option)
        name = models[0] if named is None and len(models) == 1 else named
        if name is None or name not in models:
            raise click.UsageError(f"{option} takes NAME=FILE with the name of a model.")
        files.setdefault(name, []).append(path)
    return files


def file_by_model(models: Sequence[str], given: Sequence[str], option: str) -> dict[str, Path]:
    """One file of each model.

    Raises:
        click.UsageError: there is no such file or model, or a model has several files.
    """
    files = files_by_model(models, given, option)
    if any(len(paths) > 1 for paths in files.values()):
        raise click.UsageError(f"{option} takes NAME=FILE with the name of a model, once for each.")
    return {name: paths[0] for name, paths in files.items()}


def load_metrics(entries: Sequence[str]) -> tuple[CustomMetric, ...]:
    """Import the metrics; modules in the working directory are found too.

    This runs the code of the modules, so that it is for the command line only.

    Raises:
        InvalidInputError: a module cannot be imported, or has no such metric.
    """
    if not entries:
        return ()
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return tuple(_load(entry) for entry in entries)
    finally:
        sys.path.remove(here)


def parse_threshold(text: str, class_names: Sequence[str] | None) -> AcceptanceThreshold:
    """Return a threshold for the worse end of the interval.

    Raises:
        InvalidInputError: no label, no number, or no such class.
    """
    match = THRESHOLD.fullmatch(text.strip())
    number = None if match is None else _number(match["value"].strip())
    if match is None or number is None:
        raise InvalidInputError(
            f"expected a metric and the value that it has to reach, got {text[:80]!r}.",
            field="--threshold",
            hint="For example BA=0.8, TNR@(TPR=0.95)=0.7, or AUROC[malignant]=0.9 for one class.",
        )
    return AcceptanceThreshold(
        metric=match["label"], value=number, class_index=_class_index(match["name"], class_names)
    )


def _load(entry: str) -> CustomMetric:
    module_name, _, name = entry.partition(":")
    if not module_name or not name.isidentifier():
        raise InvalidInputError(f"expected MODULE:NAME, got {entry[:80]!r}.", field=METRIC, hint=METRIC_HINT)
    try:
        module = importlib.import_module(module_name)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"{entry}: {error.field}: {error.message}", field=METRIC, hint=error.hint
        ) from error
    except Exception as error:
        raise InvalidInputError(
            f"{module_name} cannot be imported ({type(error).__name__}: {str(error)[:200]}).",
            field=METRIC,
            hint=METRIC_HINT,
        ) from error
    found: Any = getattr(module, name, None)
    if not isinstance(found, CustomMetric):
        what = "has no such name" if found is None else f"is a {type(found).__name__}, no CustomMetric"
        raise InvalidInputError(f"{entry} {what}.", field=METRIC, hint=METRIC_HINT)
    return found


def _class_index(name: str | None, class_names: Sequence[str] | None) -> int | None:
    if name is None:
        return None
    if class_names is None and name.isdecimal():
        return int(name[:9])
    index = class_index(name, class_names or ())
    if index is None:
        raise InvalidInputError(
            f"there is no class {name[:80]!r}.",
            field="--threshold",
            hint=escape_controls(describe_labels(class_names)[:300])
            if class_names
            else "Give the number of a class, from 0.",
        )
    return index


def _number(text: str) -> float | None:
    """A number or percentage that a metric can have; None for any other text."""
    number = parse_number(text)
    return number if number is not None and abs(number) <= LARGEST_NUMBER else None
