"""What `lifelong adapt` is given: files of logits, a head, and values in words."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lifelong_core.deploy import AdaptationPolicy, LabeledLogits, PostProcessingHead
    from lifelong_core.errors import InvalidInputError

MOST_CLASSES = 10_000


def read_calibration(path: Path) -> "LabeledLogits":
    """The calibration set of an npz file."""
    from lifelong_core.arrays import expect_logits
    from lifelong_core.deploy import LabeledLogits
    from lifelong_core.errors import InvalidInputError

    with name_file_in_errors(path, InvalidInputError):
        data = LabeledLogits.from_bytes(path.read_bytes())
        expect_logits(data.logits)
        return data


@contextmanager
def name_file_in_errors(path: Path, kind: "type[InvalidInputError]") -> "Iterator[None]":
    """Errors of this kind are owed to what the file holds: they name it."""
    try:
        yield
    except kind as error:
        raise type(error)(f"{path}: {error.message}", field=error.field, hint=error.hint) from error


def read_head(data: "LabeledLogits", options: dict[str, Any]) -> "PostProcessingHead":
    """The head of --head, else the first one of a model with these costs, classes and rule."""
    from lifelong.commands.models.tasks import parse_costs, parse_decision_rule
    from lifelong_core.deploy import PostProcessingHead, fit_head
    from lifelong_core.errors import InvalidInputError

    if options["head"] is not None:
        for name in ("costs", "classes", "decision_rule"):
            if options[name] is not None:
                raise InvalidInputError("the head says it already.", field=f"--{name.replace('_', '-')}")
        return PostProcessingHead.from_json(options["head"].read_text(errors="replace"))
    names = fitting_names(parse_class_names(options["classes"]), data.classes)
    return fit_head(
        data,
        parse_costs(options["costs"], data.classes),
        class_names=names,
        decision_rule=parse_decision_rule(options["decision_rule"]),
    )


def read_window(path: Path) -> tuple[Any, Any]:
    """Logits and groups (or None) of an npy or npz file."""
    import numpy as np

    from lifelong_core.errors import InvalidInputError
    from lifelong_core.npz import UNREADABLE

    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if not isinstance(loaded, np.lib.npyio.NpzFile):
                return loaded, None
            return loaded["logits"], loaded.get("groups")
    except UNREADABLE as error:
        raise InvalidInputError(
            f"{path} is neither an npy file nor an npz file with the array logits.",
            field="WINDOW",
            hint="Write it with numpy.save(file, logits).",
        ) from error


def read_times(given: str | None, window: Path, rows: int) -> Any:
    """Seconds since 1970 of each row, from an npy file or an array of the window's npz; None: not given.

    Raises:
        InvalidInputError: there is no such file or array, or it does not hold one number for each row.
    """
    import numpy as np

    from lifelong_core.errors import InvalidInputError
    from lifelong_core.npz import UNREADABLE

    if given is None:
        return None
    try:
        with (Path(given) if Path(given).is_file() else window).open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            times = np.asarray(loaded[given] if isinstance(loaded, np.lib.npyio.NpzFile) else loaded)
    except UNREADABLE as error:
        raise InvalidInputError(
            f"{given} is neither an npy file nor an array of {window}.", field="--times"
        ) from error
    if np.issubdtype(times.dtype, np.datetime64):
        times = times.astype("datetime64[us]").astype(np.int64) / 1e6
    if times.shape != (rows,) or times.dtype.kind not in "iuf" or not np.isfinite(times).all():
        raise InvalidInputError(
            f"expected {rows} finite numbers, one for each row of WINDOW.", field="--times"
        )
    return times.astype(float)


def read_policy(text: str | None, label_error_rate: float | None) -> "AdaptationPolicy":
    """The default policy with the changes of a JSON object, or of a file that holds one, and with a share of wrong
    labels of every class; None: that of the settings, unless the policy has its own.
    """
    import json
    from dataclasses import fields

    from lifelong_core.deploy import AdaptationPolicy
    from lifelong_core.errors import InvalidInputError
    from lifelong_core.settings import Settings

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
    from lifelong_core.deploy.checks import as_class_names
    from lifelong_core.errors import InvalidInputError

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
    from lifelong_core.errors import InvalidInputError

    if names is not None and len(names) != classes:
        raise InvalidInputError(f"expected {classes} names, got {len(names)}.", field="--classes")
    return names or [str(k) for k in range(classes)]


def parse_numbers(text: str | None, *, field: str) -> list[float] | None:
    """Numbers separated by commas."""
    from lifelong_core.errors import InvalidInputError

    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InvalidInputError("expected numbers, separated by commas.", field=field) from error
