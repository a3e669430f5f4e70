"""Metrics of users, imported by --metric MODULE:NAME."""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lifelong_core.metrics import CustomMetric

FIELD = "--metric"
HINT = (
    "Write MODULE:NAME, where NAME is a lifelong_core.metrics.CustomMetric in a module that can be imported."
)


def load_metrics(entries: Sequence[str]) -> "tuple[CustomMetric, ...]":
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


def _load(entry: str) -> "CustomMetric":
    from lifelong_core.metrics import CustomMetric
    from lifelong_core.values.errors import InvalidInputError

    module_name, _, name = entry.partition(":")
    if not module_name or not name.isidentifier():
        raise InvalidInputError(f"expected MODULE:NAME, got {entry[:80]!r}.", field=FIELD, hint=HINT)
    try:
        module = importlib.import_module(module_name)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"{entry}: {error.field}: {error.message}", field=FIELD, hint=error.hint
        ) from error
    except Exception as error:
        raise InvalidInputError(
            f"{module_name} cannot be imported ({type(error).__name__}: {str(error)[:200]}).",
            field=FIELD,
            hint=HINT,
        ) from error
    found: Any = getattr(module, name, None)
    if not isinstance(found, CustomMetric):
        what = "has no such name" if found is None else f"is a {type(found).__name__}, no CustomMetric"
        raise InvalidInputError(f"{entry} {what}.", field=FIELD, hint=HINT)
    return found
