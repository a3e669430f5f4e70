"""How a panel shows a value: unit, decimals, words, colours and links, with the overrides of its field."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from lifelong.grafana_preview.source import Line
from lifelong_core.charts.figures import Tone

_TONES: Mapping[str, Tone] = {
    "green": "good",
    "yellow": "warn",
    "orange": "warn",
    "red": "bad",
    "blue": "accent",
    "purple": "accent",
}
_SERIES = {"blue": 5, "red": 1, "orange": 3, "yellow": 3, "green": 6, "purple": 2, "gray": 7}
"""Colours of series in our charts for those of Grafana."""
_SPANS = ((60.0, 1.0, "s"), (3_600.0, 60.0, "min"), (86_400.0, 3_600.0, "h"), (float("inf"), 86_400.0, "d"))
_SUFFIXES = {"none": "", "short": "", "reqps": " req/s", "cps": " per s", "d": " d"}
UNITS = {*_SUFFIXES, "percentunit", "s", "dateTimeFromNow"}
"""Units that the preview knows; values of others stand without a unit."""


@dataclass(frozen=True)
class Field:
    """A field of a panel: a series, a value or a column.

    Attributes:
        settings: defaults of the panel with the overrides of this field; `custom` settings as `custom.name`.
        now: the end of the time range, for ages.
    """

    settings: Mapping[str, Any]
    now: datetime

    @classmethod
    def of(cls, panel: Mapping[str, Any], name: str, now: datetime) -> "Field":
        """The field of this name."""
        configuration = panel["fieldConfig"]
        settings = {name: value for name, value in configuration["defaults"].items() if name != "custom"}
        settings |= {
            f"custom.{name}": value for name, value in configuration["defaults"].get("custom", {}).items()
        }
        for override in configuration.get("overrides", ()):
            if _fits(override["matcher"], name):
                settings |= {one["id"]: one.get("value") for one in override["properties"]}
        return cls(settings, now)

    def get(self, name: str, default: Any = None) -> Any:
        """A setting."""
        return self.settings.get(name, default)

    @property
    def unit(self) -> str:
        """The unit of the values."""
        return self.get("unit", "none")

    @property
    def factor(self) -> float:
        """What a value is multiplied by on an axis: shares are drawn in per cent."""
        return 100.0 if self.unit == "percentunit" else 1.0

    @property
    def axis(self) -> str:
        """The unit of an axis in words; empty: none."""
        return {"percentunit": "%", "s": "seconds"}.get(self.unit, _SUFFIXES.get(self.unit, "").strip())

    @property
    def series(self) -> int | None:
        """The fixed colour of a series; None: it takes the next one."""
        name = self.get("color", {}).get("fixedColor", "").rpartition("-")[2]
        return _SERIES.get(name)

    def text(self, value: float | str | None) -> str:
        """A value as people read it: in words where it has some, else with its unit."""
        if value is None:
            return self.get("noValue", "")
        if (word := self._words.get(_key(value))) is not None:
            return word["text"] if word.get("text") is not None else str(value)
        return value if isinstance(value, str) else self._number(value)

    def tone(self, value: float | str | None) -> Tone:
        """What the colour of a value says; calm: nothing."""
        if value is None:
            return "calm"
        colour = (self._words.get(_key(value)) or {}).get("color")
        if colour is None and not isinstance(value, str):
            for step in self.get("thresholds", {}).get("steps", ()):
                if step.get("value") is None or value >= step["value"]:
                    colour = step["color"]
        return tone_of(colour)

    def levels(self) -> Iterator[tuple[float, Tone]]:
        """The thresholds that a plot shows as lines."""
        if self.get("custom.thresholdsStyle", {}).get("mode", "off") != "off":
            for step in self.get("thresholds", {}).get("steps", ()):
                if step.get("value") is not None:
                    yield step["value"] * self.factor, tone_of(step["color"])

    @cached_property
    def _words(self) -> Mapping[str, Any]:
        maps = [one["options"] for one in self.get("mappings") or () if one["type"] == "value"]
        return {key: word for one in maps for key, word in one.items()}

    def _number(self, value: float) -> str:
        decimals, unit = self.get("decimals"), self.unit
        if unit == "percentunit":
            return f"{_rounded(100 * value, 1 if decimals is None else decimals)} %"
        if unit == "s":
            _, seconds, name = next(one for one in _SPANS if abs(value) < one[0])
            return f"{_rounded(value / seconds, decimals)} {name}"
        if unit == "dateTimeFromNow":
            age = (self.now - datetime.fromtimestamp(value / 1_000, UTC)).total_seconds()
            _, seconds, name = next(one for one in _SPANS if abs(age) < one[0])
            return f"{age / seconds:.0f} {name} ago"
        return _rounded(value, decimals) + _SUFFIXES.get(unit, "")


@dataclass(frozen=True)
class Named:
    """A series with its name in the panel, and how its values are shown."""

    name: str
    line: Line
    field: Field


def tone_of(colour: str | None) -> Tone:
    """What a colour of Grafana says; calm for those that say nothing."""
    return _TONES.get((colour or "").rpartition("-")[2], "calm")


def _fits(matcher: Mapping[str, Any], name: str) -> bool:
    if matcher["id"] == "byRegexp":
        return re.search(matcher["options"].strip("/"), name) is not None
    return matcher["id"] == "byName" and matcher["options"] == name


def _key(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _rounded(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:,.{decimals}f}"
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1_000 else f"{value:.3g}"
