"""Variables of a dashboard: their values, and texts with `$name` and `{{label}}`."""

import re
from collections.abc import Mapping
from typing import Any

from lifelong.grafana_preview.source import Prometheus
from lifelong_core.values.errors import InvalidInputError

_NAME = re.compile(r"\$\{([\w.]+)(?::\w+)?\}|\$(\w+)")
_LABEL_VALUES = re.compile(r"label_values\((.+), *(\w+)\)")
_LEGEND = re.compile(r"\{\{ *(\w+) *\}\}")
ALL = "$__all"


def choose(document: Mapping[str, Any], chosen: Mapping[str, str], prometheus: Prometheus) -> dict[str, str]:
    """The value of each variable of a dashboard, in its order: the chosen one, else as Grafana begins.

    Raises:
        InvalidInputError: a chosen variable does not exist.
    """
    variables = document["templating"]["list"]
    names = [one["name"] for one in variables]
    if unknown := [name for name in chosen if name not in names]:
        raise InvalidInputError(
            f"the dashboard has no variable {unknown[0]!r}.",
            field="--var",
            hint=f"It has {', '.join(names)}.",
        )
    values: dict[str, str] = {}
    for one in variables:
        name = one["name"]
        values[name] = chosen[name] if name in chosen else _initial(one, values, prometheus)
    return values


def substitute(text: str, values: Mapping[str, str]) -> str:
    """Put values for `$name`, `${name}` and `${name:format}`; unknown names stay.

    Examples:
        >>> substitute("a$b ${c:text} $d", {"b": "1", "c": "2"})
        'a1 2 $d'
    """
    return _NAME.sub(lambda found: values.get(found[1] or found[2], found[0]), text)


def legend(pattern: str, labels: Mapping[str, str]) -> str:
    """The name of a series: a pattern with `{{label}}`, or without one its labels.

    Examples:
        >>> legend("{{metric}} {{class}} estimated", {"metric": "AC", "class": ""})
        'AC estimated'
        >>> legend("", {"job": "a"})
        'job=a'
    """
    if not pattern:
        return ", ".join(f"{name}={value}" for name, value in labels.items() if name != "__name__") or "value"
    return " ".join(_LEGEND.sub(lambda found: labels.get(found[1], ""), pattern).split())


def _initial(variable: Mapping[str, Any], values: Mapping[str, str], prometheus: Prometheus) -> str:
    kind, current = variable["type"], variable.get("current") or {}
    value = current.get("value", "")
    value = value[0] if isinstance(value, list) else value
    if kind != "query":
        return str(value or variable.get("query", ""))
    if value == ALL:
        return variable.get("allValue") or ".*"
    question = variable["query"]
    found = _LABEL_VALUES.fullmatch(
        substitute(question["query"] if isinstance(question, dict) else question, values)
    )
    if found is None:
        raise InvalidInputError(
            f"the preview cannot ask for the values of the variable {variable['name']!r}.",
            hint=f"Give one: --var {variable['name']}=...",
        )
    return next(iter(sorted(prometheus.label_values(found[2], found[1]))), "")
