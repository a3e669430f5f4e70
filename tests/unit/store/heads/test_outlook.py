"""What is said after a roll-back: whether and when a cycle may replace the head again."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lifelong_core.store import Heartbeat, Store
from lifelong_core.store.heads.outlook import describe_outlook
from tests.databases import sqlite_only
from tests.unit.store.samples import add_serving_model, head

AT = datetime(2026, 1, 1, 8, 21, tzinfo=UTC)
MONITOR = Heartbeat(
    id="one",
    host="ward-3",
    process=4711,
    started_at=AT,
    interval_seconds=3600.0,
    mode="auto",
    environment_modes={"quiet": "shadow"},
    tick=None,
    visits=(),
    settings={"policy.minimum_samples": 200, "environment_policies.rare.minimum_samples": 51},
)


def outlook(store: Store, environment: str | None) -> str:
    return describe_outlook(store, store.models.get("dermatology"), environment, at=AT)


@pytest.fixture
def rolled_back(store: Store) -> Store:
    add_serving_model(store)
    store.heads.publish("dermatology", head(), environment="ward", actor="ann")
    store.heads.rollback("dermatology", environment="ward", actor="ann")
    return store


def test_it_tells_when_a_cycle_may_undo_the_rollback(rolled_back: Store) -> None:
    assert "no monitor is running" in outlook(rolled_back, "ward")
    rolled_back.monitors.record_heartbeat(MONITOR)
    assert outlook(rolled_back, "ward") == (
        "It is not pinned, and the monitor's mode is auto: a cycle may publish another head here at 09:00 UTC (in 39"
        " minutes), or as soon as 100 predictions are new. To prevent that: `lifelong heads pin dermatology@1"
        " --environment ward --reason ...`."
    )
    assert "as soon as 26 predictions are new" in outlook(rolled_back, "rare")
    assert "no cycle replaces it" in outlook(rolled_back, "quiet")
    rolled_back.monitors.record_heartbeat(replace(MONITOR, id="two", interval_seconds=3780.0))
    assert "at 08:24 UTC (in 3 minutes)" in outlook(rolled_back, "ward")
    rolled_back.monitors.record_heartbeat(replace(MONITOR, id="two", mode="propose"))
    assert "a person approves them" in outlook(rolled_back, "ward")


@sqlite_only
def test_a_pin_in_the_same_transaction_is_named_and_an_older_one_stays(rolled_back: Store) -> None:
    rolled_back.monitors.record_heartbeat(MONITOR)
    for reason in ("wrong", "wrong again"):
        rolled_back.heads.publish("dermatology", head(1.0), environment="ward", actor="ann")
        rolled_back.heads.rollback("dermatology", environment="ward", actor="ann", pin_reason=reason)
        assert outlook(rolled_back, "ward") == "It is pinned by ann ('wrong'): no cycle replaces it."
    assert [entry.details["reason"] for entry in rolled_back.audit.list(action="heads.pin")] == ["wrong"]


@sqlite_only
def test_it_tells_which_environments_use_the_default_head(rolled_back: Store) -> None:
    rolled_back.heads.publish("dermatology", head(), environment="clinic", actor="ann")
    said = outlook(rolled_back, None)
    assert (
        "used in 'default', 'ward' and every new environment; not in 'clinic', where the model has another head."
        in said
    )
