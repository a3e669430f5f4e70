"""The overview says what each population needs, and reads no report."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lifelong_core.configuration.settings import PolicySettings, Settings
from lifelong_core.deploy.adaptation.retraining import MissedThreshold, RetrainingNeed
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.entities.populations import PopulationSummary
from lifelong_core.store import Heartbeat, Model, Store, Tick, Visit
from lifelong_core.store.cycles.overview import Overview, most_urgent_first
from tests.databases import sqlite_only
from tests.unit.monitor.recommendations import attach, metric, naming
from tests.unit.store.samples import add_serving_model, cycle, entry, head

NOW = datetime.now(UTC)
SITE = "site-a"
ESTIMATE = {"prevalence": [0.2, 0.3, 0.5], "low": [0.1, 0.2, 0.4], "high": [0.3, 0.4, 0.6]}


@pytest.fixture
def model(store: Store) -> Model:
    added, _ = add_serving_model(store)
    store.environments.ensure(SITE, limit=9)
    store.predictions.append([entry(model_id=added.id, environment=SITE)])
    return added


def judge(
    store: Store, model: Model, *codes: str, mode: str = "auto", at: datetime = NOW, **changes: Any
) -> None:
    """Record a cycle with these reasons; a swap selects another head."""
    report = {
        "reasons": [{"code": code, "text": code} for code in codes],
        "assumed_prevalence": [1 / 3, 1 / 3, 1 / 3],
        "prevalence": ESTIMATE,
        "expected_gain": {"current_cost": 0.5, "candidate_cost": 0.4},
        "performance": {"estimates": {"AC": [0.7, 0.65, 0.75]}},
    }
    one = replace(cycle(model, due_at=at), report=report, **changes)
    candidate = head(0.5) if one.outcome == "swap" else None
    store.cycles.finish(one, candidate=candidate, expected_sequence=None, mode=mode)  # type: ignore[arg-type]


def summary(store: Store, model: Model, environment: str = SITE, **policy: Any) -> PopulationSummary:
    settings = Settings(policy=PolicySettings(**policy))
    return Overview.load(store, settings, at=NOW).summary((model.id, environment))


def visit(store: Store, model: Model, *, watched_at: datetime | None, interval: float = 3600) -> None:
    """Record the heartbeat of a monitor that visited the population."""
    made = Visit(model.id, SITE, NOW, "skip", "no news", watched_at)
    store.monitors.record_heartbeat(
        Heartbeat("m1", "host", 8, NOW, interval, "auto", {}, Tick(NOW, NOW, NOW), (made,))
    )


def propose_retraining(store: Store, model: Model) -> None:
    missed = MissedThreshold("AC", None, 0.7, 0.65, 0.75, 0.8)
    store.proposals.propose(model.id, SITE, RetrainingNeed("repeated_refusals", (missed,), NOW, ("a",)))


def test_the_figures_are_those_of_the_newest_cycle(store: Store, model: Model) -> None:
    judge(store, model, "prevalence_shifted", log_position=1)
    judge(store, model, "prevalence_unchanged", log_position=2, at=NOW + timedelta(hours=1))
    one = summary(store, model, mode="propose")
    assert (one.need, one.state) == ("none", "The decisions fit the prevalence.")
    assert one.shift is not None
    assert one.shift.value == pytest.approx(1 / 3)
    assert (one.expected_cost, one.best_expected_cost, one.effect) == (0.5, 0.4, "keep")
    assert (one.mode, one.head_version, one.pinned, one.head_proposal) == ("propose", 1, False, None)
    assert one.head_since is not None


@sqlite_only
@pytest.mark.parametrize(
    ("prepare", "need", "state"),
    [
        (lambda store, model: judge(store, model, "window_too_small"), "none", "Too few predictions"),
        (lambda *_: None, "none", "Not judged yet"),
        (
            lambda store, model: judge(store, model, "assumption_violated", outcome="refuse"),
            "look",
            "refused: more than the prevalence has changed",
        ),
        (lambda store, model: judge(store, model, "head_pinned"), "look", "The head is pinned"),
        (
            lambda store, model: judge(store, model, "prevalence_unchanged", "assumption_violated"),
            "look",
            "More than the prevalence has changed",
        ),
        (lambda store, model: visit(store, model, watched_at=None), "look", "Not watched yet"),
        (
            lambda store, model: judge(store, model, outcome="swap", mode="shadow"),
            "look",
            "the mode is shadow",
        ),
        (lambda store, model: judge(store, model, outcome="swap"), "look", "put head 2 in force"),
        (
            lambda store, model: judge(store, model, outcome="swap", mode="propose"),
            "decide",
            "waits for approval",
        ),
        (propose_retraining, "decide", "A retraining is proposed: more than the prevalence"),
    ],
    ids=[
        "too few",
        "new",
        "refuse",
        "pinned",
        "other change",
        "never watched",
        "shadow",
        "swap",
        "propose",
        "retraining",
    ],
)
def test_a_state_says_what_to_do(
    store: Store, model: Model, prepare: Callable[[Store, Model], None], need: str, state: str
) -> None:
    prepare(store, model)
    one = summary(store, model)
    assert one.need == need
    assert state in one.state


def test_a_population_counts_as_not_watched_after_two_intervals(store: Store, model: Model) -> None:
    judge(store, model, "prevalence_unchanged", at=NOW - timedelta(hours=3))
    one = summary(store, model)
    assert one.need == "look"
    assert one.state.startswith(f"Not watched since {NOW - timedelta(hours=3):%Y-%m-%d %H:%M}")
    visit(store, model, watched_at=NOW - timedelta(hours=3), interval=7200)
    assert summary(store, model).need == "none"
    visit(store, model, watched_at=NOW - timedelta(minutes=90))
    assert summary(store, model).need == "none"


def test_a_swap_is_worth_a_look_for_a_day_whatever_later_cycles_say(store: Store, model: Model) -> None:
    judge(store, model, outcome="swap", log_position=1)
    judge(store, model, "prevalence_unchanged", log_position=2, head_version=2, at=NOW + timedelta(seconds=1))
    assert "put head 2 in force" in summary(store, model).state
    late = Overview.load(store, Settings(), at=NOW + timedelta(days=1, hours=1))
    visited = {(model.id, SITE): NOW + timedelta(days=1)}
    assert replace(late, watched=visited).summary((model.id, SITE)).need == "none"
    store.heads.rollback(model.reference, environment=SITE, actor="ann")
    assert summary(store, model).need == "none"


def test_a_proposal_that_cannot_be_approved_any_more_needs_nobody(store: Store, model: Model) -> None:
    judge(store, model, outcome="swap", mode="propose")
    assert summary(store, model).head_proposal == store.cycles.proposals()[0].id
    store.heads.pin(model.reference, environment=SITE, reason="under study", actor="ann")
    assert store.cycles.proposals() == []
    assert summary(store, model).head_proposal is None
    assert summary(store, model).pinned


def test_the_accuracy_is_judged_by_the_acceptance_of_the_task(store: Store, model: Model) -> None:
    judge(store, model, "prevalence_unchanged")
    for accuracy, acceptance, need in (
        (0.6, "accepted", "none"),
        (0.72, "at_risk", "look"),
        (0.8, "missed", "decide"),
    ):
        attach(store, AcceptanceThreshold(metric="AC", value=accuracy), what=naming(metric("AC")))
        one = summary(store, model)
        assert (one.required_accuracy, one.acceptance, one.need) == (accuracy, acceptance, need)


def test_populations_are_those_with_predictions_or_cycles_most_urgent_first(
    store: Store, model: Model
) -> None:
    store.environments.ensure("site-b", limit=9)
    judge(store, model, "assumption_violated", outcome="refuse", environment=SITE)
    judge(store, model, environment="site-b")
    overview = Overview.load(store, Settings(), at=NOW)
    assert overview.populations == [(model.id, SITE), (model.id, "site-b")]
    found = sorted(map(overview.summary, overview.populations), key=most_urgent_first)
    assert [(one.environment, one.state) for one in found] == [
        (SITE, "The newest cycle refused: more than the prevalence has changed."),
        ("site-b", "No predictions lately."),
    ]


def test_recent_shifts_are_in_order_of_time_and_old_cycles_have_none(store: Store, model: Model) -> None:
    population = model.id, SITE
    assert store.population_cycles.recent_shifts([population], limit=5) == {population: []}
    for number, share in enumerate((0.2, 0.4, 0.6)):
        other = ESTIMATE | {"prevalence": [share, 0.8 - share, 0.2]}
        one = cycle(model, due_at=NOW + timedelta(hours=number))
        report = {"assumed_prevalence": [0.2, 0.6, 0.2], "prevalence": other, "reasons": []}
        one = replace(one, log_position=number, report=report)
        store.cycles.finish(one, candidate=None, expected_sequence=None)
    shifts = store.population_cycles.recent_shifts([population], limit=2)[population]
    assert shifts == pytest.approx([0.4, 0.8])


def test_windows_tell_what_the_cycles_saw_oldest_first(store: Store, model: Model) -> None:
    judge(store, model, "prevalence_unchanged", log_position=1)
    judge(store, model, "gain_sufficient", log_position=2, at=NOW + timedelta(hours=1), outcome="swap")
    first, second = store.population_cycles.windows(model.id, SITE, limit=5)
    assert (first.effect, second.effect, second.published_version) == ("keep", "swap", 2)
    assert first.prevalence == [ESTIMATE["prevalence"], ESTIMATE["low"], ESTIMATE["high"]]
    assert (first.reason, first.changed_at, first.samples) == ("prevalence_unchanged", None, 500)
    assert [one.cycle for one in store.population_cycles.windows(model.id, SITE, limit=1)] == [second.cycle]
