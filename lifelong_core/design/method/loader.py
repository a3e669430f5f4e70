"""Reader of the recommendation document, one for each version of the software."""

from collections.abc import Collection, Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml
from pydantic import ValidationError

from lifelong_core.design.method.checks import MethodError, check_method
from lifelong_core.design.method.schema import Method
from lifelong_core.metrics import METRICS

PARTS = ("meta", "questions", "tables", "guides", "relations", "application", "contradictions")
"""One file for each part of the document."""


def read_parts() -> dict[str, Any]:
    """The document as plain values, unchecked, by part."""
    folder = resources.files("lifelong_core.design").joinpath("method")
    return {part: yaml.safe_load(folder.joinpath(f"{part}.yaml").read_text("utf-8")) for part in PARTS}


def build_method(parts: Mapping[str, Any], *, metrics: Collection[str] | None = None) -> Method:
    """Return a checked document, built from its parts.

    Args:
        parts: plain values, as `read_parts` gives them.
        metrics: the acronyms that exist; None: those of the metric pool.

    Raises:
        MethodError: a part has another form, a combination of answers hits no row or several, a row or a rule can
            never be reached, or a field, a guide or a metric is named that does not exist.
    """
    try:
        method = Method.model_validate(dict(parts))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise MethodError(f"{first['msg']}.", field=".".join(str(part) for part in first["loc"])) from error
    check_method(method, metrics=METRICS if metrics is None else metrics)
    return method


@cache
def load_method() -> Method:
    """The recommendation document of this version, read once.

    Raises:
        MethodError: it is damaged.
    """
    return build_method(read_parts())
