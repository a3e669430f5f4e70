"""The pages of performance: populations, charts, statements, warnings and numbers."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from lifelong_core.store import Store
from tests.unit.performance_samples import comparison
from tests.unit.service.conftest import Service
from tests.unit.service.consoles import Console

LIST = "/console/performance"
PAGE = f"{LIST}/linear@1/site-a"


@pytest.fixture
def console(registered: None, store: Store, serve: Callable[..., Service]) -> Console:
    store.environments.ensure("site-a", limit=9)
    return Console(serve())


def compare(console: Console, **changes: object) -> None:
    model = console.service.store.models.get("linear")
    console.service.store.performance.store(model.id, "site-a", replace(comparison(), **changes))  # type: ignore[arg-type]


def test_without_a_comparison_the_pages_say_what_makes_one(console: Console) -> None:
    assert "No performance was estimated yet" in console.get(LIST).text
    shown = console.get(PAGE)
    assert shown.status_code == 200
    assert 'aria-current="page">Performance</a>' in shown.text
    assert "There is no comparison of the performance of linear@1 in site-a yet." in shown.text
    assert "A running monitor computes it about a minute after the first label" in shown.text


def test_an_unknown_population_is_not_found(console: Console) -> None:
    for path in ("linear@9/site-a", "nothing/site-a", "linear@1/nowhere"):
        assert console.get(f"{LIST}/{path}").status_code == 404


def test_the_list_leads_to_the_population(console: Console) -> None:
    compare(console)
    shown = console.get(LIST).text
    assert f'href="{PAGE}"' in shown
    assert "They disagree" in shown
    assert f'href="{LIST}"' in console.get("/console/tasks").text


def test_the_page_shows_statements_warnings_charts_and_numbers(console: Console) -> None:
    compare(console)
    shown = console.get(PAGE).text
    for text in (
        "Head 2: accuracy is 0.900 (0.880 to 0.920) by the estimate without labels, and 0.750 (0.650 to 0.850) on 60"
        " labelled predictions. They disagree (p = 0.003).",
        "Accuracy: they disagree.",
        "The answered probabilities are not calibrated",
        "A limit of the estimate.",
        "<title>head 2</title>",
        "<title>2026-03-04, head 1: 0.850 (0.820 to 0.880), estimated</title>",
        "<title>2026-03-04, head 1: 0.800 (0.700 to 0.900), labelled</title>",
        '<td data-label="Accuracy, labelled">0.800 (0.700 to 0.900)</td>',
        '<strong class="disagrees">no</strong>',
    ):
        assert text in shown
    assert shown.count('<svg class="wide"') == shown.count('<svg class="small"') == 2
    # One band for each head: a band across a swap would join estimates of different decisions.
    assert shown.count('<polygon class="band"') == 2 * 2 * 2


def test_the_expected_cost_is_shown_at_all_class_mixes(console: Console) -> None:
    compare(console)
    shown = " ".join(console.get(PAGE).text.split())
    for text in (
        "At the stated, estimated and realised prevalences",
        '<th scope="row">EC, estimated</th>'
        '<td class="wrap across" data-label="Prevalences">benign 0.650, malignant 0.350</td>'
        '<td data-label="Value">1.500 (1.480 to 1.520)</td><td data-label="Threshold">0.2</td>'
        '<td data-label="Reached">\N{EN DASH}</td>',
        '<td data-label="Value">1.760 (1.740 to 1.780)</td><td data-label="Threshold">0.2</td>'
        '<td data-label="Reached"><strong class="disagrees">no</strong></td>',
        "Expected cost (EC) reaches its threshold 0.2 at the stated prevalences, but misses it at the realised ones.",
    ):
        assert text in shown
    compare(console, class_mixes=())
    assert "At the stated, estimated" not in console.get(PAGE).text


def test_days_without_an_estimate_or_a_label_draw_only_what_is_there(console: Console) -> None:
    days = comparison().days
    compare(
        console,
        heads=(),
        swaps=(),
        calibration_drift=None,
        days=(replace(days[0], estimated=None), replace(days[1], realised=None, agreement={})),
    )
    shown = console.get(PAGE).text
    assert "No cycle has estimated the performance yet" in shown
    assert '<polygon class="band"' not in shown
    assert '<polyline class="line"' not in shown
    assert shown.count(", estimated</title>") == shown.count(", labelled</title>") == 2 * 2
    compare(console, heads=(), days=())
    assert "No day of the last 30 has an estimate or a label" in console.get(PAGE).text
