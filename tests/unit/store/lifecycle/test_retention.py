"""Expired rows are deleted, others stay, and deletion does not delay writers."""

import gc
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
import sqlalchemy as sa

from lifelong_core.deploy import quantifier
from lifelong_core.store import LogEntry, NewLabel, RequestKey, Store
from lifelong_core.store.engine import deletion
from lifelong_core.store.lifecycle import retention as module
from lifelong_core.store.lifecycle.retention import RetentionOutcome
from lifelong_core.store.log import identifiers, partitions
from lifelong_core.store.schema import tables
from tests import databases
from tests.databases import sqlite_only
from tests.unit.store.samples import add_serving_model, calibration, prediction

TODAY = date(2026, 5, 20)
ENVIRONMENTS = ("default", "site-a")
COUNTER = itertools.count()
only = {kind: pytest.mark.parametrize("kind", [kind], indirect=True) for kind in databases.KINDS}


@pytest.fixture
def store(database_url: str, artifacts_url: str) -> Iterator[Store]:
    """On a database of its own: partitions stay."""
    with Store.open(database_url, artifacts_url) as opened:
        add_serving_model(opened)
        opened.environments.ensure("site-a", limit=9)
        yield opened


def moment(days_ago: int, *, seconds: float = 0) -> datetime:
    return datetime.combine(TODAY - timedelta(days=days_ago), datetime.min.time(), UTC) + timedelta(
        seconds=seconds
    )


def identity(days_ago: int, *, seconds: float = 0) -> UUID:
    """Another one at each call."""
    return UUID(int=identifiers.first_id_at(moment(days_ago, seconds=seconds)).int + next(COUNTER))


def log(store: Store, environment: str, *identities: UUID, labelled: bool = True) -> None:
    """Predictions of these ids, each with a label and a request id."""
    entries = [
        LogEntry(
            (prediction(1, environment, prediction_id=one),),
            RequestKey(1, environment, f"{environment} {one}"),
            b"body",
        )
        for one in identities
    ]
    store.predictions.append(entries)
    if labelled:
        store.labels.record([NewLabel(one, 1) for one in identities])


def left(store: Store, environment: str | None = None) -> list[int]:
    """For each prediction that is left how many days ago it was made; labels, history and request ids must agree."""
    found: list[list[date]] = []
    for table in (tables.predictions, tables.labels, tables.requests):
        query = sa.select(table.c.logged_on).order_by(table.c.logged_on.desc())
        if environment is not None:
            query = query.where(table.c.environment == environment)
        with store.database.read() as connection:
            found.append(list(connection.execute(query).scalars()))
    assert found[0] == found[1] == found[2]
    with store.database.read() as connection:
        labelled, revised = (
            set(connection.execute(sa.select(table.c.prediction_id)).scalars())
            for table in (tables.labels, tables.label_revisions)
        )
    assert labelled == revised
    return [(TODAY - day).days for day in found[0]]


def delete(store: Store, days: dict[str, int], **options: object) -> RetentionOutcome:
    return store.retention.delete_expired(days.get, TODAY, **options)  # type: ignore[arg-type]


def test_whole_days_go_by_environment_with_labels_and_request_ids(store: Store):
    for environment in ENVIRONMENTS:
        log(store, environment, *(identity(days) for days in range(6)))
        log(store, environment, identity(3, seconds=86399.999))
    assert delete(store, {}) == RetentionOutcome()
    outcome = delete(store, {"site-a": 2})
    assert outcome == RetentionOutcome(4, 4, 4, 4, is_done=True)
    assert left(store, "site-a") == [0, 1, 2]
    assert left(store, "default") == [0, 1, 2, 3, 3, 4, 5]
    assert delete(store, {"site-a": 2, "default": 4}) == RetentionOutcome(1, 1, 1, 1)
    assert left(store, "default") == [0, 1, 2, 3, 3, 4]


@sqlite_only
@pytest.mark.parametrize("days", [739_999, 10**9, 10**15])
def test_more_days_than_the_calendar_has_keep_all_and_hold_up_no_other_environment(store: Store, days: int):
    for environment in ENVIRONMENTS:
        log(store, environment, identity(0), identity(5))
    assert store.retention.overdue({"default": days, "site-a": 2}.get, TODAY) == ["site-a"]
    assert delete(store, {"default": days, "site-a": 2}) == RetentionOutcome(1, 1, 1, 1)
    assert left(store, "default") == [0, 5]


@only["postgresql"]
def test_a_clock_that_was_set_ahead_deletes_nothing_where_the_server_knows_better(store: Store):
    present = datetime.now(UTC)
    log(store, "default", identifiers.first_id_at(present))
    later = present.date() + timedelta(days=4000)
    assert store.retention.delete_expired({"default": 365}.get, later) == RetentionOutcome()
    assert store.retention.overdue({"default": 365}.get, later) == []
    assert len(left(store)) == 1


