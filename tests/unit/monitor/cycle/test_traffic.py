"""One token sends thousands of plausible rows to a site: the swap is marked as unusual and may need approval."""

import re
from typing import Literal
from uuid import UUID

import pytest

from lifelong_core.configuration.settings import PolicySettings, Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.adaptation.traffic import Traffic
from lifelong_core.store import (
    Cycle,
    LogEntry,
    Model,
    Prediction,
    Scope,
    Store,
    new_prediction_id,
    register_calibration,
)
from lifelong_core.store.log.identifiers import first_id_at
from lifelong_monitor.cycle.cycle import run_cycle
from lifelong_monitor.cycle.due_times import due_before
from lifelong_monitor.cycle.replay import replay
from lifelong_monitor.cycle.reports import report_of
from tests.unit.monitor.cycle.test_summarised_cycle import HOUR, NOW
from tests.unit.monitor.population import BALANCED, SHIFTED, draw

THIS_HOUR = due_before(NOW, HOUR)


def send(store: Store, model: Model, token_id: int | None, hours_ago: int, logits: LabeledLogits) -> None:
    """As if sent so many hours ago."""
    store.environments.ensure("clinic", limit=10)
    first = first_id_at(THIS_HOUR - hours_ago * HOUR).int
    ids = [UUID(int=first + new_prediction_id().int % 2**62) for _ in range(logits.samples)]
    rows = [
        Prediction(one, model.id, "clinic", 1, 0, row) for one, row in zip(ids, logits.logits, strict=True)
    ]
    store.predictions.append([LogEntry((row,), token_id=token_id) for row in rows])


def token(store: Store, name: str, bound_to: str | None = None) -> int:
    environments = None if bound_to is None else [bound_to]
    return store.tokens.create(name, [Scope.PREDICT], actor="tests", environments=environments)[0].id


def run(
    store: Store, settings: Settings, model: Model, unusual: Literal["report", "propose"] | None = None
) -> Cycle:
    policy = PolicySettings() if unusual is None else PolicySettings(unusual_traffic=unusual)
    changed = settings.model_copy(update={"policy": policy})
    result = run_cycle(store, changed, model, "clinic", NOW)
    assert result.last is not None, result.reason
    return result.last


def said(cycle: Cycle) -> str:
    return " ".join(reason.text for reason in report_of(cycle).reasons if reason.code == "traffic_unusual")


