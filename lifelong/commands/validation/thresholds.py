"""Parser of acceptance thresholds: LABEL=VALUE, or LABEL[CLASS]=VALUE."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lifelong_core.design import AcceptanceThreshold

THRESHOLD = re.compile(r"(?P<label>.+?)(?:\[(?P<name>[^\]]+)\])?\s*=\s*(?P<value>[^=()]+)")


def parse_threshold(text: str, class_names: Sequence[str] | None) -> "AcceptanceThreshold":
    """Return a threshold for the worse end of the interval.

    Raises:
        InvalidInputError: no label, no number, or no such class.
    """
    from lifelong_core.design import AcceptanceThreshold
    from lifelong_core.values.errors import InvalidInputError

    found = THRESHOLD.fullmatch(text.strip())
    number = None if found is None else _number(found["value"].strip())
    if found is None or number is None:
        raise InvalidInputError(
            f"expected a metric and the value that it has to reach, got {text[:80]!r}.",
            field="--threshold",
            hint="For example BA=0.8, TNR@(TPR=0.95)=0.7, or AUROC[malignant]=0.9 for one class.",
        )
    return AcceptanceThreshold(
        metric=found["label"], value=number, class_index=_class_index(found["name"], class_names)
    )


def _class_index(name: str | None, class_names: Sequence[str] | None) -> int | None:
    from lifelong_core.values.class_labels import class_index, describe_labels
    from lifelong_core.values.errors import InvalidInputError
    from lifelong_core.values.names import escape_controls

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
    from lifelong_core.design.interview.answer_texts import parse_number
    from lifelong_core.values.arrays import LARGEST_NUMBER

    number = parse_number(text)
    return number if number is not None and abs(number) <= LARGEST_NUMBER else None