@sqlite_only
def test_every_run_that_deletes_is_in_the_audit_log_once(store: Store):
    log(store, "site-a", *(identity(9) for _ in range(300)), identity(5))
    log(store, "default", identity(9))
    before = len(store.audit.list())
    assert delete(store, {"site-a": 6, "default": 7}).predictions == 301
    entry, *others = store.audit.list()
    assert len(others) == before
    assert (entry.actor, entry.action) == ("monitor", "log.expire")
    assert entry.details == {"made_before": {"default": "2026-05-13", "site-a": "2026-05-14"}}
    assert delete(store, {"site-a": 6, "default": 7}) == RetentionOutcome()
    assert len(store.audit.list()) == before + 1


@sqlite_only
def test_a_run_that_was_stopped_is_taken_up_by_the_next(store: Store):
    log(store, "site-a", *(identity(9) for _ in range(700)))
    stopped = delete(store, {"site-a": 6}, pause=lambda _: True)
    assert not stopped.is_done
    assert 0 < stopped.requests + stopped.labels + stopped.predictions < 2100
    assert not delete(store, {"site-a": 6}, seconds=0).is_done
    rest = delete(store, {"site-a": 6}, pause=lambda _: False)
    assert rest.is_done
    assert left(store) == []


def test_runs_at_once_delete_everything_once(store: Store, database_url: str, artifacts_url: str):
    log(store, "site-a", *(identity(9) for _ in range(600)))
    log(store, "default", *(identity(9) for _ in range(50)))
    start = threading.Barrier(3)
    outcomes: list[RetentionOutcome] = []

    def work() -> None:
        with Store.open(database_url, artifacts_url) as own:
            start.wait()
            outcomes.append(delete(own, {"site-a": 6}))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 3
    assert sum(outcome.predictions for outcome in outcomes) == 600
    assert sum(outcome.labels for outcome in outcomes) == 600
    assert left(store, "default") == [9] * 50


def test_summaries_of_the_days_go_and_the_others_stay_right(store: Store):
    model = store.models.get("dermatology")
    fitted = quantifier("CC").fit(calibration())
    for environment in ENVIRONMENTS:
        log(
            store, environment, *(identity(days, seconds=3600 * hour) for days in range(4) for hour in (0, 7))
        )

    def fold() -> None:
        for environment in ENVIRONMENTS:
            while not store.summaries.fold(model, environment, fitted, classes=3).is_done:
                pass

    def hours(environment: str) -> int:
        buckets = store.summaries.window(model.id, environment, fitted.digest, moment(99), moment(-9))
        assert store.summaries.check(model, environment, fitted) == []
        return sum(bucket.samples for bucket in buckets if bucket.summary is not None)

    fold()
    assert [hours(environment) for environment in ENVIRONMENTS] == [8, 8]
    pauses = itertools.count()
    # After request ids, labels and predictions, before the summaries.
    stopped = delete(store, {"site-a": 1}, pause=lambda _: next(pauses) == 2)
    assert (stopped.predictions, stopped.is_done) == (4, False)
    hours("site-a")
    delete(store, {"site-a": 1})
    assert [hours(environment) for environment in ENVIRONMENTS] == [8, 4]
    with store.database.read() as connection:
        oldest = connection.execute(
            sa.select(sa.func.min(tables.window_summaries.c.bucket)).where(
                tables.window_summaries.c.environment == "site-a"
            )
        ).scalar_one()
    assert oldest.replace(tzinfo=UTC) == moment(1)
    fold()
    assert [hours(environment) for environment in ENVIRONMENTS] == [8, 4]


def days_with_partitions(store: Store) -> list[int]:
    days = partitions.days_with_partition(store.database, date.max)
    return sorted((TODAY - day).days for day in days if day <= TODAY)


@only["postgresql"]
def test_days_that_nobody_keeps_are_dropped_as_a_whole(store: Store):
    store.predictions.ensure_partitions(TODAY - timedelta(days=7))
    log(store, "site-a", *(identity(days) for days in range(9)))
    log(store, "default", identity(6))
    assert days_with_partitions(store) == list(range(8))
    outcome = delete(store, {"site-a": 3})
    assert outcome.predictions == 5
    # Of day 6 another environment keeps a row; day 8 has none of its own: it is in the default partition.
    assert outcome.partitions == (
        TODAY - timedelta(days=7),
        TODAY - timedelta(days=5),
        TODAY - timedelta(days=4),
    )
    assert days_with_partitions(store) == [0, 1, 2, 3, 6]
    assert left(store, "site-a") == [0, 1, 2, 3]
    assert left(store, "default") == [6]
    assert store.audit.list()[0].action == "log.expire"
    assert delete(store, {"site-a": 3, "default": 3}).partitions == (TODAY - timedelta(days=6),)


