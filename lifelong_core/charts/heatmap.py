"""Sizes in a grid: rows of cells, darker where the value is larger."""

from dataclasses import dataclass

from lifelong_core.charts.figures import Key, Size, bottom_labels, figure, row_label, row_scale, tip
from lifelong_core.charts.markup import Markup, element, joined
from lifelong_core.charts.scales import Tick

ROW = 18.0
LEVELS = 8
"""Steps of darkness between 0 and the largest value."""


@dataclass(frozen=True)
class Heatmap:
    """A chart of values from 0 on: rows of (label, one value for each column); None where there is no value.

    `most` is the value of the darkest cell, default: the largest one.
    """

    title: str
    description: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]
    most: float | None = None

    def draw(self) -> Markup:
        """The figure; its legend has the ends of the scale."""
        most = self._most()
        keys = [Key("area", f"{share * most:.3g}", _level(share)) for share in (0.0, 0.5, 1.0)]
        return figure(self.title, self.description, self._parts, keys)

    def _most(self) -> float:
        values = [value for _, row in self.rows for value in row if value is not None]
        return self.most or max(values, default=0.0) or 1.0

    def _parts(self, size: Size) -> tuple[float, Markup]:
        most, height = self._most(), len(self.rows) * ROW + size.bottom
        x = row_scale((0, max(len(self.columns), 1)), size)

        def drawn(row: tuple[float | None, ...], label: str, top: float) -> Markup:
            cells = (
                element(
                    "rect",
                    tip(
                        f"{label}, {self.columns[place]}: {'no value' if value is None else format(value, '.3g')}"
                    ),
                    class_="area " + ("missing" if value is None else _level(value / most)),
                    x=x(place),
                    y=top,
                    width=x(place + 1) - x(place) - 1,
                    height=ROW - 1,
                )
                for place, value in enumerate(row)
            )
            return joined(*cells)

        rows = (
            joined(row_label(label, size, place * ROW + 13), drawn(row, label, place * ROW))
            for place, (label, row) in enumerate(self.rows)
        )
        every = max(1, -(-len(self.columns) // (size.row_ticks)))
        ticks = [
            Tick(x(place + 0.5), name)
            for place, name in enumerate(self.columns)
            if place % every == every // 2
        ]
        return height, joined(*rows, bottom_labels(ticks, size, height))


def _level(share: float) -> str:
    return f"level-{min(max(round(share * LEVELS), 0), LEVELS)}"