@pytest.mark.parametrize(
    ("database_kind", "unusual", "largest_window_of_rows"),
    [
        ("sqlite", "report", 20_000),
        ("sqlite", "propose", 20_000),
        ("sqlite", "propose", 500),
        ("postgresql", "report", 500),
    ],
    indirect=["database_kind"],
)
def test_a_swap_for_what_another_token_sent_in_a_burst(
    store: Store,
    settings: Settings,
    model: Model,
    unusual: Literal["report", "propose"],
    largest_window_of_rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lifelong_monitor.cycle.window.LARGEST_WINDOW_OF_ROWS", largest_window_of_rows)
    own, other = token(store, "clinic-a"), token(store, "clinic-b")
    for hour in range(91, 1, -1):
        send(store, model, own, hour, draw(BALANCED, 10, seed=hour))
    send(store, model, other, 1, draw(SHIFTED, 480, seed=99))
    cycle = run(store, settings, model, unusual)
    assert cycle.outcome == "swap"
    assert cycle.effect == {"report": "swap", "propose": "proposes a swap"}[unusual]
    # Of the window since the change of the prevalence, on which the estimate rests.
    assert re.search(
        r"(9\d|100)% of the window came with the token 'clinic-b', which sent 0% of", said(cycle)
    )
    assert re.search(r"(9\d|100)% of the window came in hours with .* \(the busiest: 53 times\)", said(cycle))
    traffic = report_of(cycle).context.traffic
    assert isinstance(traffic, Traffic)
    assert replay(store, cycle.id).to_document()["reasons"] == cycle.report["reasons"]
    if unusual == "propose":
        assert store.heads.activations(model.reference, environment="clinic") == []
        assert [one.id for one in store.cycles.proposals(model.id, "clinic")] == [cycle.id]


def test_a_swap_for_what_came_as_usual_needs_nobody(store: Store, settings: Settings, model: Model) -> None:
    own = token(store, "clinic-a")
    for hour in range(91, 1, -1):
        send(store, model, own, hour, draw(BALANCED if hour > 31 else SHIFTED, 20, seed=hour))
    cycle = run(store, settings, model)
    assert (cycle.effect, said(cycle)) == ("swap", "")
    traffic = report_of(cycle).context.traffic
    assert (traffic.sender, traffic.sender_share, traffic.usual_share) == ("clinic-a", 1.0, 1.0)
    assert traffic.burst_share == 0.0


def test_rows_without_a_token_are_a_sender_too(store: Store, settings: Settings, model: Model) -> None:
    for hour in range(91, 1, -1):
        send(store, model, None, hour, draw(BALANCED, 10, seed=hour))
    send(store, model, token(store, "clinic-b"), 1, draw(SHIFTED, 480, seed=99))
    text = said(run(store, settings, model, "report"))
    assert "token 'clinic-b'" in text
    assert "`lifelong tokens create --environment`" in text


@pytest.mark.parametrize(("age", "tokens"), [(0, 1), (3, 2), (13, 1), (168, 2)])
def test_one_sided_rows_with_tokens_that_are_not_bound_move_no_head(
    store: Store, settings: Settings, model: Model, age: int, tokens: int
) -> None:
    own = token(store, "clinic-a")
    for hour in range(age + 1, 1, -1):
        send(store, model, own, hour, draw(BALANCED, 20, seed=hour))
    for other in range(tokens):
        one_sided = draw((1, 0, 0), 500 // tokens, seed=200 + other)
        send(store, model, token(store, f"other-{other}"), 1, one_sided)
    cycle = run(store, settings, model)
    assert (cycle.effect, cycle.published_version) == ("proposes a swap", None)
    assert "other-" in said(cycle)
    assert replay(store, cycle.id).to_document()["reasons"] == cycle.report["reasons"]


def test_an_unknown_token_gains_nothing_by_waiting(store: Store, settings: Settings, model: Model) -> None:
    other = token(store, "other")
    for hours_ago, rows in ((100, 500), (1, 20)):
        send(store, model, other, hours_ago, draw((1, 0, 0), rows, seed=hours_ago))
    assert run(store, settings, model).effect == "proposes a swap"


@pytest.mark.parametrize(
    ("is_bound", "age", "effect"),
    [(True, 1, "swap"), (False, 20, "proposes a swap"), (False, 72, "swap")],
)
def test_a_new_site_swaps_at_once_with_a_bound_token_and_else_on_the_third_day(
    store: Store, settings: Settings, model: Model, is_bound: bool, age: int, effect: str
) -> None:
    own = token(store, "clinic-a", "clinic" if is_bound else None)
    for hour in range(age, 0, -1):
        send(store, model, own, hour, draw(SHIFTED, 720 // age, seed=hour))
    cycle = run(store, settings, model)
    assert cycle.effect == effect
    assert ("`lifelong tokens create --environment`" in said(cycle)) == (effect != "swap")


def test_a_sender_that_an_earlier_version_knows_is_known_to_the_next(
    store: Store, settings: Settings, model: Model
) -> None:
    own = token(store, "clinic-a")
    for day in (4, 5, 6):
        send(store, model, own, 24 * day, draw(BALANCED, 200, seed=day))
    added = store.models.add("lesions", "lesions", kind="external", actor="tests")
    register_calibration(store, added.reference, draw(BALANCED, 600, seed=1), actor="tests")
    newest = store.models.get(added.reference)
    for hour in range(20, 0, -1):
        send(store, newest, own, hour, draw(SHIFTED, 36, seed=hour))
    cycle = run(store, settings, newest)
    assert (cycle.effect, said(cycle)) == ("swap", "")


def test_where_no_swap_is_wanted_nobody_is_counted(store: Store, settings: Settings, model: Model) -> None:
    send(store, model, None, 1, draw(BALANCED, 600, seed=1))
    cycle = run(store, settings, model, "report")
    assert (cycle.outcome, report_of(cycle).context.traffic) == ("keep", None)
