"""The exporter with 500 populations of 20 classes, scraped by a real Prometheus: does the overview stay readable?"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.exporter.status import PopulationStatus
from lifelong_monitor.realised.records import RealisedMetric, RealisedPerformance, RecommendedMetrics
from tests.integration.dashboards import expect_data, fill, panel_of
from tests.integration.processes import eventually
from tests.integration.prometheus import Prometheus, prometheus
from tests.unit import performance_samples
from tests.unit.monitor.exporter import statuses

MODELS, ENVIRONMENTS, CLASSES = 10, 50, 20
POPULATIONS = MODELS * ENVIRONMENTS
SHADOWS, REFUSING = 3, 7
SERIES = 88_000
"""Of the monitor; docs/monitoring.md states it."""
RECORDED = 7_000
"""Largest number of series of recording rules; stated there, too."""


REALISED = RealisedPerformance(
    400,
    0.75,
    1.25,
    RecommendedMetrics((RealisedMetric("EC", None, 1.25, 1.0, 1.5, threshold=1.0, accepted=False),)),
)


def population(number: int) -> PopulationStatus:
    """One of 500, with all figures of a cycle and of labels; the last few refuse."""
    assumed = np.full(CLASSES, 1 / CLASSES)
    report = replace(
        statuses.REPORT,
        prevalence=statuses.prevalence(np.roll(np.linspace(0.01, 0.09, CLASSES), number), half=0.005),
        assumed_prevalence=assumed,
    )
    outcome = "refuse" if number >= POPULATIONS - REFUSING else "keep"
    return replace(
        statuses.JUDGED,
        model=f"model-{number % MODELS}@1",
        role="shadow" if number < SHADOWS else "promoted",
        environment=f"site-{number // MODELS:02}",
        class_names=tuple(f"class {index:02}" for index in range(CLASSES)),
        head=replace(statuses.JUDGED.head, assumed_prevalence=assumed),
        cycle=replace(statuses.CYCLE, outcome=outcome),
        report=report,
        last_success=statuses.NOON,
        last_swap=statuses.NOON,
        realised=REALISED,
        performance=performance_samples.comparison(),
    )


@dataclass(frozen=True)
class Scraped:
    """What the exporter shows, and the Prometheus that has scraped it."""

    lines: list[str]
    metrics: Prometheus


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    exporter = Exporter(cycle_interval_seconds=10**10)
    exporter.show(*(population(number) for number in range(POPULATIONS)))
    page = generate_latest(exporter.registry)

    class Page(BaseHTTPRequestHandler):
        """Made once: on a busy machine it takes longer than a scrape may."""

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE_LATEST)
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with prometheus(tmp_path_factory.mktemp("many"), server.server_port, seconds=5) as metrics:
            recorded = "count(lifelong:population_attention)"
            eventually(lambda: metrics.value(recorded) == POPULATIONS, "the states of all populations")
            yield Scraped([line for line in page.decode().splitlines() if line[0] != "#"], metrics)
        server.shutdown()


def test_the_documentation_states_how_many_series_there_are(scraped: Scraped) -> None:
    of_each = Counter(line.partition("{")[0] for line in scraped.lines)
    assert max(of_each.values()) == POPULATIONS * CLASSES
    recorded = scraped.metrics.value('count({__name__=~"lifelong:.+"})') or 0
    assert len(scraped.lines) == pytest.approx(SERIES, rel=0.02)
    assert 5 * POPULATIONS <= recorded <= RECORDED
    text = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text(encoding="utf-8")
    assert f"{SERIES:,}" in text
    assert f"{RECORDED:,}" in text


def test_the_table_has_a_row_for_each_population(scraped: Scraped) -> None:
    state, *_ = panel_of("overview", "All populations")["targets"]
    rows = scraped.metrics.query(fill(state["expr"], {}))
    assert len(rows) == POPULATIONS
    states = Counter(row["value"][1] for row in rows)
    assert (states["7"], states["-1"]) == (REFUSING, SHADOWS)


def test_panels_over_time_show_the_most_urgent_ones_only(scraped: Scraped) -> None:
    (target,) = panel_of("overview", "Outcomes of cycles")["targets"]
    shown = scraped.metrics.query(fill(target["expr"], {"top": "10"}), ranged=True)
    assert len(shown) == 10
    refusing = [one for one in shown if one["values"][-1][1] == "2"]
    assert len(refusing) == REFUSING
    (target,) = panel_of("overview", "Largest shifts")["targets"]
    assert len(scraped.metrics.query(fill(target["expr"], {}))) == 10


def test_the_heatmap_counts_all_of_them(scraped: Scraped) -> None:
    (target,) = panel_of("overview", "Size of the shift over all populations")["targets"]
    buckets = {
        one["metric"]["le"]: int(one["values"][-1][1])
        for one in scraped.metrics.query(fill(target["expr"], {}), ranged=True)
    }
    assert buckets["+Inf"] == buckets["0.8"] == POPULATIONS - SHADOWS
    assert buckets["0.4"] == 0


def test_the_table_of_trials_has_a_row_for_each_shadow(scraped: Scraped) -> None:
    panel = panel_of("develop", "Models on trial")
    expect_data(scraped.metrics, {"title": "trials", "panels": [panel], "annotations": {}}, {})
    for target in panel["targets"]:
        assert len(scraped.metrics.query(target["expr"])) == SHADOWS
