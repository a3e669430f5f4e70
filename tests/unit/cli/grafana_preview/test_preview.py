"""Previews over a real Prometheus with an hour of three populations; the prevalence of one shifts in the middle."""

import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from lifelong.cli import cli
from lifelong.grafana_preview.preview import dashboards, preview
from lifelong.grafana_preview.source import Prometheus
from lifelong_core.values.errors import InvalidInputError, UnavailableError
from tests import tools
from tests.integration.processes import PATIENCE_SECONDS, eventually
from tests.ports import free_port

SINCE = datetime(2026, 3, 1, 12, tzinfo=UTC)
UNTIL = SINCE + timedelta(hours=1)
SHIFTED = SINCE + timedelta(minutes=30)
GRAFANA = "https://grafana.example.org"


def _openmetrics() -> str:
    lines: dict[str, list[str]] = {
        "shift": [],
        "outcome": [],
        "low": [],
        "high": [],
        "head_at": [],
        "bucket": [],
    }
    for minute in range(61):
        at = SINCE + timedelta(minutes=minute)
        time = f"{at.timestamp():.0f}"
        for name in "abc":
            is_shifted = name == "a" and at >= SHIFTED
            labels = f'{{model="m@1",environment="{name}"}}'
            shift = 0.8 if is_shifted else 0.02
            lines["shift"].append(f"shift{labels} {shift} {time}")
            lines["low"].append(f"low{labels} {shift - 0.01:.2f} {time}")
            lines["high"].append(f"high{labels} {shift + 0.01:.2f} {time}")
            lines["outcome"].append(f"outcome{labels} {int(is_shifted)} {time}")
        if at >= SHIFTED:
            lines["head_at"].append(
                f'head_at{{model="m@1",environment="a"}} {SHIFTED.timestamp():.0f} {time}'
            )
        for bound, count in (("0.1", 2 if at >= SHIFTED else 3), ("1.0", 3), ("+Inf", 3)):
            lines["bucket"].append(f'bucket{{le="{bound}"}} {count} {time}')
    blocks = [f"# TYPE {name} gauge\n" + "\n".join(samples) for name, samples in lines.items()]
    return "\n".join(blocks) + "\n# EOF\n"


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "samples").write_text(_openmetrics())
    made = ["tsdb", "create-blocks-from", "openmetrics", "samples", "series"]
    subprocess.run([tools.program(tools.PROMTOOL), *made], cwd=folder, check=True, capture_output=True)
    (folder / "prometheus.yml").write_text("")
    port = free_port()
    command = [
        tools.program(tools.PROMETHEUS),
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=series",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    found = Prometheus(f"http://127.0.0.1:{port}", SINCE, UNTIL)

    def answers() -> bool:
        try:
            return bool(found.instant("shift"))
        except (UnavailableError, InvalidInputError):
            return False

    try:
        eventually(answers, "Prometheus")
        yield found
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def _panel(
    kind: str, *expressions: str, ranged: bool = True, legend: str = "", **settings: Any
) -> dict[str, Any]:
    targets = [
        {"refId": ref_id, "expr": expression, "instant": not ranged, "legendFormat": legend}
        for ref_id, expression in zip("ABC", expressions, strict=False)
    ]
    return {
        "type": kind,
        "title": "Shift of $environment",
        "gridPos": {"x": 0, "y": 0, "w": 12, "h": 8},
        "targets": targets,
        "options": settings.pop("options", {}),
        "transformations": settings.pop("transformations", []),
        "fieldConfig": {"defaults": settings, "overrides": settings.pop("overrides", [])},
    }


def _drawn(prometheus: Prometheus, panel: dict[str, Any], **chosen: str) -> str:
    names = [{"name": "model", "type": "query", "query": {"query": "label_values(shift, model)"}}]
    names += [
        {"name": "environment", "type": "query", "query": 'label_values(shift{model="$model"}, environment)'}
    ]
    swaps = {
        "name": "Swaps",
        "expr": "head_at * 1000",
        "titleFormat": "{{environment}} swapped",
        "iconColor": "red",
    }
    document = {
        "title": "Board",
        "uid": "board",
        "templating": {"list": names},
        "annotations": {"list": [swaps]},
        "panels": [panel],
    }
    return preview(document, prometheus, chosen, GRAFANA)


def _drawing(page: str) -> ElementTree.Element:
    found = re.search(r'<svg class="wide".*?</svg>', page, re.DOTALL)
    assert found is not None
    return ElementTree.fromstring(found[0])


SHIFT = 'shift{model="$model",environment="$environment"}'
OVERRIDES = [
    {
        "matcher": {"id": "byName", "options": "above"},
        "properties": [{"id": "custom.fillBelowTo", "value": "below"}],
    }
]


def test_a_series_is_drawn_with_its_band_its_threshold_and_the_marks_of_annotations(
    prometheus: Prometheus,
) -> None:
    steps = {"steps": [{"color": "green", "value": None}, {"color": "red", "value": 0.5}]}
    panel = _panel(
        "timeseries",
        SHIFT,
        SHIFT.replace("shift", "low"),
        SHIFT.replace("shift", "high"),
        overrides=OVERRIDES,
        thresholds=steps,
        custom={"thresholdsStyle": {"mode": "dashed"}},
        unit="percentunit",
    )
    for target, name in zip(panel["targets"], ("L1", "below", "above"), strict=True):
        target["legendFormat"] = name
    page = _drawn(prometheus, panel)
    assert "Shift of a" in page, "the first environment is chosen, as in Grafana"
    drawing = _drawing(page)
    assert len(drawing.findall(".//polygon[@class='band']")) == 1
    (line,) = drawing.findall(".//polyline")
    heights = [float(place.partition(",")[2]) for place in line.get("points", "").split()]
    assert heights[0] > heights[-1] + 100, "the line rises"
    assert "threshold 50: 50" in page
    assert "a swapped" in page
    assert "below" not in re.findall(r"</svg>([^<]*)</li>", page)


def test_a_chosen_value_replaces_the_first_one(prometheus: Prometheus) -> None:
    assert "Shift of c" in _drawn(prometheus, _panel("timeseries", SHIFT), environment="c")
    with pytest.raises(InvalidInputError, match="no variable 'hospital'"):
        _drawn(prometheus, _panel("timeseries", SHIFT), hospital="c")


def test_states_are_spans_with_the_words_of_their_values(prometheus: Prometheus) -> None:
    words = {"0": {"text": "keep", "color": "green"}, "1": {"text": "refuse", "color": "red"}}
    panel = _panel(
        "state-timeline", "outcome", legend="{{environment}}", mappings=[{"type": "value", "options": words}]
    )
    drawing = _drawing(_drawn(prometheus, panel))
    spans = [span.findtext("title") for span in drawing.findall(".//g[@class='good']")]
    assert spans == ["keep", "keep", "keep"]
    assert [span.findtext("title") for span in drawing.findall(".//g[@class='bad']")] == ["refuse"]


def test_buckets_of_a_heatmap_are_counts_between_their_bounds(prometheus: Prometheus) -> None:
    page = _drawn(prometheus, _panel("heatmap", "bucket"))
    titles = [cell.findtext("title") or "" for cell in _drawing(page).findall(".//rect")]
    assert "≤ 0.1, 12:00: 3" in titles
    assert "≤ 1.0, 12:00: 0" in titles
    assert "≤ 1.0, 13:00: 1" in titles


MERGED = [
    {"id": "merge", "options": {}},
    {
        "id": "organize",
        "options": {
            "excludeByName": {"Time": True, "model": True},
            "indexByName": {"environment": 0, "Value #A": 1, "Value #B": 2},
            "renameByName": {"environment": "Environment", "Value #A": "Shift", "Value #B": "Swapped"},
        },
    },
]


def test_a_table_merges_its_queries_and_links_and_colours_its_cells(prometheus: Prometheus) -> None:
    link = {
        "title": "Population",
        "url": "/d/lifelong-population?var-environment=${__data.fields.Environment}&x=${other}",
    }
    coloured = {"type": "color-background"}
    steps = {"steps": [{"color": "green", "value": None}, {"color": "red", "value": 0.5}]}
    panel = _panel(
        "table",
        "shift",
        "head_at",
        ranged=False,
        noValue="No population.",
        options={"sortBy": [{"displayName": "Shift", "desc": True}]},
        transformations=MERGED,
        overrides=[
            {
                "matcher": {"id": "byName", "options": "Environment"},
                "properties": [{"id": "links", "value": [link]}],
            },
            {
                "matcher": {"id": "byName", "options": "Shift"},
                "properties": [
                    {"id": "thresholds", "value": steps},
                    {"id": "custom.cellOptions", "value": coloured},
                    {
                        "id": "links",
                        "value": [{"title": "Up", "url": "/d/up?e=${__data.fields.Environment}"}],
                    },
                ],
            },
            {
                "matcher": {"id": "byName", "options": "Swapped"},
                "properties": [{"id": "noValue", "value": "never"}],
            },
        ],
    )
    page = _drawn(prometheus, panel)
    assert re.findall(r"<th[^>]*>(\w+)</th>", page) == ["Environment", "Shift", "Swapped"]
    rows = [re.sub(r"<[^>]+>", " ", row).split() for row in re.findall(r"<tr><td.*?</tr>", page)]
    assert rows[0][:2] == ["a", "0.8"]
    assert sorted(rows[1:]) == [["b", "0.02", "never"], ["c", "0.02", "never"]]
    assert f'<td class="bad"><a href="{GRAFANA}/d/up?e=a">0.8</a>' in page
    assert "lifelong-population" not in page, "a link with an unknown name leads nowhere"


def test_a_number_is_shown_with_unit_name_and_colour(prometheus: Prometheus) -> None:
    steps = {"steps": [{"color": "green", "value": None}, {"color": "red", "value": 0.5}]}
    settings: dict[str, Any] = {
        "unit": "percentunit",
        "thresholds": steps,
        "options": {"textMode": "value_and_name"},
    }
    page = _drawn(prometheus, _panel("stat", SHIFT, ranged=False, legend="L1 of {{environment}}", **settings))
    assert '<span>L1 of a</span><b class="bad">80.0 %</b>' in page


def test_bars_end_where_their_values_do(prometheus: Prometheus) -> None:
    page = _drawn(prometheus, _panel("bargauge", "sort_desc(shift)", ranged=False, legend="{{environment}}"))
    assert re.findall(r'width: ([\d.]+)%"></i><b class="\w+">([\d.]+)', page) == [
        ("100.0", "0.8"),
        ("2.5", "0.02"),
        ("2.5", "0.02"),
    ]


def test_what_is_not_drawn_is_said(prometheus: Prometheus) -> None:
    assert "does not draw panels of the type piechart" in _drawn(prometheus, _panel("piechart", "shift"))
    page = _drawn(prometheus, _panel("stat", "absent", ranged=False, noValue="nothing yet", unit="furlong"))
    assert "nothing yet" in page
    assert "Not in the preview: the unit furlong." in page


def test_every_dashboard_of_the_product_is_drawn_whole(prometheus: Prometheus) -> None:
    for document in dashboards().values():
        page = preview(document, prometheus, {}, GRAFANA)
        assert "Not in the preview" not in page, document["uid"]
        assert "does not draw" not in page, document["uid"]
        assert page.count("<section") == sum(panel["type"] != "row" for panel in document["panels"])
        assert ">Preview</span>" in page


def test_the_command_writes_a_page_and_says_which_dashboards_there_are(
    prometheus: Prometheus, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    options = ["--prometheus", prometheus.url, "--since", "1h", "--html", str(page)]
    done = CliRunner().invoke(
        cli, ["grafana", "preview", "--dashboard", "service", *options], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert "<title>Preview: Lifelong: Service</title>" in page.read_text()
    refused = CliRunner().invoke(cli, ["grafana", "preview", "--dashboard", "nothing", *options])
    assert isinstance(refused.exception, InvalidInputError)
    assert "overview" in (refused.exception.hint or "")


def test_an_address_without_prometheus_is_said() -> None:
    with pytest.raises(UnavailableError, match="no Prometheus answers"):
        Prometheus(f"http://127.0.0.1:{free_port()}", SINCE, UNTIL).instant("up")
    with pytest.raises(InvalidInputError, match="no address"):
        Prometheus("prometheus", SINCE, UNTIL).instant("up")