@only["postgresql"]
def test_a_late_row_that_is_kept_keeps_its_partition(store: Store):
    """It comes after all that was there was found to be expired, and before anybody is shut out."""
    store.predictions.ensure_partitions(TODAY - timedelta(days=7))
    log(store, "site-a", identity(7))

    def drop(environment: str) -> int | None:
        return partitions.drop_partition(
            store.database,
            TODAY - timedelta(days=7),
            environments=["site-a"],
            before=lambda _: log(store, environment, identity(7), labelled=False),
        )

    assert drop("default") is None
    with store.database.read() as connection:
        assert (
            connection.execute(sa.select(sa.func.count()).select_from(tables.predictions)).scalar_one() == 2
        )
    assert drop("site-a") is None


@only["postgresql"]
def test_a_partition_in_use_waits_for_the_next_run(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_ATTEMPTS", 2)
    store.predictions.ensure_partitions(TODAY - timedelta(days=7))
    log(store, "site-a", identity(7), labelled=False)
    before = len(store.audit.list())
    with store.database.read() as reader:
        reader.execute(sa.select(tables.predictions.c.id))
        outcome = delete(store, {"site-a": 3})
        assert not outcome.is_done
        assert outcome.partitions == ()
    # The request id went, and that is what the entry says.
    assert len(store.audit.list()) == before + 1
    assert TODAY - timedelta(days=7) in delete(store, {"site-a": 3}).partitions


@sqlite_only
def test_a_batch_shrinks_and_grows_with_the_time_that_it_takes(store: Store, kind: str):
    batches = deletion.Batches(store.database, lambda _: False)
    first = batches.size
    with batches.write(batches.size):
        # A full collection in a large process takes longer than anybody may wait.
        assert not gc.isenabled()
        time.sleep(0.05)
    assert gc.isenabled()
    if kind == "postgresql":
        assert batches.size == first
        return
    assert batches.size == first // 2
    with batches.write(batches.size):
        time.sleep(0.05)
    # With fewer rows a transaction does hardly anything else than begin and end.
    assert batches.size == first // 2
    for _ in range(9):
        with batches.write(20_000):
            pass
    assert batches.size == 5000


WRITER = """
import sys, time
from pathlib import Path
import numpy as np
from lifelong_core.store import LogEntry, Prediction, Store, new_prediction_id

with Store.open(sys.argv[1], "memory://artifacts") as store:
    while not Path(sys.argv[2]).exists():
        rows = [Prediction(new_prediction_id(), 1, "default", 1, 0, np.zeros(3, np.float32)) for _ in range(8)]
        started = time.monotonic()
        store.predictions.append([LogEntry((row,)) for row in rows])
        print(started, time.monotonic(), flush=True)
        time.sleep(0.002)
"""


@only["sqlite"]
def test_nobody_who_logs_waits_for_more_than_50_milliseconds(
    store: Store, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The promise, as a process sees it that logs micro-batches meanwhile.

    The best of five, since on a busy machine it waits for a core, too. Positive control: one batch breaks it.
    """
    same = {"model_id": 1, "environment": "site-a", "head_version": 1, "decision": 0, "logits": bytes(12)}
    same |= {"logged_on": TODAY - timedelta(days=9), "commit_order": 0}

    def delete_rows(number: int) -> tuple[float, float]:
        rows = [same | {"id": identity(9)} for _ in range(number)]
        with store.database.write() as connection:
            connection.execute(sa.insert(tables.predictions), rows)
        started = time.monotonic()
        assert delete(store, {"site-a": 3}).predictions == len(rows)
        return started, time.monotonic()

    command = [sys.executable, "-c", WRITER, database_url, str(tmp_path / "stop")]
    with (tmp_path / "waits").open("w") as waits, subprocess.Popen(command, stdout=waits) as process:
        while not (tmp_path / "waits").stat().st_size:
            time.sleep(0.01)
        spans = [delete_rows(3000) for _ in range(5)]
        monkeypatch.setattr(deletion, "_FIRST_BATCH", 10_000)
        control = delete_rows(10_000)
        (tmp_path / "stop").touch()
        assert process.wait(60) == 0
    logged = [tuple(map(float, line.split())) for line in (tmp_path / "waits").read_text().splitlines()]

    def longest_wait(span: tuple[float, float]) -> float:
        return max((end - start for start, end in logged if span[0] < start < span[1]), default=0)

    assert 0 < min(longest_wait(span) for span in spans) < 0.05
    assert longest_wait(control) > 0.05
