"""A small line within a text or a cell of a table, without axes."""

from collections.abc import Sequence

from lifelong_core.charts.figures import svg
from lifelong_core.charts.markup import Markup, element
from lifelong_core.charts.scales import Scale

WIDTH, HEIGHT, AIR = 120.0, 28.0, 3.0


def sparkline(values: Sequence[float], title: str, *, most: float | None = None) -> Markup:
    """A line through at least one value, in order of time, from 0 up to `most` (default: the largest value).

    `title` is its text alternative: what is shown, with the newest value.
    """
    x = Scale((0, max(len(values) - 1, 1)), (AIR, WIDTH - AIR))
    y = Scale((min(0.0, *values), max(most or 0.0, *values) or 1.0), (HEIGHT - AIR, AIR))
    places = [(x(index), y(value)) for index, value in enumerate(values)]
    line = element("polyline", class_="line", points=" ".join(f"{a:g},{b:g}" for a, b in places))
    dot = element("circle", class_="dot", cx=places[-1][0], cy=places[-1][1], r=2.5)
    return svg(WIDTH, HEIGHT, line, dot, title=title, look="sparkline series-0")
