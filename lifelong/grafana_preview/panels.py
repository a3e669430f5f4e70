"""What panels show: their queries, and the drawing of each type of panel that the dashboards use."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from lifelong.grafana_preview import frames, times
from lifelong.grafana_preview.fields import UNITS, Field, Named
from lifelong.grafana_preview.source import Line, Prometheus
from lifelong.grafana_preview.variables import legend, substitute
from lifelong_core.charts.figures import Tone
from lifelong_core.charts.markup import Markup
from lifelong_core.charts.time_series import Mark


@dataclass(frozen=True)
class Cell:
    """A value as text, with its name, what its colour says (calm: nothing) and where it leads."""

    text: str
    tone: Tone = "calm"
    link: str = ""
    name: str = ""


@dataclass(frozen=True)
class Shown:
    """A panel as the page shows it: numbers, a table, bars, a drawing, or a note why there is none of these.

    `place` is in the grid of 24 columns, `unit` that of the axis, `links` are titles and addresses, `bars` have their
    length from 0 to 1, and `missing` names what the preview leaves out.
    """

    title: str
    description: str
    place: Mapping[str, int]
    unit: str = ""
    links: tuple[tuple[str, str], ...] = ()
    numbers: tuple[Cell, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    bars: tuple[tuple[Cell, float], ...] = ()
    drawing: Markup | None = None
    note: str = ""
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Panels:
    """Draws the panels of a dashboard with these values of its variables, which hold Grafana's own, too."""

    prometheus: Prometheus
    values: Mapping[str, str]
    grafana: str
    marks: tuple[Mark, ...] = ()

    def show(self, panel: Mapping[str, Any]) -> Shown:
        """One panel, with its data.

        Raises:
            InvalidInputError: Prometheus refuses a query.
            UnavailableError: Prometheus does not answer.
        """
        kind, nothing = panel["type"], Field.of(panel, "", self.prometheus.until)
        shown = Shown(
            substitute(panel.get("title", ""), self.values),
            substitute(panel.get("description", ""), self.values),
            panel["gridPos"],
            unit=nothing.axis if kind == "timeseries" else "",
            links=tuple(self._links(nothing, {})),
            missing=tuple(_missing(panel, nothing)),
        )
        empty = nothing.get("noValue") or "No data"
        if kind == "table":
            frame = frames.table(panel, self._results(panel))
            rows = tuple(self._row(panel, frame.columns, row) for row in frame.rows)
            return replace(shown, head=frame.columns, rows=rows) if rows else replace(shown, note=empty)
        if kind not in ("stat", "bargauge", "timeseries", "state-timeline", "heatmap"):
            return replace(shown, note=f"The preview does not draw panels of the type {kind}.")
        named = self._named(panel, times.CELLS if kind == "heatmap" else times.SAMPLES)
        if not named:
            return replace(shown, note=empty)
        if kind == "stat":
            return replace(shown, numbers=tuple(_number(one, panel["options"]["textMode"]) for one in named))
        if kind == "bargauge":
            return replace(shown, bars=_bars(named))
        if kind == "timeseries":
            return replace(
                shown,
                drawing=times.draw_series(shown.title, shown.description, named, self.marks, self.prometheus),
            )
        if kind == "heatmap":
            return replace(shown, drawing=times.draw_heatmap(shown.title, shown.description, named))
        return replace(
            shown, drawing=times.draw_states(shown.title, shown.description, named, self.prometheus)
        )

    def _results(self, panel: Mapping[str, Any], count: int = times.SAMPLES) -> list[tuple[str, list[Line]]]:
        """The result of each query; of range queries over time, with so many values."""
        values = {**self.values, "__rate_interval": self.prometheus.rate_window(count)}
        asked = [(one, substitute(one["expr"], values)) for one in panel.get("targets", ())]
        return [
            (
                one["refId"],
                self.prometheus.instant(text) if one.get("instant") else self.prometheus.ranged(text, count),
            )
            for one, text in asked
        ]

    def _named(self, panel: Mapping[str, Any], count: int) -> list[Named]:
        patterns = {one["refId"]: one.get("legendFormat", "") for one in panel.get("targets", ())}
        names = (
            (legend(patterns[ref_id], line.labels), line)
            for ref_id, lines in self._results(panel, count)
            for line in lines
            if line.samples
        )
        return [Named(name, line, Field.of(panel, name, self.prometheus.until)) for name, line in names]

    def _row(
        self, panel: Mapping[str, Any], columns: Sequence[str], row: Mapping[str, frames.Value]
    ) -> tuple[Cell, ...]:
        here = {f"__data.fields.{name}": quote(str(value)) for name, value in row.items()}
        cells: list[Cell] = []
        for name in columns:
            field, value = Field.of(panel, name, self.prometheus.until), row.get(name)
            links = [address for _, address in self._links(field, here)] if value is not None else []
            is_coloured = field.get("custom.cellOptions", {}).get("type", "auto") != "auto"
            tone = field.tone(value) if is_coloured else "calm"
            cells.append(Cell(field.text(value), tone, next(iter(links), "")))
        return tuple(cells)

    def _links(self, field: Field, here: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Links without unknown names; those to dashboards lead to Grafana."""
        for one in field.get("links") or ():
            address = substitute(one["url"], {**self.values, **here})
            if "${" not in address:
                yield one["title"], self.grafana + address if address.startswith("/d/") else address


def _missing(panel: Mapping[str, Any], field: Field) -> Iterator[str]:
    if panel.get("repeat"):
        yield "repeated panels"
    if field.unit not in UNITS:
        yield f"the unit {field.unit}"
    for one in panel.get("transformations") or ():
        if one["id"] not in frames.TRANSFORMATIONS:
            yield f"the transformation {one['id']}"


def _number(one: Named, mode: str) -> Cell:
    value = one.line.samples[-1][1]
    text = one.name if mode == "name" else one.field.text(value)
    return Cell(text, one.field.tone(value), name=one.name if mode == "value_and_name" else "")


def _bars(named: Sequence[Named]) -> tuple[tuple[Cell, float], ...]:
    """Each value with its share of the longest bar."""
    values = [one.line.samples[-1][1] for one in named]
    longest = max(named[0].field.get("max", 0.0), *values, 0.0) or 1.0
    return tuple(
        (Cell(one.field.text(value), one.field.tone(value), name=one.name), max(value, 0.0) / longest)
        for one, value in zip(named, values, strict=True)
    )
