"""What `lifelong adapt` is given: files of logits, a head, and values in words."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from lifelong.commands.common import only_warned
from lifelong.commands.models.tasks import parse_costs, parse_decision_rule
from lifelong.labelled_logits import class_names_of, labelled_table, read_logits_table
from lifelong_core.configuration.plausibility import check_costs
from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import AdaptationPolicy, LabeledLogits, PostProcessingHead, fit_head
from lifelong_core.deploy.checks import as_class_names
from lifelong_core.values.arrays import as_costs, as_groups, as_logits
from lifelong_core.values.csv_files import read_csv
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.mistaken_probabilities import expect_logits
from lifelong_core.values.npz import UNREADABLE

MOST_CLASSES = 10_000


def read_calibration(path: Path, class_names: Sequence[str] | None = None) -> LabeledLogits:
    """The calibration set of an npz or CSV file; without names, the columns of a CSV file name its classes."""
    with name_file_in_errors(path, InvalidInputError):
        if path.suffix.lower() == ".csv":
            data = labelled_table(path, class_names)
        else:
            data = LabeledLogits.from_bytes(path.read_bytes(), class_names=class_names)
        expect_logits(data.logits)
        return data


def given_names(calibration: Path, options: dict[str, Any]) -> Sequence[str] | None:
    """The classes, in the order of the logits, by which labels and CSV columns are read; None: none are named."""
    if options["head"] is not None:
        for name in ("costs", "classes", "decision_rule"):
            if options[name] is not None:
                raise InvalidInputError("the head says it already.", field=f"--{name.replace('_', '-')}")
        return PostProcessingHead.from_json(options["head"].read_text(errors="replace")).class_names
    names = parse_class_names(options["classes"])
    if names is None and calibration.suffix.lower() == ".csv":
        return class_names_of(read_csv(calibration, required=("label",), field="CALIBRATION"))
    return names


@contextmanager
def name_file_in_errors(path: Path, kind: type[InvalidInputError]) -> Iterator[None]:
    """Errors of this kind are owed to what the file holds: they name it."""
    try:
        yield
    except kind as error:
        raise type(error)(f"{path}: {error.message}", field=error.field, hint=error.hint) from error


def read_head(data: LabeledLogits, options: dict[str, Any]) -> PostProcessingHead:
    """The head of --head, else the first one of a model with these costs, classes and rule."""
    if options["head"] is not None:
        return PostProcessingHead.from_json(options["head"].read_text(errors="replace"))
    names = fitting_names(parse_class_names(options["classes"]), data.classes)
    costs = as_costs(parse_costs(options["costs"], data.classes), classes=data.classes)
    with only_warned():
        check_costs(costs)
    return fit_head(
        data,
        costs,
        class_names=names,
        decision_rule=parse_decision_rule(options["decision_rule"]),
    )


def read_window(path: Path, class_names: Sequence[str], *, times: str | None) -> tuple[Any, Any]:
    """Logits and groups (or None) of an npy, npz or CSV file, which may have a column of times."""
    if path.suffix.lower() == ".csv":
        with name_file_in_errors(path, InvalidInputError):
            rows, logits = read_logits_table(path, class_names, field="WINDOW", times=times)
        return logits, [row["group"] for row in rows] if "group" in rows.columns else None
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if not isinstance(loaded, np.lib.npyio.NpzFile):
                return loaded, None
            return loaded["logits"], loaded.get("groups")
    except UNREADABLE as error:
        raise InvalidInputError(
            f"{path} is neither an npy file, nor an npz file with the array logits, nor a CSV file.",
            field="WINDOW",
            hint="Write it with numpy.save(file, logits).",
        ) from error


def order_of_values(logits: Any, groups: Any) -> Any:
    """Indices (N,) that sort rows by logits, then group: rows in any order give one result, to the last bit."""
    rows = as_logits(logits, field="WINDOW")
    keys = as_groups(groups, samples=len(rows), field="WINDOW")
    return np.lexsort((*(() if keys is None else (keys,)), *rows.T))


def read_times(given: str | None, window: Path, rows: int) -> Any:
    """Seconds since 1970 of each row, from an npy file, or an array or column of the window; None: not given.

    Raises:
        InvalidInputError: there is no such file, array or column, or it does not hold one time for each row.
    """
    if given is None:
        return None
    source = Path(given) if Path(given).is_file() else window
    try:
        if source.suffix.lower() == ".csv":
            times = _times_of_column(source, given)
        else:
            with source.open("rb") as file:
                loaded = np.load(file, allow_pickle=False)
                times = np.asarray(loaded[given] if isinstance(loaded, np.lib.npyio.NpzFile) else loaded)
    except UNREADABLE as error:
        raise InvalidInputError(
            f"{given} is neither an npy file nor an array or column of {window}.", field="--times"
        ) from error
    if np.issubdtype(times.dtype, np.datetime64) and not np.isnat(times).any():
        times = times.astype("datetime64[us]").astype(np.int64) / 1e6
    if times.shape != (rows,) or times.dtype.kind not in "iuf" or not np.isfinite(times).all():
        raise InvalidInputError(f"expected {rows} times, one for each row of WINDOW.", field="--times")
    return times.astype(float)


def _times_of_column(path: Path, column: str) -> Any:
    """Seconds since 1970 from a column of numbers or of ISO 8601; without a zone: UTC."""
    table = read_csv(path, required=(column,), field="--times")
    try:
        return table.numbers([column])[:, 0]
    except InvalidInputError as error:
        try:
            moments = [datetime.fromisoformat(row[column]) for row in table]
        except ValueError:
            raise InvalidInputError(
                f"column {column[:80]!r}: expected ISO 8601, such as 2026-03-01T14:05:00+01:00, or seconds since 1970.",
                field="--times",
            ) from error
    return np.array([(one if one.tzinfo else one.replace(tzinfo=UTC)).timestamp() for one in moments])


def read_policy(text: str | None, label_error_rate: float | None) -> AdaptationPolicy:
    """The default policy with the changes of a JSON object, or of a file that holds one, and with a share of wrong
    labels of every class; None: that of the settings, unless the policy has its own.
    """
    rate = Settings.load().label_error_rate if label_error_rate is None else label_error_rate
    if text is None:
        return AdaptationPolicy(label_error_rates=(rate,))
    try:
        changed: Any = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text())
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"{text[:80]!r} is neither a JSON object nor a readable file of one.", field="--policy"
        ) from error
    known = [item.name for item in fields(AdaptationPolicy)]
    unknown = [str(name) for name in changed if name not in known] if isinstance(changed, dict) else ["This"]
    if unknown:
        raise InvalidInputError(
            f"{unknown[0][:80]!r} is no policy setting.",
            field="--policy",
            hint=f"They are {', '.join(known)}.",
        )
    if label_error_rate is not None or "label_error_rates" not in changed:
        changed = {**changed, "label_error_rates": (rate,)}
    return AdaptationPolicy(**changed)


def parse_class_names(text: str | None) -> list[str] | None:
    """Names separated by commas; a whole number stands for as many classes."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return [str(k) for k in range(min(int(text), MOST_CLASSES))]
    try:
        return list(as_class_names([part.strip() for part in text.split(",")]))
    except InvalidInputError as error:
        raise InvalidInputError(error.message, field="--classes", hint=error.hint) from error


def fitting_names(names: list[str] | None, classes: int) -> list[str]:
    """The names, one for each class; the numbers of the classes where there are none."""
    if names is not None and len(names) != classes:
        raise InvalidInputError(f"expected {classes} names, got {len(names)}.", field="--classes")
    return names or [str(k) for k in range(classes)]


def parse_numbers(text: str | None, *, field: str) -> list[float] | None:
    """Numbers separated by commas."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InvalidInputError("expected numbers, separated by commas.", field=field) from error
