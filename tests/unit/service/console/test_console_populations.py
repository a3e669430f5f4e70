"""Pages of populations: what needs a person comes first, and one population over time."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.deploy import AdaptationPolicy, adapt
from lifelong_core.store import LogEntry, Store
from lifelong_core.store.schema import tables
from tests.unit.service.conftest import CLASS_NAMES, Service, calibration
from tests.unit.service.consoles import Console
from tests.unit.store.samples import cycle, head, prediction

NOW = datetime.now(UTC)
PAGE = "/console/populations/linear@1/site-a"


@pytest.fixture
def console(registered: None, store: Store, serve: Callable[..., Service]) -> Console:
    model = store.models.get("linear")
    for name in ("site-a", "site-b"):
        store.environments.ensure(name, limit=9)
        store.predictions.append([LogEntry((prediction(model.id, name),))])
    return Console(serve(cycle_interval_seconds=timedelta(days=9).total_seconds()))


def judge(console: Console, day: int, share: float, *, environment: str = "site-a", **changes: Any) -> None:
    """Record a cycle that estimated this share of the last class; a swap publishes or proposes another head."""
    store, mode = console.service.store, changes.pop("mode", "auto")
    model = store.models.get("linear")
    estimate = {"prevalence": [0.6, 0.4 - share, share], "low": [0.5, 0.2, 0.1], "high": [0.7, 0.4, 0.5]}
    report = {
        "reasons": [{"code": changes.pop("code", "prevalence_unchanged"), "text": f"Looked on day {day}."}],
        "assumed_prevalence": changes.pop("assumed", [0.6, 0.3, 0.1]),
        "prevalence": estimate,
        "performance": {"estimates": {"AC": [0.8, 0.7, 0.9], "EC": [0.45, 0.4, 0.5]}},
        "change_points": [{"changed_at": (NOW - timedelta(days=7.5)).isoformat()}],
    }
    at = NOW - timedelta(days=9 - day)
    served = store.registry().heads.get((model.id, environment)) or store.registry().heads[model.id, None]
    changes = {"environment": environment, "log_position": day, "head_version": served.version} | changes
    one = replace(cycle(model, due_at=at), report=report, **changes)
    other = replace(head(0.5), costs=served.head.costs, class_names=CLASS_NAMES)
    candidate = other if one.outcome == "swap" else None
    store.cycles.finish(one, candidate=candidate, expected_sequence=None, mode=mode)


def date_activations(store: Store, at: datetime) -> None:
    """Let all heads have come into force then, not when the test recorded them."""
    with store.database.write() as connection:
        connection.execute(sa.update(tables.head_activations).values(activated_at=at))


def test_the_fleet_begins_with_what_needs_a_person(console: Console) -> None:
    judge(console, 1, 0.1, environment="site-a")
    judge(console, 1, 0.3, environment="site-b", outcome="swap", mode="propose")
    shown = console.get("/console").text
    assert "1 of 2 populations waits for a decision" in shown
    assert shown.index(">site-b</a>".replace("site-b", "site-<wbr>b")) < shown.index("site-<wbr>a</a>")
    assert '<span class="chip decide">Decide</span> A proposed head waits for approval.' in shown
    assert "No monitor is running" in shown
    fine = console.get("/console?need=none&order=name").text
    assert "site-<wbr>a</a>" in fine
    assert "site-<wbr>b</a>" not in fine


def test_a_choice_that_is_none_is_refused(console: Console) -> None:
    assert console.get("/console?need=everything").status_code == 422
    assert console.get("/console?nothing=1").status_code == 422


def test_an_empty_fleet_says_how_to_fill_it(registered: None, serve: Callable[..., Service]) -> None:
    assert "No population has predictions yet" in Console(serve()).get("/console").text


def test_the_shift_of_the_newest_cycles_is_a_line(console: Console) -> None:
    judge(console, 1, 0.1)
    judge(console, 2, 0.3)
    assert "<title>Shift over the last 2 cycles: from 0.00 to 0.40</title>" in console.get("/console").text


def test_a_population_shows_its_head_its_prevalence_and_its_cycles(console: Console) -> None:
    assert "No cycle has judged it yet" in console.get(PAGE).text
    judge(console, 1, 0.1)
    judge(console, 2, 0.3, outcome="swap")
    date_activations(console.service.store, NOW - timedelta(days=7))
    judge(console, 3, 0.3, outcome="refuse", code="assumption_violated")
    shown = console.get(PAGE).text
    for text in (
        "The newest cycle refused: more than the prevalence has changed.",
        "<title>Prevalence</title>",
        "Estimated prevalence over 3 cycles: benign from 0.60 to 0.60, assumed 0.60; unclear from 0.30",
        "<desc>1 keep, 1 swap, 1 refuse.</desc>",
        "malignant, assumed",
        "swap of the head</li>",
        "change of the prevalence</li>",
        "Looked on day 2.",
        "0.45 expected now</dd>",
        "0.800 (0.700 to 0.900), estimated without labels",
        "not counted",
        'href="/console/performance/linear@1/site-a"',
    ):
        assert text in shown, text
    store = console.service.store
    for one in store.cycles.list():
        assert f'href="/console/cycles/{one.id}"' in shown
    assert shown.index("Looked on day 3.") < shown.rindex("Looked on day 1.")


def test_a_swap_counts_from_the_time_when_its_head_came_into_force(console: Console) -> None:
    """The assumed prevalence steps then, between the cycle that proposed the head and the one that judged it."""
    store, approved_at = console.service.store, NOW - timedelta(days=6.5)
    judge(console, 1, 0.1)
    judge(console, 2, 0.3, outcome="swap", mode="propose")
    store.cycles.approve(store.cycles.proposals()[0].id, actor="ann")
    date_activations(store, approved_at)
    judge(console, 3, 0.3, assumed=[0.6, 0.1, 0.3])
    shown = console.get(PAGE).text
    assert f'data-label="In force since">{approved_at:%Y-%m-%d %H:%M} UTC' in shown
    assert "<dd>for 6 days</dd>" in shown
    (path, *_) = re.findall(r'series-2"><path class="line step" d="([^"]+)"', console.get(PAGE).text)
    across = re.findall(r"H([\d.]+)", path)
    first, step, last = map(float, across)
    assert first < step < last


def test_an_unknown_population_is_not_found(console: Console) -> None:
    for place in ("linear@9/site-a", "linear@1/nowhere"):
        assert console.get(f"/console/populations/{place}").status_code == 404


def test_a_cycle_says_why_and_what_followed(console: Console) -> None:
    judge(console, 1, 0.3, outcome="swap")
    (one,) = console.service.store.cycles.list()
    path = f"/console/cycles/{one.id}"
    shown = console.get(path).text
    assert "Looked on day 1." in shown
    assert "Head 1 served meanwhile. Published head 2." in shown
    assert 'href="/console/populations/linear@1/site-a"' in shown
    assert "Another version of the product wrote its report" in shown  # that of these tests has few fields
    document = console.get(f"{path}/cycle.json")
    assert document.headers["Content-Disposition"] == f'attachment; filename="cycle-{one.id}.json"'
    assert document.json()["report"]["change_points"] == one.report["change_points"]


def test_a_report_is_told_in_words_numbers_and_a_chart(console: Console) -> None:
    store = console.service.store
    model = store.models.get("linear")
    served = store.registry().heads[model.id, None].head
    labelled = calibration(seed=1)
    shifted = np.repeat(labelled.logits[labelled.labels == 2], 10, axis=0)
    report = adapt(calibration(), shifted, served, AdaptationPolicy(), method="ACC")
    one = replace(cycle(model, due_at=NOW), report=report.to_document(), outcome=report.outcome)
    store.cycles.finish(one, candidate=report.candidate, expected_sequence=None, mode="shadow")
    shown = console.get(f"/console/cycles/{one.id}").text
    assert report.prevalence is not None
    for text in (
        "Only the prevalence has changed? ",
        "Expected cost of a decision: ",
        "method ACC",
        f'<td data-label="Estimated">{report.prevalence.prevalence[2]:.3f}</td>',
        "<title>Prevalence in its window</title>",
    ):
        assert text in shown, text


def test_a_replay_is_confirmed_and_becomes_a_job(console: Console) -> None:
    judge(console, 1, 0.1)
    path = f"/console/cycles/{console.service.store.cycles.list()[0].id}"
    asked = console.ask(f"{path}/replay")
    assert "No head changes." in asked.text
    assert console.service.store.jobs.list() == []
    done = console.post(f"{path}/replay")
    (job,) = console.service.store.jobs.list()
    assert (done.headers["Location"], job.kind) == (f"/console/jobs/{job.id}", "replay")
    console.scope = "read"
    assert "Replay it" not in console.get(path).text


def test_the_documents_of_a_population_are_pages_without_scripts(console: Console) -> None:
    judge(console, 1, 0.3, outcome="swap")
    page = console.get(PAGE).text
    month = f"{NOW:%Y-%m}"
    assert f'href="{PAGE}/dossier"' in page
    assert f'href="{PAGE}/reports/{month}"' in page
    dossier = console.get(f"{PAGE}/dossier")
    assert "default-src 'none'" in dossier.headers["content-security-policy"]
    assert "Looked on day 1." in dossier.text
    assert "<script" not in dossier.text
    assert "Periodic report: linear@1 in site-a" in console.get(f"{PAGE}/reports/{month}").text
    assert console.get(f"{PAGE}/reports/2026-13").status_code in (404, 422)
    assert console.get("/console/populations/linear@1/site-z/dossier").status_code == 404
