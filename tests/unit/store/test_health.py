"""Reports of the database about its own state, on both."""

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import quantifier
from lifelong_core.doctor import database, machine
from lifelong_core.doctor.findings import Installation, Level
from lifelong_core.store import LogEntry, Store
from lifelong_core.store import health as health_module
from lifelong_core.store.health import Health
from lifelong_core.store.log import identifiers
from lifelong_core.store.schema import tables
from tests.unit.store.samples import add_serving_model, calibration, prediction

NOW = datetime.now(UTC)
TODAY = NOW.date()
only_postgresql = pytest.mark.parametrize("kind", ["postgresql"], indirect=True)


def levels(store: Store, **settings: object) -> dict[str, int]:
    """The worst that each check of the database finds."""
    installation = Installation(Settings().model_copy(update=settings), store, NOW, quick=False)
    checks = (
        database.check_writable,
        database.check_integrity,
        database.check_audit_log,
        database.check_retention,
        machine.check_disks,
    )
    return {
        check.__name__.removeprefix("check_"): max(finding.level for finding in check(installation))
        for check in checks
    }


def test_a_sound_database(store: Store):
    assert store.health.damage() == []
    assert store.health.days_without_partition(TODAY, 7) == []
    assert store.health.days_in_default_partition() == []
    assert store.health.leases() == []
    assert set(levels(store).values()) == {Level.OK}


@only_postgresql
def test_days_without_a_partition(own_store: Store):
    health = own_store.health
    assert health.days_without_partition(TODAY, 10) == [TODAY + timedelta(days=ahead) for ahead in (8, 9)]

    def drop(*ahead: int) -> None:
        with own_store.database.write() as connection:
            for days in ahead:
                connection.execute(sa.text(f"DROP TABLE predictions_{TODAY + timedelta(days=days):%Y%m%d}"))

    drop(5)
    assert health.days_without_partition(TODAY, 10)[0] == TODAY + timedelta(days=5)
    assert levels(own_store)["integrity"] == Level.WARNING
    drop(1)
    assert levels(own_store)["integrity"] == Level.FAILURE


@only_postgresql
def test_predictions_in_the_default_partition(own_store: Store):
    days = [TODAY - timedelta(days=9), TODAY - timedelta(days=3), TODAY + timedelta(days=30)]
    for day in days:
        start = identifiers.first_id_at(datetime.combine(day, datetime.min.time(), UTC)).int
        rows = [prediction(prediction_id=UUID(int=start + index)) for index in range(3)]
        own_store.predictions.append([LogEntry((row,)) for row in rows])
        assert own_store.health.days_in_default_partition() == days[: days.index(day) + 1]
        # Late rows of days long ago are normal: a spool was delivered.
        expected = Level.WARNING if day > TODAY else Level.OK
        assert levels(own_store)["integrity"] == expected


@only_postgresql
def test_a_server_that_does_not_wait_for_its_disk(store: Store, monkeypatch: pytest.MonkeyPatch):
    with store.database.read() as connection:
        is_off = connection.execute(sa.text("SHOW fsync")).scalar_one() == "off"
    assert ("fsync" in store.health.unsafe_settings()) == is_off
    monkeypatch.setattr(Health, "unsafe_settings", lambda _: ["fsync"])
    assert levels(store)["writable"] == Level.FAILURE


def test_leases_that_are_held_and_that_somebody_died_with(store: Store):
    for name in ("held", "over", "given back"):
        lease = store.leases.acquire(name, f"holder of {name}", 60)
        assert lease is not None
    store.leases.release(lease)
    with store.database.write() as connection:
        past = NOW - timedelta(hours=1)
        connection.execute(
            sa.update(tables.leases).where(tables.leases.c.name == "over").values(expires_at=past)
        )
    assert [(one.name, one.holder, one.is_over) for one in store.health.leases()] == [
        ("held", "holder of held", False),
        ("over", "holder of over", True),
    ]


def test_how_far_the_summaries_are(store: Store):
    model, _ = add_serving_model(store)
    fitted = quantifier("CC").fit(calibration())
    place = (model.id, "default", fitted.digest)
    assert store.health.summaries(*place) is None
    rows = [prediction(model.id) for _ in range(5)]
    store.predictions.append([LogEntry((row,)) for row in rows[:3]])
    while not store.summaries.fold(model, "default", fitted, classes=3).is_done:
        pass
    state = store.health.summaries(*place)
    assert state is not None
    assert (state.unread, state.oldest_unread, state.stale, state.quarantined) == (0, None, 0, 0)
    store.predictions.append([LogEntry((row,)) for row in rows[3:]])
    with store.database.write() as connection:
        store.summaries.mark_stale(connection, model_id=model.id)
    state = store.health.summaries(*place)
    assert state is not None
    assert (state.unread, state.stale) == (2, 1)
    assert state.oldest_unread == identifiers.logged_at(rows[3].id)


def test_environments_with_predictions_that_are_too_old(store: Store):
    model, _ = add_serving_model(store)
    for name, days in (("site-a", 9), ("site-b", 2)):
        store.environments.ensure(name, limit=9)
        made = identifiers.first_id_at(
            datetime.combine(TODAY - timedelta(days=days), datetime.min.time(), UTC)
        )
        store.predictions.append([LogEntry((prediction(model.id, name, prediction_id=made),))])

    def overdue(days: int, today: date = TODAY) -> list[str]:
        return store.retention.overdue(lambda _: days, today)

    assert [overdue(days) for days in (9, 8, 2, 1)] == [[], ["site-a"], ["site-a"], ["site-a", "site-b"]]
    assert levels(store, retention_days=8)["retention"] == Level.OK
    assert levels(store, retention_days=7)["retention"] == Level.FAILURE


@pytest.mark.parametrize(("hours", "side"), [(-2, "120 min behind"), (2, "120 min ahead of")])
def test_a_wrong_clock_of_this_machine(
    own_store: Store, monkeypatch: pytest.MonkeyPatch, hours: int, side: str
):
    assert own_store.health.clock_faults() == []
    assert [
        one.level for one in database.check_clocks(Installation(Settings(), own_store, NOW, quick=True))
    ] == [Level.OK]
    add_serving_model(own_store)
    monkeypatch.setattr(health_module, "now", lambda: datetime.now(UTC) + timedelta(hours=hours))
    faults = own_store.health.clock_faults()
    assert f"The clock of this machine is {side} that of the database server." in faults
    dated = "The newest audit entry is dated 120 min after the present time"
    assert any(fault.startswith(dated) for fault in faults) == (hours < 0)


def test_predictions_of_a_clock_that_is_ahead(own_store: Store):
    ahead = identifiers.first_id_at(datetime.now(UTC) + timedelta(hours=2))
    own_store.predictions.append([LogEntry((prediction(prediction_id=ahead),))])
    [fault] = own_store.health.clock_faults()
    assert fault.startswith("The newest prediction is dated 120 min after the present time")
