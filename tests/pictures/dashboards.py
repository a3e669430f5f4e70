"""Previews of all dashboards as pictures: the wide ones for the documentation, the others to look at."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from lifelong.grafana_preview.preview import dashboards, preview
from lifelong.grafana_preview.source import Prometheus
from tests.integration.browser import Browser
from tests.pictures.fleet import SWAPS, Fleet

GRAFANA = "http://127.0.0.1:3001"
SIZES = {
    "": (1280, "light"),
    "-dark": (1280, "dark"),
    "-narrow": (390, "light"),
    "-narrow-dark": (390, "dark"),
}
"""Ending of the file's name: width in pixels, colour scheme."""


def take(fleet: Fleet, browser: Browser, pages: Path, *, minutes: float) -> None:
    """Write `preview-NAME.html` and its pictures to a folder."""
    now = datetime.now(UTC)
    prometheus = Prometheus(fleet.prometheus, now - timedelta(minutes=minutes), now)
    population = {"model": fleet.model.reference, "environment": SWAPS}
    for name, document in dashboards().items():
        variables = {one["name"] for one in document["templating"]["list"]}
        chosen = {key: value for key, value in population.items() if key in variables}
        page = pages / f"preview-{name}.html"
        page.write_text(preview(document, prometheus, chosen, GRAFANA), encoding="utf-8")
        for ending, (width, scheme) in SIZES.items():
            browser.size(width, scheme=scheme)
            browser.open(page.as_uri())
            browser.screenshot(pages / f"preview-{name}{ending}.png")
